//! A scenario as `report.json` has it. Thousands held, each told by its id: what the id tells is not written again.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::model::{DiskReport, Finding, RunTimeline, ScenarioReport, VerdictKind};

#[derive(Serialize, Deserialize)]
struct Row {
    id: String,
    method: String,
    /// Where it is not the second part of the id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    plan: Option<String>,
    /// Where it is not [`title_of`] the schedule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    /// Where it is not the rest of the id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    schedule: Option<String>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    replay: String,
    duration_s: f64,
    verdict: VerdictKind,
    checked: usize,
    cycles: u64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    findings: Vec<Finding>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    note: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    timeline: Vec<RunTimeline>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    disk: Option<DiskReport>,
}

impl Serialize for ScenarioReport {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Row::from(self.clone()).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for ScenarioReport {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Row::deserialize(deserializer).map(Self::from)
    }
}

/// The plan and the rest that an id tells.
fn told(id: &str) -> (&str, &str) {
    let mut parts = id.splitn(3, '/').skip(1);
    (parts.next().unwrap_or_default(), parts.next().unwrap_or_default())
}

fn title_of(schedule: &str) -> String {
    format!("killed at {}, resumed", schedule.replace(", ", ", then at "))
}

impl From<ScenarioReport> for Row {
    fn from(report: ScenarioReport) -> Self {
        let ScenarioReport { id, method, plan, title, schedule, replay, duration_s, .. } = report;
        let (plan_told, rest) = told(&id);
        Self {
            plan: (plan != plan_told).then_some(plan),
            title: (title != title_of(&schedule)).then_some(title),
            schedule: (schedule != rest).then_some(schedule),
            // Nobody compares microseconds.
            duration_s: (duration_s * 1e3).round() / 1e3,
            id,
            method,
            replay,
            verdict: report.verdict,
            checked: report.checked,
            cycles: report.cycles,
            findings: report.findings,
            note: report.note,
            timeline: report.timeline,
            disk: report.disk,
        }
    }
}

impl From<Row> for ScenarioReport {
    fn from(row: Row) -> Self {
        let (plan, rest) = told(&row.id);
        let schedule = row.schedule.unwrap_or_else(|| rest.to_owned());
        Self {
            plan: row.plan.unwrap_or_else(|| plan.to_owned()),
            title: row.title.unwrap_or_else(|| title_of(&schedule)),
            schedule,
            method: row.method,
            replay: row.replay,
            duration_s: row.duration_s,
            verdict: row.verdict,
            checked: row.checked,
            cycles: row.cycles,
            findings: row.findings,
            note: row.note,
            timeline: row.timeline,
            disk: row.disk,
            id: row.id,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    /// A green run of 3,700 scenarios had a report of more than 1 MB: 360 bytes for each, most of them said twice.
    #[test]
    fn a_scenario_that_held_is_written_in_few_bytes_and_read_back_whole() {
        let report = sample::nested();
        let text = serde_json::to_string(&report).unwrap();
        assert!(text.len() <= 200, "{} bytes: {text}", text.len());
        assert_eq!(serde_json::from_str::<ScenarioReport>(&text).unwrap(), report);
        let other = ScenarioReport { title: "another".into(), schedule: "none".into(), plan: "p".into(), ..report };
        let text = serde_json::to_string(&other).unwrap();
        assert_eq!(serde_json::from_str::<ScenarioReport>(&text).unwrap(), other);
    }
}

//! A scenario: one thing that is done to the agent, and what came of it.

use std::sync::Arc;

use crate::agent::process::Ended;
use crate::crash::power::DiskReport;
use crate::error::LabError;
use crate::judge;
use crate::judge::verdict::{Finding, Verdict, VerdictKind};
use crate::look::evidence::{Baseline, Evidence, Expect};
use crate::look::tables::Tables;
use crate::play::prepared::Prepared;
use crate::play::stage::Stage;
use crate::report::model::{ControlReport, RunTimeline, ScenarioReport, TimelineEvent};
use crate::schedule::{CrashPoint, Kill, KillSchedule, Sign};

/// What plays a scenario in a fresh folder.
pub type Play = Box<dyn Fn() -> Result<Played, LabError> + Send + Sync>;

/// One thing that will be done to the agent.
pub struct Scenario {
    /// `method/plan/what`.
    pub id: String,
    /// The method that it belongs to.
    pub method: &'static str,
    /// The plan's name.
    pub plan: String,
    /// One line for people.
    pub title: String,
    /// Who is killed when.
    pub schedule: KillSchedule,
    /// Does it.
    pub play: Play,
}

/// What came of it.
#[derive(Debug, Default)]
pub struct Played {
    /// What did not hold.
    pub findings: Vec<Finding>,
    /// How many judges looked.
    pub checked: usize,
    /// Kills that hit and were followed by a resume.
    pub cycles: u64,
    /// Whether a later kill was unreachable by design.
    pub unreachable: bool,
    /// A fact worth telling although all is well.
    pub note: Option<String>,
    /// What was seen, for the timeline.
    pub evidence: Option<Evidence>,
    /// For a negative control, its result.
    pub control: Option<ControlReport>,
    /// For a power cut that lost something, what lay on the disk.
    pub disk: Option<DiskReport>,
    /// What to replay, where that is not the scenario as a whole.
    pub subject: Option<String>,
}

impl Played {
    /// All properties on this evidence.
    #[must_use]
    pub fn judged(evidence: Evidence, baseline: &Baseline) -> Self {
        Self {
            findings: judge::judge(&evidence, baseline),
            checked: judge::ALL.len(),
            cycles: evidence.cycles(),
            evidence: Some(evidence),
            ..Self::default()
        }
    }

    /// One more judge of the method's own.
    pub fn and(&mut self, judge: &str, verdict: Verdict) {
        self.checked += 1;
        self.findings.extend(verdict.finding(judge));
        self.findings.sort_by_key(|finding| std::cmp::Reverse(finding.verdict));
    }

    /// The worst of the findings.
    #[must_use]
    pub fn verdict(&self) -> VerdictKind {
        let worst = self.findings.iter().map(|finding| finding.verdict).max();
        worst.unwrap_or(VerdictKind::Holds)
    }
}

impl Scenario {
    /// A scenario `method/plan/what` that is played by `play`.
    #[must_use]
    pub fn new(
        method: &'static str,
        ready: &Arc<Prepared>,
        what: &str,
        title: String,
        play: impl Fn(&Prepared) -> Result<Played, LabError> + Send + Sync + 'static,
    ) -> Self {
        let kept = Arc::clone(ready);
        Self {
            id: format!("{method}/{}/{what}", ready.case.name),
            method,
            plan: ready.case.name.clone(),
            title,
            schedule: KillSchedule::default(),
            play: Box::new(move || play(&kept)),
        }
    }

    /// With a kill schedule, whose first point is the place in the matrix.
    #[must_use]
    pub fn kills(mut self, schedule: KillSchedule) -> Self {
        self.schedule = schedule;
        self
    }

    /// Plays it and reports.
    ///
    /// # Errors
    /// The lab's own failures.
    pub fn report(&self, replay: impl Fn(&str) -> String) -> Result<Done, LabError> {
        let begin = std::time::Instant::now();
        let played = (self.play)()?;
        let subject = played.subject.as_deref().unwrap_or(&self.id);
        let report = ScenarioReport {
            id: self.id.clone(),
            method: self.method.to_owned(),
            plan: self.plan.clone(),
            title: self.title.clone(),
            schedule: self.schedule.to_string(),
            replay: replay(subject),
            // Microseconds: what is finer is noise, and noise is long.
            duration_s: begin.elapsed().as_micros() as f64 / 1e6,
            verdict: played.verdict(),
            checked: played.checked,
            cycles: played.cycles,
            findings: played.findings,
            note: played.note,
            timeline: played.evidence.as_ref().map(timeline).unwrap_or_default(),
            disk: played.disk,
        };
        Ok(Done { report, control: played.control, unreachable: played.unreachable })
    }
}

/// A scenario that has been played.
pub struct Done {
    /// Its report.
    pub report: ScenarioReport,
    /// For a negative control, its result.
    pub control: Option<ControlReport>,
    /// Whether a later kill was unreachable by design.
    pub unreachable: bool,
}

/// Whether a run can come to its kill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// It must come there; not being killed is a miss.
    Surely,
    /// It cannot: the step was committed before. The run must go through.
    Never,
    /// Nobody knows.
    Unknown,
}

/// What the tables before a run say about its kill. `recorded` are points that a recording of the same run has shown.
#[must_use]
pub fn reach(kill: &Kill, task: &str, before: &Tables, recorded: &[CrashPoint]) -> Reach {
    let open = |step: usize| match before.task(task) {
        // The run creates it.
        None => true,
        Some(row) => row.status != "done" && before.step(task, step).is_some_and(|row| row.status != "done"),
    };
    match kill {
        Kill::Delay(_) | Kill::Call(_) => Reach::Unknown,
        Kill::Signal { step, .. } if open(*step) => Reach::Surely,
        Kill::Signal { .. } => Reach::Never,
        Kill::Point(point) if recorded.contains(point) => Reach::Surely,
        Kill::Point(point) if point.is_of_contract() => {
            if point.step.is_some_and(open) {
                Reach::Surely
            } else {
                Reach::Never
            }
        }
        Kill::Point(_) => Reach::Unknown,
    }
}

/// What must become of a run with such a kill.
#[must_use]
pub fn expectation(kill: &Kill, reach: Reach) -> Expect {
    match (kill, reach) {
        (_, Reach::Never) => Expect::Ends(0),
        (_, Reach::Unknown) => Expect::MayDie,
        (Kill::Signal { sign, .. }, _) => match sign {
            Sign::Kill => Expect::Dies,
            Sign::Stop => Expect::Survives,
            Sign::Term | Sign::Int => Expect::Interrupted(*sign),
        },
        (_, Reach::Surely) => Expect::Dies,
    }
}

/// Plays a schedule on one task and then resumes it to the end. Returns whether a kill was unreachable by design.
/// `recorded(i)` are the points that the i-th run is known to pass.
///
/// # Errors
/// The lab's own failures.
pub fn play_schedule(
    stage: &mut Stage<'_>,
    task: &str,
    schedule: &KillSchedule,
    env: &[(&'static str, String)],
    recorded: &dyn Fn(usize) -> Vec<CrashPoint>,
) -> Result<bool, LabError> {
    let mut unreachable = false;
    for (i, kill) in schedule.0.iter().enumerate() {
        let recorded = recorded(i);
        let mut reach = reach(kill, task, &stage.last().tables, &recorded);
        // A person may have said that the step is done, so that it is not begun again.
        if stage.case().kind.has_person() && !matches!(kill, Kill::Point(point) if recorded.contains(point)) {
            reach = Reach::Unknown;
        }
        unreachable |= reach == Reach::Never;
        let run = stage.run(task, Some(kill), expectation(kill, reach), env)?;
        if run.outcome.ended == Ended::Exited(0) {
            return Ok(unreachable);
        }
    }
    stage.run(task, None, Expect::Ends(0), env)?;
    Ok(unreachable)
}

/// The evidence as bars and events.
fn timeline(evidence: &Evidence) -> Vec<RunTimeline> {
    let mut known = 0;
    let mut rows = Vec::new();
    for (i, run) in evidence.runs.iter().enumerate() {
        let mut events = Vec::new();
        if let Some(after) = &run.after {
            let new = after.tables.events.iter().filter(|event| event.seq > known);
            events.extend(new.map(|event| TimelineEvent { ts: event.ts, kind: event.kind.clone(), step: event.step }));
            known = after.tables.events.last().map_or(known, |event| event.seq);
        }
        rows.push(RunTimeline {
            run: evidence.label(i),
            started_at: run.outcome.started_at,
            ended_at: run.outcome.ended_at,
            ended: run.outcome.ended.to_string(),
            killed: run.was_killed(),
            events,
        });
    }
    rows
}

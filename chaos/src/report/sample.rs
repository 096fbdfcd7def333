//! Reports made by hand, for the tests of the writers: a green run, the same run in red, and one of many scenarios.

use super::model::{
    Conclusion, ControlReport, Finding, GateReport, MethodReport, RunReport, RunTimeline, SCHEMA, ScenarioReport,
    TimelineEvent, VerdictKind,
};

/// What an agent could print to break each of the formats.
pub(crate) const HOSTILE: &str = "t1-2.md is there twice: 100% <script>alert(1)</script>\n| a ``` b | \u{1b}[31m & ]]>";

const START: f64 = 1_795_974_605.25;
const SITES: [&str; 3] = ["before_effect", "after_effect", "after_commit"];

/// Everything held.
pub(crate) fn green() -> RunReport {
    let mut scenarios = vec![scenario("baseline", "report", &[]), scenario("baseline", "echo", &[])];
    for (plan, steps, site) in [("report", 3, "run.started"), ("echo", 2, "complete.done")] {
        for (step, name) in (0..steps).flat_map(|step| SITES.map(|name| (step, name))) {
            let point = format!("{name}:{step}");
            scenarios.push(scenario("points", plan, &[&point]));
        }
        scenarios.push(scenario("points", plan, &[site]));
    }
    for second in ["before_effect:2", "before_effect:0"] {
        scenarios.push(scenario("nested", "report", &["after_effect:2", second]));
    }
    let unreachable = scenarios.last_mut().expect("the last pair");
    unreachable.cycles = 1;
    unreachable.note = Some("the second point is unreachable by design: its step was committed before".to_owned());
    unreachable.timeline.remove(1);
    scenarios.push(race());
    scenarios.push(scenario("control", "report", &["after_effect:2"]));
    let mut report = RunReport {
        schema: SCHEMA,
        agent: "python3 'my agent.py'".to_owned(),
        plans: vec!["report".to_owned(), "echo".to_owned()],
        seed: 4711,
        jobs: 2,
        started_at: START,
        duration_s: 14.93,
        cycles: scenarios.iter().map(|scenario| scenario.cycles).sum(),
        cycles_per_second: Some(187.2),
        outcome: Conclusion::Held,
        exit_code: 0,
        cut_short: None,
        sample_of: None,
        not_applicable: vec!["control to fetch, because none of its tools has an effect".to_owned()],
        methods: Vec::new(),
        controls: vec![ControlReport {
            scenario: "control/report/after_effect:2".to_owned(),
            control: "AGENT_UNSAFE_EFFECTS".to_owned(),
            tool: "write_artifact".to_owned(),
            plan: "report".to_owned(),
            point: "after_effect:2".to_owned(),
            must_bite: true,
            bit: true,
        }],
        gate: Some(GateReport {
            file: "crash_points.txt".to_owned(),
            open: true,
            blessed: false,
            differences: Vec::new(),
        }),
        scenarios,
    };
    count(&mut report);
    report
}

/// Two scenarios violated, one not reached, the gate shut.
pub(crate) fn red() -> RunReport {
    let mut report = green();
    fail(&mut report, "points/report/after_commit:1", "exit_code", VerdictKind::NotReached, "run 1 was not killed");
    fail(&mut report, "points/report/after_effect:2", "effect_once", VerdictKind::Violated, HOSTILE);
    let lost = "the journal says step 2 was never started,\nattempts says 2\nline 3\nline 4\nline 5\nline 6";
    let pair = "nested/report/after_effect:2, before_effect:2";
    fail(&mut report, pair, "journal_replay", VerdictKind::Violated, lost);
    report.outcome = Conclusion::Violated;
    report.exit_code = 1;
    report.gate = Some(GateReport {
        file: "crash_points.txt".to_owned(),
        open: false,
        blessed: false,
        differences: vec!["new: point mail.sent".to_owned(), "gone: point mail.queued".to_owned()],
    });
    count(&mut report);
    report
}

/// The red run with `count` scenarios more, every `nth` of them violated.
pub(crate) fn large(extra: usize, nth: usize) -> RunReport {
    let mut report = red();
    for i in 0..extra {
        let (first, second) = (format!("after_effect:2#{}", i % 40 + 2), format!("before_effect:2#{}", i / 40 + 2));
        let mut one = scenario("nested", "report", &[&first, &second]);
        if i % nth == nth - 1 {
            one.verdict = VerdictKind::Violated;
            one.findings = vec![Finding {
                property: "effect_once".to_owned(),
                verdict: VerdictKind::Violated,
                why: format!("{HOSTILE}\n").repeat(20),
            }];
        }
        report.scenarios.push(one);
    }
    count(&mut report);
    report
}

fn fail(report: &mut RunReport, id: &str, property: &str, verdict: VerdictKind, why: &str) {
    let scenario = report.scenarios.iter_mut().find(|scenario| scenario.id == id).expect("a scenario");
    scenario.verdict = verdict;
    scenario.findings = vec![Finding { property: property.to_owned(), verdict, why: why.to_owned() }];
}

fn count(report: &mut RunReport) {
    report.methods.clear();
    for name in ["baseline", "points", "nested", "race", "control"] {
        let own: Vec<_> = report.scenarios.iter().filter(|scenario| scenario.method == name).collect();
        let with = |verdict| own.iter().filter(|scenario| scenario.verdict == verdict).count();
        report.methods.push(MethodReport {
            name: name.to_owned(),
            scenarios: own.len(),
            held: with(VerdictKind::Holds),
            violated: with(VerdictKind::Violated),
            not_reached: with(VerdictKind::NotReached),
            cycles: own.iter().map(|scenario| scenario.cycles).sum(),
            unreachable: own.iter().filter(|scenario| scenario.note.is_some()).count(),
            duration_s: own.iter().map(|scenario| scenario.duration_s).sum(),
        });
    }
}

fn scenario(method: &str, plan: &str, kills: &[&str]) -> ScenarioReport {
    let schedule = if kills.is_empty() { "none".to_owned() } else { kills.join(", ") };
    let id = format!("{method}/{plan}/{schedule}");
    ScenarioReport {
        replay: format!("chaos replay '{id}' --seed 4711"),
        id,
        method: method.to_owned(),
        plan: plan.to_owned(),
        title: if kills.is_empty() { "no crash".to_owned() } else { format!("killed at {schedule}, resumed") },
        schedule,
        duration_s: 0.012,
        verdict: VerdictKind::Holds,
        checked: 11,
        cycles: kills.len() as u64,
        findings: Vec::new(),
        note: None,
        timeline: timeline(kills),
        disk: None,
    }
}

/// A run for each kill, 4 ms long and 1 ms apart, and one that comes through.
fn timeline(kills: &[&str]) -> Vec<RunTimeline> {
    let mut runs = Vec::new();
    for i in 0..=kills.len() {
        let started_at = START + 0.005 * i as f64;
        let kill = kills.get(i);
        let mut events = vec![("run_started", None), ("step_started", Some(2))];
        match (i, kill) {
            (0, _) => events.insert(0, ("task_created", None)),
            _ => events.insert(0, ("step_recovered", Some(2))),
        }
        if kill.is_none() {
            events.extend([("step_finished", Some(2)), ("task_done", None)]);
        }
        let event = |(nth, (kind, step)): (usize, (&str, _))| TimelineEvent {
            ts: started_at + 0.003 + 0.0002 * nth as f64 - if kind == "task_created" { 0.004 } else { 0.0 },
            kind: kind.to_owned(),
            step,
        };
        runs.push(RunTimeline {
            run: kill.map_or(format!("run {} of t1", i + 1), |kill| format!("run {} of t1 ({kill})", i + 1)),
            started_at,
            ended_at: started_at + 0.004,
            ended: if kill.is_some() { "signal 9 (SIGKILL)" } else { "exit 0" }.to_owned(),
            killed: kill.is_some(),
            events: events.into_iter().enumerate().map(event).collect(),
        });
    }
    runs
}

/// One of the thousands that held, as it is kept.
pub(super) fn nested() -> ScenarioReport {
    let kills = ["recover.swept", "commit.done:2"];
    let title = "killed at recover.swept, then at commit.done:2, resumed".to_owned();
    let of = scenario("nested", "report", &kills);
    ScenarioReport { title, duration_s: 0.012, replay: String::new(), timeline: Vec::new(), ..of }
}

/// Three runners at once.
fn race() -> ScenarioReport {
    let mut race = scenario("race", "report", &[]);
    "eight at once".clone_into(&mut race.title);
    for (i, ended) in ["exit 3", "exit 3"].into_iter().enumerate() {
        let mut loser = race.timeline[0].clone();
        loser.run = format!("run {} of t1", i + 2);
        loser.started_at += 0.0005;
        loser.ended = ended.to_owned();
        loser.events.clear();
        race.timeline.push(loser);
    }
    race
}

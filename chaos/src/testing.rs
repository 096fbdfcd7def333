//! Evidence made by hand, for the tests of the judges: a tiny honest agent in memory plays the report plan, and a test
//! then bends what it left behind.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::json;

use crate::agent::process::{Ended, Outcome};
use crate::case::plan::PlanCase;
use crate::case::promise::Promise;
use crate::case::{TASK, inbox, world};
use crate::judge;
use crate::judge::verdict::Verdict;
use crate::look::evidence::{Baseline, Evidence, Expect, RunRecord, TaskEnd};
use crate::look::snapshot::Snapshot;
use crate::look::tables::{EventRow, StepRow, Tables, TaskRow};
use crate::schedule::{CrashPoint, Kill};

/// Where the inbox puts its report.
const REPORT: &str = "report.json";

/// The one file that the report plan makes.
pub(crate) const ARTIFACT: &str = "artifacts/t1-2.md";

/// A scenario that could have happened, and its baseline.
pub(crate) struct Story {
    pub(crate) evidence: Evidence,
    pub(crate) baseline: Baseline,
}

impl Story {
    /// One run, nothing killed.
    pub(crate) fn clean() -> Self {
        Self::of(&PlanCase::report(), None)
    }

    /// Killed at one of the contract's points, then resumed to the end.
    pub(crate) fn killed_at(point: &str) -> Self {
        Self::of(&PlanCase::report(), Some(point.parse().expect("a point")))
    }

    /// An inbox task, nothing killed.
    pub(crate) fn inbox() -> Self {
        Self::of(&inbox::case(), None)
    }

    /// An inbox task, killed at one of the contract's points or at `report.published`, then resumed to the end.
    pub(crate) fn inbox_killed_at(point: &str) -> Self {
        Self::of(&inbox::case(), Some(point.parse().expect("a point")))
    }

    /// An effect of this class, killed at one of the contract's points, then resumed to the end by an agent that
    /// repeats it under its key.
    pub(crate) fn of_promise(promise: Promise, point: &str) -> Self {
        let case = world::cases().into_iter().find(|case| case.kind.promise(0) == Some(promise)).expect("a case");
        Self::of(&case, Some(point.parse().expect("a point")))
    }

    fn of(case: &PlanCase, point: Option<CrashPoint>) -> Self {
        let clean = play(case, None);
        let steps = clean.case.steps.len();
        Self {
            evidence: play(case, point),
            baseline: Baseline { evidence: clean, comparable: vec![true; steps], between: BTreeMap::new() },
        }
    }

    /// The folder after run number `run`.
    pub(crate) fn after(&mut self, run: usize) -> &mut Snapshot {
        self.evidence.runs[run].after.as_mut().expect("a look")
    }

    /// The folder in the end.
    pub(crate) fn last(&mut self) -> &mut Snapshot {
        self.after(self.evidence.runs.len() - 1)
    }

    /// The lines of the action log after run number `run`, to be bent.
    pub(crate) fn bend_log(&mut self, run: usize, bend: impl FnOnce(&mut Vec<String>)) {
        let log = self.after(run).log.as_mut().expect("a log");
        let mut lines = String::from_utf8(std::mem::take(log)).expect("text").lines().map(str::to_owned).collect();
        bend(&mut lines);
        log.extend(lines.into_iter().flat_map(|line| format!("{line}\n").into_bytes()));
    }

    /// The files of the baseline.
    pub(crate) fn baseline_world(&mut self) -> &mut BTreeMap<String, Vec<u8>> {
        let last = self.baseline.evidence.runs.last_mut().expect("a run");
        &mut last.after.as_mut().expect("a look").world
    }

    /// The `nth` event of a kind in the last journal.
    pub(crate) fn event(&mut self, kind: &str, nth: usize) -> &mut EventRow {
        let events = self.last().tables.events.iter_mut();
        events.filter(|e| e.kind == kind).nth(nth).expect("an event")
    }

    /// Puts an event before the `nth` one of the kind `before`, in its run.
    pub(crate) fn insert_event(&mut self, kind: &str, step: Option<usize>, before: &str, nth: usize) {
        let mut event = self.event(before, nth).clone();
        let at = event.seq;
        event.kind = kind.to_owned();
        event.step = step;
        event.data = "{}".to_owned();
        let events = &mut self.last().tables.events;
        for later in events.iter_mut().filter(|e| e.seq >= at) {
            later.seq += 1;
        }
        events.push(event);
        events.sort_by_key(|e| e.seq);
    }

    /// Takes the last event of a kind out of the last journal.
    pub(crate) fn remove_event(&mut self, kind: &str) {
        let events = &mut self.last().tables.events;
        let at = events.iter().rposition(|e| e.kind == kind);
        events.remove(at.expect("an event"));
    }
}

pub(crate) fn verdict(name: &str, story: &Story) -> Verdict {
    let judge = judge::ALL.iter().find(|judge| judge.name == name);
    (judge.expect("a judge").check)(&story.evidence, &story.baseline)
}

pub(crate) fn holds(name: &str, story: &Story) {
    assert_eq!(verdict(name, story), Verdict::Holds);
}

pub(crate) fn breaks(name: &str, story: &Story, why: &str) {
    match verdict(name, story) {
        Verdict::Violated(text) if text.contains(why) => {}
        other => panic!("{name} must complain about `{why}`, it says {other:?}"),
    }
}

pub(crate) fn misses(name: &str, story: &Story, why: &str) {
    match verdict(name, story) {
        Verdict::NotReached(text) if text.contains(why) => {}
        other => panic!("{name} must miss with `{why}`, it says {other:?}"),
    }
}

pub(crate) fn outcome(ended: Ended) -> Outcome {
    Outcome {
        started_at: 1.0,
        ended_at: 2.0,
        ended,
        stdout: String::new(),
        stderr: String::new(),
        survivors: Vec::new(),
    }
}

fn play(case: &PlanCase, point: Option<CrashPoint>) -> Evidence {
    let case = Arc::new(case.clone());
    let mut agent = Agent(Snapshot::default(), false, Arc::clone(&case));
    if case.kind.is_created() {
        agent.create("run0");
    }
    let created = agent.0.clone();
    let mut runs = Vec::new();
    if let Some(point) = point {
        agent.run("run1", Some(&point));
        runs.push(RunRecord {
            task: TASK.to_owned(),
            kill: Some(Kill::Point(point)),
            expect: Expect::Dies,
            outcome: outcome(Ended::Signaled(9)),
            signalled: false,
            after: Some(agent.0.clone()),
        });
    }
    agent.run("run2", None);
    runs.push(RunRecord {
        task: TASK.to_owned(),
        kill: None,
        expect: Expect::Ends(0),
        outcome: outcome(Ended::Exited(0)),
        signalled: false,
        after: Some(agent.0),
    });
    Evidence {
        case,
        tasks: vec![TASK.to_owned()],
        end: TaskEnd::Done,
        creates: if created.tables.tasks.is_empty() { Vec::new() } else { vec![outcome(Ended::Exited(0))] },
        created,
        runs,
        observed: Vec::new(),
        strays: Vec::new(),
    }
}

/// The folder, whether the last effect was there already, and the plan.
struct Agent(Snapshot, bool, Arc<PlanCase>);

impl Agent {
    fn create(&mut self, run: &str) {
        let case = Arc::clone(&self.2);
        let step = |(idx, spec): (usize, &crate::case::plan::StepSpec)| StepRow {
            task: TASK.to_owned(),
            idx,
            tool: spec.tool.clone(),
            input: spec.input.clone(),
            status: "pending".to_owned(),
            output: None,
            attempts: 0,
        };
        self.0.tables = Tables {
            tasks: vec![TaskRow { id: TASK.to_owned(), goal: case.goal.clone(), status: "pending".to_owned() }],
            steps: case.steps.iter().enumerate().map(step).collect(),
            events: Vec::new(),
        };
        self.0.own_files = vec!["state.db".to_owned()];
        self.journal(run, "task_created", None, &json!({ "steps": case.steps.len() }));
    }

    fn run(&mut self, run: &str, kill: Option<&CrashPoint>) {
        if self.0.tables.tasks.is_empty() {
            self.create(run);
        }
        let interrupted = self.0.tables.with_status(TASK, "running");
        for &idx in &interrupted {
            self.0.tables.steps[idx].status = "pending".to_owned();
            self.journal(run, "step_recovered", Some(idx), &json!({}));
        }
        self.journal(run, "run_started", None, &json!({ "recovered": interrupted }));
        for idx in 0..self.0.tables.steps.len() {
            if self.0.tables.steps[idx].status == "done" {
                continue;
            }
            for (site, act) in [
                ("before_effect", Self::start as fn(&mut Self, &str, usize)),
                ("after_effect", Self::effect),
                ("after_commit", Self::finish),
            ] {
                act(self, run, idx);
                if kill.is_some_and(|kill| *kill == CrashPoint::new(site, idx)) {
                    return;
                }
            }
        }
        if self.2.kind.log().is_some() {
            let report = inbox::results(&self.2.files).to_string();
            self.0.world.insert(REPORT.to_owned(), report.into_bytes());
            if kill.is_some_and(|kill| kill.site == "report.published") {
                return;
            }
        }
        self.0.tables.tasks[0].status = "done".to_owned();
        self.journal(run, "task_done", None, &json!({}));
    }

    fn start(&mut self, run: &str, idx: usize) {
        self.0.tables.tasks[0].status = "running".to_owned();
        let step = &mut self.0.tables.steps[idx];
        step.status = "running".to_owned();
        step.attempts += 1;
        let data = json!({ "attempt": step.attempts, "tool": step.tool });
        self.journal(run, "step_started", Some(idx), &data);
    }

    fn effect(&mut self, _: &str, idx: usize) {
        if self.2.kind.promise(idx).is_some() {
            self.0.world.insert(world::file_of(TASK, idx), b"once\n".to_vec());
        } else if idx == 2 && self.2.kind.log().is_none() {
            self.0.world.insert(ARTIFACT.to_owned(), b"summary".to_vec());
            let now = std::time::SystemTime::UNIX_EPOCH;
            self.1 = self.0.written.insert(ARTIFACT.to_owned(), now).is_some();
        }
    }

    fn finish(&mut self, run: &str, idx: usize) {
        let step = &mut self.0.tables.steps[idx];
        step.status = "done".to_owned();
        step.output = Some(match (self.2.kind.log().is_some(), idx) {
            (true, _) => inbox::results(&self.2.files)[idx].clone(),
            (false, _) if self.2.kind.promise(idx).is_some() => world::output_of(self.2.kind, TASK, idx),
            (false, 1) => json!({ "summary": "summary", "engine": "stub" }),
            (false, _) => json!({ "path": ARTIFACT, "deduplicated": self.1 }),
        });
        let data = json!({ "tool": step.tool });
        self.journal(run, "step_finished", Some(idx), &data);
    }

    fn journal(&mut self, run: &str, kind: &str, step: Option<usize>, data: &serde_json::Value) {
        let events = &mut self.0.tables.events;
        let seq = events.len() as i64 + 1;
        events.push(EventRow {
            seq,
            ts: 1.5,
            task: TASK.to_owned(),
            run: run.to_owned(),
            kind: kind.to_owned(),
            step,
            data: data.to_string(),
        });
        if self.2.kind.log().is_some() {
            self.log(run, kind, step, seq);
        }
    }

    fn log(&mut self, run: &str, kind: &str, step: Option<usize>, seq: i64) {
        let created_here = self.0.tables.events[0].run == run;
        let event = match kind {
            "step_finished" => "step_done",
            "run_started" if created_here => return,
            "run_started" => "task_resumed",
            "step_recovered" => return,
            same => same,
        };
        let mut line = json!({ "event": event, "task": TASK, "ts": 1.5, "seq": seq, "run": run });
        if let Some(step) = step {
            line["idx"] = step.into();
            line["name"] = inbox::note_of(&self.2, step).into();
        }
        if kind == "task_created" {
            line["steps"] = self.2.steps.len().into();
        }
        let log = self.0.log.get_or_insert_default();
        log.extend(format!("{line}\n").bytes());
    }
}

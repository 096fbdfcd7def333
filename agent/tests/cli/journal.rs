//! The five properties, judged from the outside by a reader of the contract that shares no code with the agent.

use std::collections::BTreeMap;

use fixtures::contract;
use serde_json::Value;

use crate::lab::Lab;

/// A journal by kind and step: `step_started:0`, `task_done`.
pub(crate) fn kinds(journal: &[Value]) -> Vec<String> {
    journal
        .iter()
        .map(|event| match &event["step"] {
            Value::Null => event["kind"].as_str().unwrap().to_owned(),
            step => format!("{}:{step}", event["kind"].as_str().unwrap()),
        })
        .collect()
}

/// How often a kind stands in the journal for a step.
pub(crate) fn count(journal: &[Value], kind_and_step: &str) -> usize {
    kinds(journal).iter().filter(|kind| *kind == kind_and_step).count()
}

/// The list of recovered steps in each `run_started`.
pub(crate) fn recovered(journal: &[Value]) -> Vec<Vec<u64>> {
    let runs = journal.iter().filter(|event| event["kind"] == "run_started");
    runs.map(|run| run["recovered"].as_array().unwrap().iter().map(|step| step.as_u64().unwrap()).collect()).collect()
}

/// Checks the journal of a task in itself and against what `status` and `verify` say. An open step is one that was
/// started and is not closed, which is right only after a kill.
#[track_caller]
pub(crate) fn assert_sound(lab: &Lab, task: &str, open: Option<u64>) {
    let journal = lab.journal(task);
    assert_eq!(faults(&journal, open), Vec::<String>::new(), "{:#?}", kinds(&journal));
    for (index, (status, attempts)) in (0..).zip(lab.steps(task)) {
        let (starts, ends) =
            (count(&journal, &format!("step_started:{index}")), count(&journal, &format!("step_finished:{index}")));
        assert_eq!(attempts, starts as u64, "attempts are starts");
        assert_eq!(usize::from(status == "done"), ends, "step {index} is {status}");
    }
    lab.agent(["verify", task]).exits(0);
}

/// What is wrong with a journal.
fn faults(journal: &[Value], open: Option<u64>) -> Vec<String> {
    let mut faults = Vec::new();
    let mut running: Option<u64> = None;
    let mut runs: BTreeMap<String, usize> = BTreeMap::new();
    let mut last = 0;
    for event in journal {
        let (kind, step) = (event["kind"].as_str().unwrap(), event["step"].as_u64());
        let seq = event["seq"].as_u64().unwrap();
        if seq <= last {
            faults.push(format!("{seq} after {last}"));
        }
        last = seq;
        if contract::EVENT_KINDS_CLOSING.contains(&kind) && (step.is_none() || running.take() != step) {
            faults.push(format!("{seq}: {kind} closes step {step:?}, which is not open"));
        }
        if kind == "step_started" && running.replace(step.unwrap()).is_some() {
            faults.push(format!("{seq}: a step begins while another is open"));
        }
        if kind == "run_started" {
            *runs.entry(event["run"].to_string()).or_default() += 1;
        }
    }
    if running != open {
        faults.push(format!("step {running:?} is open at the end, {open:?} should be"));
    }
    faults.extend(runs.into_iter().filter(|(_, count)| *count != 1).map(|(run, _)| format!("run {run} began twice")));
    faults
}

#[test]
fn the_judge_of_journals_rejects_what_is_wrong() {
    let event = |seq: u64, kind: &str, step: Option<u64>| serde_json::json!({"seq": seq, "kind": kind, "step": step, "run": "r"});
    let good = [event(1, "task_created", None), event(2, "run_started", None), event(3, "step_started", Some(0))];
    let closed = [&good[..], &[event(4, "step_finished", Some(0)), event(5, "task_done", None)]].concat();
    assert_eq!(faults(&good, Some(0)), Vec::<String>::new());
    assert_eq!(faults(&closed, None), Vec::<String>::new());
    for (journal, open) in [
        (good.to_vec(), None),
        ([&good[..], &[event(4, "step_started", Some(0))]].concat(), Some(0)),
        ([&good[..], &[event(4, "step_finished", Some(1))]].concat(), None),
        ([&closed[..], &[event(6, "step_recovered", Some(0))]].concat(), None),
        ([&closed[..], &[event(6, "run_started", None)]].concat(), None),
        ([&good[..], &[event(3, "step_error", Some(0))]].concat(), None),
    ] {
        assert_ne!(faults(&journal, open), Vec::<String>::new(), "{journal:?}");
    }
}

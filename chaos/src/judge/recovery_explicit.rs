//! Recovery is explicit: a step is journaled as recovered exactly where the kill landed inside it (after its `running`
//! commit, before its `done` commit), and the `run_started` of the same run lists the same steps.

use std::collections::BTreeSet;

use crate::judge::verdict::Verdict;
use crate::look::evidence::{Baseline, Evidence};
use crate::look::tables::{EventRow, Tables};
use crate::schedule::{CrashPoint, Kill};

type Steps = BTreeSet<usize>;

pub(super) fn check(evidence: &Evidence, _: &Baseline) -> Verdict {
    let mut complaints = Vec::new();
    for (i, run) in evidence.runs.iter().enumerate() {
        let Some(after) = &run.after else { continue };
        let label = evidence.label(i);
        let before = &evidence.before(i).tables;
        let new: Vec<&EventRow> = new_events(before, &after.tables, &run.task);
        let interrupted = before.with_status(&run.task, "running").into_iter().collect();
        recovered_what_was_interrupted(&interrupted, &new, &label, &mut complaints);
        others_untouched(before, &after.tables, &run.task, &label, &mut complaints);
        if let (true, Some(Kill::Point(point))) = (run.was_killed(), &run.kill) {
            landed(point, &after.tables, &run.task, &label, &mut complaints);
        }
    }
    Verdict::of(&complaints)
}

fn new_events<'a>(before: &Tables, after: &'a Tables, task: &'a str) -> Vec<&'a EventRow> {
    let known = before.events.last().map_or(0, |event| event.seq);
    after.events_of(task).filter(|event| event.seq > known).collect()
}

fn recovered_what_was_interrupted(interrupted: &Steps, new: &[&EventRow], label: &str, complaints: &mut Vec<String>) {
    let Some(begin) = new.iter().position(|event| event.kind == "run_started") else {
        // Recovery and run_started are one transaction, so there is neither.
        if let Some(event) = new.iter().find(|event| event.kind == "step_recovered") {
            complaints.push(format!("{label}: {} without a run_started", event.describe()));
        }
        return;
    };
    let recovered: Vec<usize> = new.iter().filter(|e| e.kind == "step_recovered").filter_map(|e| e.step).collect();
    let as_set: Steps = recovered.iter().copied().collect();
    if as_set != *interrupted || recovered.len() != as_set.len() {
        complaints.push(format!(
            "{label}: interrupted were the steps {interrupted:?}, journaled as recovered are {recovered:?}"
        ));
    }
    let listed = new[begin].field("recovered");
    let as_listed: Option<Vec<usize>> = serde_json::from_value(listed.clone()).ok();
    if as_listed.map(|list| list.into_iter().collect()).as_ref() != Some(interrupted) {
        complaints.push(format!("{label}: interrupted were the steps {interrupted:?}, run_started says {listed}"));
    }
    for event in new[begin..].iter().filter(|event| event.kind == "step_recovered") {
        complaints.push(format!("{label}: {} comes after run_started", event.describe()));
    }
}

/// A run recovers its own task and no other. Where runs of several tasks were at work, each recovery is that of a run
/// that has announced itself for its task.
fn others_untouched(before: &Tables, after: &Tables, task: &str, label: &str, complaints: &mut Vec<String>) {
    let known = before.events.last().map_or(0, |event| event.seq);
    let new = || after.events.iter().filter(|event| event.seq > known);
    let own = |recovery: &EventRow| {
        new().any(|event| event.kind == "run_started" && (&event.task, &event.run) == (&recovery.task, &recovery.run))
    };
    let foreign = new().filter(|event| event.task != task && event.kind == "step_recovered" && !own(event));
    for event in foreign {
        complaints.push(format!("{label}: {} belongs to the task {}", event.describe(), event.task));
    }
}

/// The contract's points lie where the contract says.
fn landed(point: &CrashPoint, after: &Tables, task: &str, label: &str, complaints: &mut Vec<String>) {
    let (true, Some(step)) = (point.is_of_contract(), point.step) else {
        return;
    };
    let must = if point.site == "after_commit" { "done" } else { "running" };
    let status = after.step(task, step).map_or("gone", |row| &row.status);
    if status != must {
        complaints.push(format!("{label}: killed there, step {step} is {status} and not {must}"));
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{Story, breaks, holds};

    #[test]
    fn recovery_exactly_inside_the_step_is_accepted() {
        for point in ["before_effect:1", "after_effect:1", "after_commit:1", "after_commit:2"] {
            holds("recovery_explicit", &Story::killed_at(point));
        }
    }

    #[test]
    fn a_recovery_that_is_not_journaled_is_rejected() {
        let mut story = Story::killed_at("after_effect:1");
        story.remove_event("step_recovered");
        breaks("recovery_explicit", &story, "journaled as recovered are []");
    }

    #[test]
    fn a_recovery_after_the_commit_is_rejected() {
        let mut story = Story::killed_at("after_commit:1");
        story.insert_event("step_recovered", Some(1), "run_started", 1);
        breaks("recovery_explicit", &story, "interrupted were the steps {}");
    }

    #[test]
    fn a_run_started_that_lists_other_steps_is_rejected() {
        let mut story = Story::killed_at("after_effect:1");
        story.event("run_started", 1).data = "{\"recovered\": []}".to_owned();
        breaks("recovery_explicit", &story, "run_started says []");
    }

    #[test]
    fn a_recovery_after_run_started_is_rejected() {
        let mut story = Story::killed_at("after_effect:1");
        story.remove_event("step_recovered");
        story.insert_event("step_recovered", Some(1), "step_started", 2);
        breaks("recovery_explicit", &story, "comes after run_started");
    }

    #[test]
    fn a_point_that_lies_elsewhere_is_rejected() {
        let mut story = Story::killed_at("after_effect:1");
        story.after(0).tables.steps[1].status = "done".to_owned();
        breaks("recovery_explicit", &story, "is done and not running");
    }

    #[test]
    fn recovering_a_neighbour_is_rejected() {
        let mut story = Story::killed_at("after_effect:1");
        story.insert_event("step_recovered", Some(1), "run_started", 1);
        let last = story.last().tables.events.iter().rposition(|e| e.kind == "step_recovered");
        story.last().tables.events[last.expect("an event")].task = "t2".to_owned();
        breaks("recovery_explicit", &story, "belongs to the task t2");
        // A run of the neighbour at the same time, in whose name it is.
        let mut announced = story.event("run_started", 1).clone();
        announced.task = "t2".to_owned();
        announced.run = "run9".to_owned();
        announced.seq += 100;
        story.last().tables.events.push(announced);
        breaks("recovery_explicit", &story, "belongs to the task t2");
        story.last().tables.events[last.expect("an event")].run = "run9".to_owned();
        holds("recovery_explicit", &story);
    }
}

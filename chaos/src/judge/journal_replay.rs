//! The journal replayed from its start gives the state in the tables: at the end, after each kill, and in every look at
//! a run that is at work. Counters of attempts are another judge's business.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::judge::verdict::Verdict;
use crate::look::evidence::{Baseline, Evidence};
use crate::look::tables::{EventRow, Tables};

pub(super) fn check(evidence: &Evidence, _: &Baseline) -> Verdict {
    let mut complaints = Vec::new();
    for (when, tables) in evidence.all_tables() {
        let why = replay_complaints(tables);
        complaints.extend(why.into_iter().map(|why| format!("{when}: {why}")));
    }
    Verdict::of(&complaints)
}

/// A task's state as the journal tells it.
#[derive(Default)]
struct Told {
    task: &'static str,
    steps: BTreeMap<usize, &'static str>,
}

/// What differs between the tables and their own journal, replayed.
fn replay_complaints(tables: &Tables) -> Vec<String> {
    let mut complaints = Vec::new();
    for row in &tables.tasks {
        let mut told = Told::default();
        for event in tables.events_of(&row.id) {
            told.take(event);
        }
        if row.status != told.task {
            complaints.push(format!("{} is {}, replayed it is {}", row.id, row.status, told.task));
        }
        for step in tables.steps_of(&row.id) {
            let status = told.steps.get(&step.idx).copied().unwrap_or("pending");
            if step.status != status {
                complaints.push(format!("step {} of {} is {}, replayed it is {status}", step.idx, row.id, step.status));
            }
        }
    }
    let orphan = |event: &&EventRow| tables.task(&event.task).is_none();
    for event in tables.events.iter().filter(orphan) {
        complaints.push(format!("{} is of the unknown task {}", event.describe(), event.task));
    }
    complaints
}

impl Told {
    fn take(&mut self, event: &EventRow) {
        let says = |field: &str| serde_json::from_str::<Value>(&event.data).unwrap_or_default()[field].clone();
        match event.kind.as_str() {
            "task_created" => self.task = "pending",
            "task_done" => self.task = "done",
            "task_cancelled" => self.task = "cancelled",
            "step_started" => {
                self.task = "running";
                self.set(event, "running");
            }
            "step_finished" => self.set(event, "done"),
            "step_skipped" => self.goes_on(event, "skipped"),
            "step_failed" => self.goes_on(event, "failed"),
            "step_error" if says("retry_at").is_number() => self.both(event, "waiting"),
            "step_recovered" | "step_error" | "step_released" | "answer_given" => self.goes_on(event, "pending"),
            "step_waiting" => self.both(event, "waiting"),
            "step_in_doubt" => self.both(event, "in_doubt"),
            "doubt_resolved" if says("word") == "happened" => self.goes_on(event, "done"),
            "doubt_resolved" => self.goes_on(event, "pending"),
            "completion_started" => self.task = "running",
            "task_failed" => self.both(event, "failed"),
            "task_retried" => self.both(event, "pending"),
            _ => {}
        }
    }

    fn both(&mut self, event: &EventRow, status: &'static str) {
        self.task = status;
        self.set(event, status);
    }

    /// A task whose step no longer waits, and is not started yet, is as one that has not begun.
    fn goes_on(&mut self, event: &EventRow, status: &'static str) {
        if matches!(self.task, "waiting" | "in_doubt") {
            self.task = "pending";
        }
        self.set(event, status);
    }

    fn set(&mut self, event: &EventRow, status: &'static str) {
        if let Some(idx) = event.step {
            self.steps.insert(idx, status);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{Story, breaks, holds};

    const NAME: &str = "journal_replay";

    #[test]
    fn tables_that_follow_from_the_journal_are_accepted() {
        for point in ["before_effect:0", "after_effect:1", "after_commit:2"] {
            holds(NAME, &Story::killed_at(point));
        }
    }

    #[test]
    fn a_state_without_its_event_is_rejected_at_the_moment_of_the_kill() {
        let mut story = Story::killed_at("after_commit:0");
        story.after(0).tables.events.pop();
        breaks(NAME, &story, "step 0 of t1 is done, replayed it is running");
    }

    #[test]
    fn an_event_without_its_state_is_rejected() {
        let mut story = Story::killed_at("after_effect:1");
        story.after(0).tables.steps[1].status = "pending".to_owned();
        breaks(NAME, &story, "is pending, replayed it is running");
        let mut story = Story::clean();
        story.last().tables.tasks[0].status = "running".to_owned();
        breaks(NAME, &story, "t1 is running, replayed it is done");
    }

    #[test]
    fn a_step_that_was_given_back_waits_in_the_tables_too() {
        let mut story = Story::killed_at("before_effect:1");
        let left = story.after(0);
        let mut event = left.tables.events[left.tables.events.len() - 1].clone();
        (event.seq, event.kind) = (event.seq + 1, "step_released".to_owned());
        left.tables.events.push(event);
        breaks(NAME, &story, "step 1 of t1 is running, replayed it is pending");
        story.after(0).tables.steps[1].status = "pending".to_owned();
        holds(NAME, &story);
    }

    #[test]
    fn a_step_that_waits_does_so_in_the_tables_too() {
        for (kind, data, status) in [
            ("step_waiting", r#"{"for":"time","until":9.5}"#, "waiting"),
            ("step_error", r#"{"error":"busy","retry_at":9.5}"#, "waiting"),
            ("step_in_doubt", r#"{"known":"nothing"}"#, "in_doubt"),
        ] {
            let mut story = Story::killed_at("before_effect:1");
            let left = story.after(0);
            let mut event = left.tables.events[left.tables.events.len() - 1].clone();
            (event.seq, event.kind, event.data) = (event.seq + 1, kind.to_owned(), data.to_owned());
            left.tables.events.push(event);
            breaks(NAME, &story, &format!("step 1 of t1 is running, replayed it is {status}"));
            let tables = &mut story.after(0).tables;
            (tables.tasks[0].status, tables.steps[1].status) = (status.to_owned(), status.to_owned());
            holds(NAME, &story);
        }
    }

    #[test]
    fn events_of_nobody_are_rejected() {
        let mut story = Story::clean();
        story.event("task_done", 0).task = "t9".to_owned();
        breaks(NAME, &story, "unknown task t9");
    }

    #[test]
    fn live_looks_are_judged_too() {
        let mut story = Story::clean();
        let mut live = story.last().tables.clone();
        live.events.pop();
        story.evidence.observed.push(live);
        breaks(NAME, &story, "in live look 1");
    }
}

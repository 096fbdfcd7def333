//! The task resumes and does not restart: a step that was committed before a kill never runs again, and nothing is
//! planned again.

use crate::judge::verdict::Verdict;
use crate::look::evidence::{Baseline, Evidence};
use crate::look::tables::Tables;

pub(super) fn check(evidence: &Evidence, _: &Baseline) -> Verdict {
    let mut complaints = Vec::new();
    for (i, run) in evidence.runs.iter().enumerate() {
        if let Some(after) = &run.after {
            let before = &evidence.before(i).tables;
            committed_ran_again(before, &after.tables, &evidence.label(i), &mut complaints);
        }
    }
    for task in &evidence.tasks {
        in_the_journal(&evidence.last().tables, task, &mut complaints);
    }
    Verdict::of(&complaints)
}

/// What the tables called committed before a run must not be started by it.
fn committed_ran_again(before: &Tables, after: &Tables, label: &str, complaints: &mut Vec<String>) {
    let known = before.events.last().map_or(0, |event| event.seq);
    let started = after.events.iter().filter(|event| event.seq > known && event.kind == "step_started");
    for event in started {
        if event.step.is_some_and(|step| before.is_done(&event.task, step)) {
            complaints.push(format!(
                "{label}: event {} of {} starts a step that was committed before",
                event.describe(),
                event.task
            ));
        }
    }
}

/// The journal alone must tell the same.
fn in_the_journal(tables: &Tables, task: &str, complaints: &mut Vec<String>) {
    let mut finished = Vec::new();
    let mut created = 0;
    for event in tables.events_of(task) {
        match (event.kind.as_str(), event.step) {
            ("task_created", _) => created += 1,
            ("step_finished", Some(step)) => {
                if finished.contains(&step) {
                    complaints.push(format!("step {step} of {task} is finished twice in the journal"));
                }
                finished.push(step);
            }
            ("step_started", Some(step)) if finished.contains(&step) => complaints
                .push(format!("event {} of {task} starts a step that is finished in the journal", event.describe())),
            _ => {}
        }
    }
    if created != 1 {
        complaints.push(format!("{task} has {created} task_created, not one"));
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{Story, breaks, holds};

    #[test]
    fn a_step_that_was_interrupted_may_run_again() {
        holds("resumes_not_restarts", &Story::killed_at("after_effect:1"));
        holds("resumes_not_restarts", &Story::killed_at("after_commit:1"));
    }

    #[test]
    fn a_committed_step_that_runs_again_is_rejected() {
        let mut story = Story::killed_at("after_commit:0");
        story.insert_event("step_started", Some(0), "step_started", 1);
        breaks("resumes_not_restarts", &story, "committed before");
    }

    #[test]
    fn a_second_finish_and_a_second_plan_are_rejected() {
        let mut story = Story::clean();
        story.insert_event("step_finished", Some(0), "task_done", 0);
        breaks("resumes_not_restarts", &story, "finished twice");

        let mut story = Story::killed_at("before_effect:0");
        story.insert_event("task_created", None, "task_done", 0);
        breaks("resumes_not_restarts", &story, "2 task_created");
    }
}

//! After a kill the database still holds the task, its plan and the output of every committed step; and what is `done`
//! has an output, at every moment.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::judge::verdict::Verdict;
use crate::look::evidence::{Baseline, Evidence, TaskEnd};
use crate::look::tables::{StepRow, Tables};

/// Outputs committed so far: (task, step) -> output.
type Committed = BTreeMap<(String, usize), Value>;

pub(super) fn check(evidence: &Evidence, _: &Baseline) -> Verdict {
    let mut complaints = Vec::new();
    let mut committed = Committed::new();
    let mut stored = BTreeSet::new();
    for (when, snapshot) in evidence.snapshots() {
        // What its first run creates is not there before, and never gone after.
        stored.extend(evidence.tasks.iter().filter(|task| snapshot.tables.task(task).is_some()));
        let must = |task: &&String| evidence.case.kind.is_created() || stored.contains(task);
        for task in evidence.tasks.iter().filter(must) {
            plan_stands(evidence, &snapshot.tables, task, &when, &mut complaints);
        }
        outputs_stand(&mut committed, &snapshot.tables, &when, &mut complaints);
    }
    for (when, tables) in evidence.all_tables() {
        for step in &tables.steps {
            if step.status == "done" && step.output.is_none() {
                complaints.push(format!("{when}: step {} of {} is done without output", step.idx, step.task));
            }
        }
    }
    if evidence.end == TaskEnd::Done {
        for task in &evidence.tasks {
            all_done(evidence, task, &mut complaints);
        }
    }
    Verdict::of(&complaints)
}

fn plan_stands(evidence: &Evidence, tables: &Tables, task: &str, when: &str, complaints: &mut Vec<String>) {
    let case = &evidence.case;
    match tables.task(task) {
        None => return complaints.push(format!("{when}: the task {task} is gone")),
        Some(row) if row.goal != case.goal => {
            complaints.push(format!("{when}: the goal of {task} is {:?}", row.goal));
        }
        Some(_) => {}
    }
    let steps: Vec<_> = tables.steps_of(task).collect();
    if steps.len() != case.steps.len() {
        let (is, was) = (steps.len(), case.steps.len());
        complaints.push(format!("{when}: {task} has {is} steps, its plan has {was}"));
    }
    for (step, spec) in steps.iter().zip(&case.steps) {
        if step.tool != spec.tool || step.input != spec.input {
            complaints.push(format!(
                "{when}: step {} of {task} is {} {}, planned was {} {}",
                step.idx, step.tool, step.input, spec.tool, spec.input
            ));
        }
    }
}

fn outputs_stand(committed: &mut Committed, tables: &Tables, when: &str, complaints: &mut Vec<String>) {
    for ((task, idx), output) in committed.iter() {
        let now = tables.step(task, *idx).filter(|row| row.status == "done");
        let now = now.and_then(|row| row.output.as_ref());
        if now != Some(output) {
            let now = now.map_or_else(|| "nothing".to_owned(), ToString::to_string);
            complaints.push(format!("{when}: step {idx} of {task} was committed with {output} and now has {now}"));
        }
    }
    for step in tables.steps.iter().filter(|row| row.status == "done") {
        if let Some(output) = &step.output {
            let key = (step.task.clone(), step.idx);
            committed.entry(key).or_insert_with(|| output.clone());
        }
    }
}

fn all_done(evidence: &Evidence, task: &str, complaints: &mut Vec<String>) {
    let tables = &evidence.last().tables;
    let status = tables.task(task).map_or("gone", |row| &row.status);
    if status != "done" {
        complaints.push(format!("in the end {task} is {status}, not done"));
    }
    let can_end = |row: &StepRow| match evidence.case.steps.get(row.idx) {
        Some(step) => step.can_end(&row.status),
        None => row.status == "done",
    };
    for step in tables.steps_of(task).filter(|row| !can_end(row)) {
        complaints.push(format!("in the end step {} of {task} is {}, not done", step.idx, step.status));
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{Story, breaks, holds};
    use serde_json::json;

    #[test]
    fn an_honest_kill_and_resume_is_accepted() {
        holds("state_preserved", &Story::killed_at("after_commit:0"));
        holds("state_preserved", &Story::killed_at("after_effect:1"));
    }

    #[test]
    fn a_lost_task_a_changed_plan_and_a_changed_output_are_rejected() {
        let mut story = Story::killed_at("after_commit:0");
        story.last().tables.tasks.clear();
        breaks("state_preserved", &story, "is gone");

        let mut story = Story::killed_at("after_commit:0");
        story.last().tables.steps[2].tool = "fetch".to_owned();
        breaks("state_preserved", &story, "planned was write_artifact");

        let mut story = Story::killed_at("after_commit:0");
        story.last().tables.steps.pop();
        breaks("state_preserved", &story, "has 2 steps");

        let mut story = Story::killed_at("after_commit:0");
        story.last().tables.steps[0].output = Some("new".into());
        breaks("state_preserved", &story, "was committed with");
    }

    #[test]
    fn a_task_that_its_run_creates_may_be_missing_before_and_not_after() {
        let mut story = Story::inbox_killed_at("before_effect:0");
        holds("state_preserved", &story);
        story.after(0).tables = Default::default();
        holds("state_preserved", &story);
        let mut story = Story::inbox_killed_at("after_commit:0");
        story.last().tables.tasks.clear();
        breaks("state_preserved", &story, "is gone");
    }

    #[test]
    fn done_without_output_is_rejected_at_any_moment() {
        let mut story = Story::killed_at("after_commit:0");
        story.after(0).tables.steps[0].output = None;
        breaks("state_preserved", &story, "done without output");

        let mut story = Story::clean();
        let mut live = story.last().tables.clone();
        live.steps[1].output = None;
        story.evidence.observed.push(live);
        breaks("state_preserved", &story, "in live look 1");
    }

    /// A plan with a condition could not be put under the lab: what it skips was said not to be done.
    #[test]
    fn a_step_may_end_as_its_plan_allows_and_not_otherwise() {
        for (said, status) in [(json!({ "when": "false" }), "skipped"), (json!({ "on_error": "continue" }), "failed")] {
            let mut story = Story::clean();
            story.last().tables.steps[0].status = status.to_owned();
            breaks("state_preserved", &story, &format!("is {status}, not done"));
            std::sync::Arc::make_mut(&mut story.evidence.case).steps[0].said = said;
            holds("state_preserved", &story);
        }
    }

    #[test]
    fn a_task_that_stops_halfway_is_rejected() {
        let mut story = Story::killed_at("after_commit:0");
        story.last().tables.tasks[0].status = "running".to_owned();
        breaks("state_preserved", &story, "is running, not done");
    }
}

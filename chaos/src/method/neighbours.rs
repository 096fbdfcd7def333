//! Two and six tasks in one database, one of them killed: the others' steps and journals are untouched, those of a
//! finished one, of one that waits and of one that was itself interrupted.

use std::sync::Arc;

use crate::case::TASK;
use crate::error::LabError;
use crate::judge::verdict::Verdict;
use crate::look::evidence::{Evidence, Expect, RunRecord, TaskEnd};
use crate::play::method::Method;
use crate::play::prepared::{Prepared, task_names};
use crate::play::scenario::{Played, Scenario};
use crate::play::stage::{HOLD, Stage};
use crate::schedule::{CrashPoint, Kill, KillSchedule};

/// See the file's head.
pub(super) const METHOD: Method = Method {
    name: "neighbours",
    about: "two and six tasks in one database, one killed: the others are untouched",
    scenarios,
};

fn scenarios(ready: &Arc<Prepared>) -> Result<Vec<Scenario>, LabError> {
    let last = ready.last_step();
    let steps = ready.own_steps();
    let points = CrashPoint::of_contract(ready.case.steps.len());
    let own = points.iter().filter(|point| point.step.is_some_and(|step| steps.contains(&step)));
    let mut all: Vec<Scenario> = own.map(|point| apart(ready, point, 2)).collect();
    if ready.case.example_of.is_none() {
        let late = points.iter().filter(|point| point.step == Some(last));
        all.extend(late.clone().map(|point| apart(ready, point, 6)));
        all.extend(late.map(|point| together(ready, point)));
    }
    Ok(all)
}

/// One after another, so that every change has one suspect.
fn apart(ready: &Arc<Prepared>, point: &CrashPoint, count: usize) -> Scenario {
    let what = format!("{count} tasks, {point}");
    let title = format!("{count} tasks in one database, one killed at {point}, all resumed");
    let schedule = KillSchedule::points([point]);
    let point = point.clone();
    let play = move |ready: &Prepared| play_apart(ready, &point, count);
    Scenario::new(METHOD.name, ready, &what, title, play).kills(schedule)
}

fn play_apart(ready: &Prepared, point: &CrashPoint, count: usize) -> Result<Played, LabError> {
    let tasks = task_names(count);
    let mut stage = Stage::new(&ready.lab, &ready.case, &tasks)?;
    let (finished, rest) = tasks[1..].split_at((count - 1) / 2);
    let (waiting, interrupted) = rest.split_at(rest.len() - 1);
    for task in finished {
        stage.run(task, None, Expect::Ends(0), &[])?;
    }
    for task in interrupted {
        let kill = Kill::Point(CrashPoint::new("after_effect", ready.last_step()));
        stage.run(task, Some(&kill), Expect::Dies, &[])?;
    }
    stage.run(TASK, Some(&Kill::Point(point.clone())), Expect::Dies, &[])?;
    for task in waiting {
        stage.run(task, None, Expect::Ends(0), &[])?;
    }
    stage.run(TASK, None, Expect::Ends(0), &[])?;
    for task in interrupted {
        stage.run(task, None, Expect::Ends(0), &[])?;
    }
    judged(ready, stage.close(TaskEnd::Done), count)
}

/// At the same time: a neighbour is at work while the task is killed.
fn together(ready: &Arc<Prepared>, point: &CrashPoint) -> Scenario {
    let what = format!("together, {point}");
    let title = format!("killed at {point} while a neighbour is at work, resumed");
    let schedule = KillSchedule::points([point]);
    let point = point.clone();
    let play = move |ready: &Prepared| play_together(ready, &point);
    Scenario::new(METHOD.name, ready, &what, title, play).kills(schedule)
}

fn play_together(ready: &Prepared, point: &CrashPoint) -> Result<Played, LabError> {
    let tasks = task_names(2);
    let neighbour = &tasks[1];
    let mut stage = Stage::new(&ready.lab, &ready.case, &tasks)?;
    let delay = [("AGENT_STEP_DELAY", HOLD.to_string())];
    let (running, _) = stage.start_and_wait(neighbour, 0, &delay)?;
    let killed = stage.start(TASK, &[("AGENT_CRASH_AT", point.to_string())])?;
    let outcome = stage.sandbox.finish(killed)?;
    stage.record(RunRecord {
        task: TASK.to_owned(),
        kill: Some(Kill::Point(point.clone())),
        expect: Expect::Dies,
        outcome,
        signalled: false,
        after: None,
    });
    stage.finish(neighbour, running, Expect::Ends(0), true)?;
    stage.run(TASK, None, Expect::Ends(0), &[])?;
    judged(ready, stage.close(TaskEnd::Done), tasks.len())
}

fn judged(ready: &Prepared, evidence: Evidence, count: usize) -> Result<Played, LabError> {
    let baseline = ready.baseline_of_tasks(count)?;
    let untouched = untouched(&evidence);
    let mut played = Played::judged(evidence, &baseline);
    played.and("neighbours_untouched", untouched);
    Ok(played)
}

/// Between two looks at rest only tasks that had a run in between may change.
fn untouched(evidence: &Evidence) -> Verdict {
    let mut complaints = Vec::new();
    let mut before = &evidence.created.tables;
    let mut at_work = Vec::new();
    for (i, run) in evidence.runs.iter().enumerate() {
        at_work.push(&run.task);
        let Some(after) = &run.after else { continue };
        for task in evidence.tasks.iter().filter(|task| !at_work.contains(task)) {
            if before.only(task) != after.tables.only(task) {
                complaints.push(format!("{} changed the task {task}", evidence.label(i)));
            }
        }
        before = &after.tables;
        at_work.clear();
    }
    Verdict::of(&complaints)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Story;

    #[test]
    fn a_run_that_touches_a_neighbour_is_rejected() {
        let mut story = Story::killed_at("after_effect:1");
        story.evidence.tasks.push("t2".to_owned());
        assert!(untouched(&story.evidence).holds());
        let mut event = story.event("step_recovered", 0).clone();
        event.task = "t2".to_owned();
        story.last().tables.events.push(event);
        assert!(!untouched(&story.evidence).holds());
    }
}

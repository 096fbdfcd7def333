//! Two and six tasks in one database and one folder, with ids that are easily
//! taken for each other, one of them killed: the others' steps and journals are
//! untouched, those of a finished one, of one that waits and of one that was
//! itself interrupted.

use std::sync::Arc;

use crate::case::names;
use crate::error::LabError;
use crate::look::evidence::{Evidence, Expect, RunRecord, TaskEnd};
use crate::play::company;
use crate::play::method::Method;
use crate::play::prepared::Prepared;
use crate::play::scenario::{Played, Scenario};
use crate::play::stage::{HOLD, Stage};
use crate::schedule::{CrashPoint, Kill, KillSchedule};

/// See the file's head.
pub(super) const METHOD: Method = Method {
    name: "neighbours",
    about: "tasks with nearly the same id in one database, one killed: the others are untouched",
    scenarios,
};

fn scenarios(ready: &Arc<Prepared>) -> Result<Vec<Scenario>, LabError> {
    let last = ready.last_step();
    let steps = ready.own_steps();
    let points = ready.case.points();
    let own = points.iter().filter(|point| point.step.is_some_and(|step| steps.contains(&step)));
    let mut all: Vec<Scenario> = own.enumerate().map(|(i, point)| apart(ready, point, "two", names::pair(i))).collect();
    if ready.case.example_of.is_none() {
        let late = points.iter().filter(|point| point.step == Some(last)).enumerate();
        all.extend(late.clone().map(|(i, point)| apart(ready, point, "six", names::six(i))));
        all.extend(late.map(|(i, point)| together(ready, point, names::pair(i))));
    }
    Ok(all)
}

/// One after another, so that every change has one suspect.
fn apart(ready: &Arc<Prepared>, point: &CrashPoint, count: &str, tasks: Vec<String>) -> Scenario {
    let what = format!("{count} tasks, {point}");
    let title = format!("tasks {}, the first killed at {point}, all resumed", listed(&tasks));
    let schedule = KillSchedule::points([point]);
    let point = point.clone();
    let play = move |ready: &Prepared| play_apart(ready, &point, &tasks);
    Scenario::new(METHOD.name, ready, &what, title, play).kills(schedule)
}

fn listed(tasks: &[String]) -> String {
    tasks.iter().map(|task| format!("`{task}`")).collect::<Vec<_>>().join(", ")
}

fn play_apart(ready: &Prepared, point: &CrashPoint, tasks: &[String]) -> Result<Played, LabError> {
    if let Some(refused) = company::refused(ready, tasks)? {
        return Ok(refused);
    }
    let first = &tasks[0];
    let mut stage = Stage::new(&ready.lab, &ready.case, tasks)?;
    let (finished, rest) = tasks[1..].split_at((tasks.len() - 1) / 2);
    let (waiting, interrupted) = rest.split_at(rest.len() - 1);
    for task in finished {
        stage.run(task, None, Expect::Ends(0), &[])?;
    }
    for task in interrupted {
        let kill = Kill::Point(CrashPoint::new("after_effect", ready.last_step()));
        stage.run(task, Some(&kill), Expect::Dies, &[])?;
    }
    stage.run(first, Some(&Kill::Point(point.clone())), Expect::Dies, &[])?;
    for task in waiting {
        stage.run(task, None, Expect::Ends(0), &[])?;
    }
    stage.run(first, None, Expect::Ends(0), &[])?;
    for task in interrupted {
        stage.run(task, None, Expect::Ends(0), &[])?;
    }
    judged(ready, stage.close(TaskEnd::Done))
}

/// At the same time: a neighbour is at work while the task is killed.
fn together(ready: &Arc<Prepared>, point: &CrashPoint, tasks: Vec<String>) -> Scenario {
    let what = format!("together, {point}");
    let title = format!("tasks {}, the first killed at {point} while the other is at work, resumed", listed(&tasks));
    let schedule = KillSchedule::points([point]);
    let point = point.clone();
    let play = move |ready: &Prepared| play_together(ready, &point, &tasks);
    Scenario::new(METHOD.name, ready, &what, title, play).kills(schedule)
}

fn play_together(ready: &Prepared, point: &CrashPoint, tasks: &[String]) -> Result<Played, LabError> {
    if let Some(refused) = company::refused(ready, tasks)? {
        return Ok(refused);
    }
    let (first, neighbour) = (&tasks[0], &tasks[1]);
    let mut stage = Stage::new(&ready.lab, &ready.case, tasks)?;
    let delay = [("AGENT_STEP_DELAY", HOLD.to_string())];
    let (running, _) = stage.start_and_wait(neighbour, 0, &delay)?;
    let killed = stage.start(first, &[("AGENT_CRASH_AT", point.to_string())])?;
    let outcome = stage.sandbox.finish(killed)?;
    stage.record(RunRecord {
        task: first.clone(),
        kill: Some(Kill::Point(point.clone())),
        expect: Expect::Dies,
        outcome,
        signalled: false,
        after: None,
    });
    stage.finish(neighbour, running, Expect::Ends(0), true)?;
    stage.run(first, None, Expect::Ends(0), &[])?;
    judged(ready, stage.close(TaskEnd::Done))
}

fn judged(ready: &Prepared, evidence: Evidence) -> Result<Played, LabError> {
    let baseline = ready.baseline_of_tasks(&evidence.tasks)?;
    Ok(company::judged(evidence, &baseline))
}

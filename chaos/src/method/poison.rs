//! A step that kills its process each time ends as failed after the attempt limit, and the journal says so.

use std::sync::Arc;

use crate::case::TASK;
use crate::contract::attempts;
use crate::error::LabError;
use crate::judge::verdict::Verdict;
use crate::look::evidence::{Expect, TaskEnd};
use crate::look::snapshot::Snapshot;
use crate::play::method::Method;
use crate::play::prepared::Prepared;
use crate::play::scenario::{Played, Scenario};
use crate::schedule::{CrashPoint, Kill, KillSchedule};

/// See the file's head.
pub(super) const METHOD: Method = Method {
    name: "poison",
    about: "a step that kills its process each time fails after the attempt limit",
    scenarios,
};

/// Sites inside a step.
const SITES: [&str; 2] = ["before_effect", "after_effect"];

fn scenarios(ready: &Arc<Prepared>) -> Result<Vec<Scenario>, LabError> {
    let mut all = Vec::new();
    // A task that goes on without a step does not fail with it.
    for step in ready.own_steps().into_iter().filter(|&step| !ready.case.steps[step].goes_on()) {
        // The contract's attempt limit where nothing is set, and a limit of our own.
        let planned = &ready.case.steps[step];
        let own = planned.max_attempts().and_then(|own| i64::try_from(own).ok());
        // What the plan says comes before the variable.
        let limits = own.map_or_else(|| vec![(attempts(&planned.tool), false), (1, true)], |own| vec![(own, false)]);
        for site in SITES {
            for &(limit, set) in &limits {
                all.push(scenario(ready, CrashPoint::new(site, step), limit, set));
            }
        }
    }
    Ok(all)
}

fn scenario(ready: &Arc<Prepared>, point: CrashPoint, limit: i64, set: bool) -> Scenario {
    let times = usize::try_from(limit).unwrap_or(1);
    let schedule = KillSchedule::points(std::iter::repeat_n(&point, times));
    let title = format!("killed at {point} each time, given up after {limit} attempts");
    let what = format!("{point} x{limit}");
    let play = move |ready: &Prepared| play(ready, &point, limit, set);
    Scenario::new(METHOD.name, ready, &what, title, play).kills(schedule)
}

fn play(ready: &Prepared, point: &CrashPoint, limit: i64, set: bool) -> Result<Played, LabError> {
    let mut stage = ready.stage()?;
    let mut env = Vec::new();
    if set {
        env.push(("AGENT_MAX_ATTEMPTS", limit.to_string()));
    }
    for _ in 0..limit {
        let kill = Kill::Point(point.clone());
        stage.run(TASK, Some(&kill), Expect::Dies, &env)?;
    }
    // The poison is still there, only nobody takes it any more.
    env.push(("AGENT_CRASH_AT", point.to_string()));
    stage.run(TASK, None, Expect::Ends(2), &env)?;
    let evidence = stage.close(TaskEnd::Failed);
    let given_up = given_up(evidence.last(), point.step.unwrap_or(0), limit);
    let mut played = Played::judged(evidence, &ready.baseline);
    played.and("given_up", given_up);
    Ok(played)
}

fn given_up(last: &Snapshot, step: usize, limit: i64) -> Verdict {
    let mut complaints = Vec::new();
    let tables = &last.tables;
    let task = tables.task(TASK).map_or("gone", |row| row.status.as_str());
    if task != "failed" {
        complaints.push(format!("the task is {task}, not failed"));
    }
    match tables.step(TASK, step) {
        Some(row) if row.status == "failed" && row.attempts == limit => {}
        Some(row) => complaints.push(format!(
            "step {step} is {} after {} attempts, must be failed after {limit}",
            row.status, row.attempts
        )),
        None => complaints.push(format!("step {step} is gone")),
    }
    let said = tables.events_of(TASK).any(|event| event.kind == "task_failed" && event.step == Some(step));
    if !said {
        complaints.push(format!("no task_failed names step {step}"));
    }
    Verdict::of(&complaints)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Story;

    fn failed() -> Snapshot {
        let mut story = Story::killed_at("before_effect:1");
        let last = story.last();
        last.tables.tasks[0].status = "failed".to_owned();
        last.tables.steps[1].status = "failed".to_owned();
        last.tables.steps[1].attempts = 3;
        let mut event = last.tables.events[0].clone();
        event.kind = "task_failed".to_owned();
        event.step = Some(1);
        last.tables.events.push(event);
        last.clone()
    }

    #[test]
    fn a_task_that_is_given_up_at_the_limit_is_accepted() {
        assert!(given_up(&failed(), 1, 3).holds());
    }

    #[test]
    fn another_status_count_or_journal_is_rejected() {
        assert!(!given_up(&failed(), 1, 2).holds());
        assert!(!given_up(&failed(), 0, 3).holds());
        let mut silent = failed();
        silent.tables.events.pop();
        assert!(!given_up(&silent, 1, 3).holds());
        let mut running = failed();
        running.tables.tasks[0].status = "running".to_owned();
        assert!(!given_up(&running, 1, 3).holds());
    }
}

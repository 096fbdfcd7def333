//! Between kill and resume minutes or days pass, or the clock is set back: a task goes on whatever the time.

use std::sync::Arc;

use crate::case::TASK;
use crate::error::LabError;
use crate::look::evidence::{Expect, TaskEnd};
use crate::play::method::Method;
use crate::play::prepared::Prepared;
use crate::play::scenario::{Played, Scenario};
use crate::schedule::{CrashPoint, Kill, KillSchedule};

/// See the file's head.
pub(super) const METHOD: Method = Method {
    name: "clock",
    about: "between kill and resume minutes or days pass, or the clock is set back by an hour",
    scenarios,
};

/// What the clock does meanwhile, in seconds.
const JUMPS: [(&str, i64); 3] = [("ten minutes later", 600), ("nine days later", 9 * 86_400), ("an hour back", -3_600)];

fn scenarios(ready: &Arc<Prepared>) -> Result<Vec<Scenario>, LabError> {
    // One step's own points stand for all: what a time means to an agent does not depend on the step.
    if ready.case.example_of.is_some() {
        return Ok(Vec::new());
    }
    let last = Some(ready.last_step());
    let points = ready.discovery.clean.iter().filter(|point| point.step == last || point.step.is_none());
    Ok(points.flat_map(|point| JUMPS.map(|(word, jump)| scenario(ready, point, word, jump))).collect())
}

fn scenario(ready: &Arc<Prepared>, point: &CrashPoint, word: &str, jump: i64) -> Scenario {
    let title = format!("killed at {point}, resumed {word}");
    let schedule = KillSchedule::points([point]);
    let what = format!("{word}, {schedule}");
    let point = point.clone();
    let play = move |ready: &Prepared| {
        let mut stage = ready.stage()?;
        stage.run(TASK, Some(&Kill::Point(point.clone())), Expect::Dies, &[])?;
        stage.run(TASK, None, Expect::Ends(0), &ready.clock.env(jump))?;
        ready.clock.sweep();
        stage.lived_at(jump);
        // The third one finds events from a time that is not its own.
        stage.run(TASK, None, Expect::Ends(0), &[])?;
        Ok(Played::judged(stage.close(TaskEnd::Done), &ready.baseline))
    };
    Scenario::new(METHOD.name, ready, &what, title, play).kills(schedule)
}

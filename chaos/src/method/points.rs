//! SIGKILL at each crash point of each step, then one resume. The contract's points are always there, further ones come
//! from the recording run.

use std::sync::Arc;

use crate::case::TASK;
use crate::error::LabError;
use crate::look::evidence::TaskEnd;
use crate::play::method::Method;
use crate::play::prepared::Prepared;
use crate::play::scenario::{Played, Scenario, play_schedule};
use crate::schedule::{CrashPoint, KillSchedule};

/// See the file's head.
pub(super) const METHOD: Method =
    Method { name: "points", about: "SIGKILL at each crash point of each step, then resume", scenarios };

fn scenarios(ready: &Arc<Prepared>) -> Result<Vec<Scenario>, LabError> {
    let points = ready.discovery.clean.iter();
    Ok(points.map(|point| scenario(ready, point)).collect())
}

fn scenario(ready: &Arc<Prepared>, point: &CrashPoint) -> Scenario {
    let schedule = KillSchedule::points([point]);
    let kill = schedule.clone();
    let (what, title) = (schedule.to_string(), format!("killed at {point}, resumed"));
    let play = move |ready: &Prepared| play(ready, &kill);
    Scenario::new(METHOD.name, ready, &what, title, play).kills(schedule)
}

fn play(ready: &Prepared, schedule: &KillSchedule) -> Result<Played, LabError> {
    let mut stage = ready.stage()?;
    play_schedule(&mut stage, TASK, schedule, &[], &|_| ready.discovery.clean.clone())?;
    Ok(Played::judged(stage.close(TaskEnd::Done), &ready.baseline))
}

//! SIGKILL at each crash point of each step, then one resume. The contract's
//! points are always there, further ones come from the recording run.

use std::sync::Arc;

use super::Method;
use crate::error::LabError;
use crate::look::facts::TaskEnd;
use crate::play::prepared::Bench;
use crate::play::scenario::{Played, Scenario, play_schedule};
use crate::play::stage::{Stage, TASK};
use crate::schedule::{CrashPoint, KillSchedule};

/// See the file's head.
pub(super) const METHOD: Method =
    Method { name: "points", about: "SIGKILL at each crash point of each step, then resume", scenarios };

fn scenarios(bench: &Arc<Bench>) -> Result<Vec<Scenario>, LabError> {
    let points = bench.discovery.clean.iter();
    Ok(points.map(|point| scenario(bench, point)).collect())
}

fn scenario(bench: &Arc<Bench>, point: &CrashPoint) -> Scenario {
    let schedule = KillSchedule::points([point]);
    let kill = schedule.clone();
    let (what, title) = (schedule.to_string(), format!("killed at {point}, resumed"));
    let play = move |bench: &Bench| play(bench, &kill);
    Scenario::new(METHOD.name, bench, &what, title, play).kills(schedule)
}

fn play(bench: &Bench, schedule: &KillSchedule) -> Result<Played, LabError> {
    let mut stage = Stage::single(&bench.lab, &bench.case)?;
    play_schedule(&mut stage, TASK, schedule, &[], &|_| bench.discovery.clean.clone())?;
    Ok(Played::judged(stage.close(TaskEnd::Done), &bench.baseline))
}

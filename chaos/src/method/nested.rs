//! Every ordered pair of points: killed, killed again in the resume, resumed.
//! The second kill is any point of the contract and any point that the recorded
//! resume has shown; only so recovery and a tool's dedup path are killed in.
//!
//! A second point of the contract that the resume does not pass, because its
//! step was committed before the first kill, is unreachable by design: then the
//! resume must go through.

use std::sync::Arc;

use super::Method;
use crate::bench::Bench;
use crate::error::LabError;
use crate::facts::TaskEnd;
use crate::scenario::{Played, Scenario, play_schedule};
use crate::schedule::{CrashPoint, KillSchedule};
use crate::stage::{Stage, TASK};

/// See the file's head.
pub(super) const METHOD: Method = Method {
    name: "nested",
    about: "every ordered pair of points: killed, killed again in the resume, resumed",
    scenarios,
};

fn scenarios(bench: &Arc<Bench>) -> Result<Vec<Scenario>, LabError> {
    let mut all = Vec::new();
    for first in bench.discovery.clean.iter().filter(|point| matters(bench, point)) {
        let recorded = &bench.discovery.after[first];
        let mut seconds = CrashPoint::of_contract(bench.case.steps.len());
        let more = recorded.iter().filter(|point| !seconds.contains(point)).cloned();
        seconds.extend(more.collect::<Vec<_>>());
        all.extend(seconds.iter().map(|second| scenario(bench, first, second)));
    }
    Ok(all)
}

/// In a tool's own example only the last step is the tool; the steps before it
/// are other tools' business and have their pairs in their own plans.
fn matters(bench: &Bench, first: &CrashPoint) -> bool {
    bench.case.example_of.is_none() || first.step == Some(bench.last_step())
}

fn scenario(bench: &Arc<Bench>, first: &CrashPoint, second: &CrashPoint) -> Scenario {
    let schedule = KillSchedule::points([first, second]);
    let kills = schedule.clone();
    let title = format!("killed at {first}, then at {second}, resumed");
    let play = move |bench: &Bench| play(bench, &kills);
    Scenario::new(METHOD.name, bench, &schedule.to_string(), title, play).kills(schedule)
}

fn play(bench: &Bench, schedule: &KillSchedule) -> Result<Played, LabError> {
    let mut stage = Stage::single(&bench.lab, &bench.case)?;
    let recorded = |run| match (run, schedule.first_point()) {
        (1, Some(first)) => bench.discovery.after[first].clone(),
        _ => bench.discovery.clean.clone(),
    };
    let unreachable = play_schedule(&mut stage, TASK, schedule, &[], &recorded)?;
    let mut played = Played::judged(stage.close(TaskEnd::Done), &bench.baseline);
    played.unreachable = unreachable;
    if unreachable {
        let why = "the second point is unreachable by design: its step was committed before";
        played.note = Some(why.to_owned());
    }
    Ok(played)
}

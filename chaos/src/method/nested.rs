//! Every ordered pair of points: killed, killed again in the resume, resumed.
//! The second kill is any point of the contract and any point that the recorded
//! resume has shown; only so recovery and a tool's dedup path are killed in.
//!
//! A second point of the contract that the resume does not pass, because its
//! step was committed before the first kill, is unreachable by design: then the
//! resume must go through.

use std::sync::{Arc, Mutex};

use super::Method;
use crate::error::LabError;
use crate::look::facts::{Expect, TaskEnd};
use crate::play::prepared::Bench;
use crate::play::scenario::{Played, Scenario, play_schedule};
use crate::play::stage::{Past, Stage, TASK};
use crate::schedule::{CrashPoint, Kill, KillSchedule};

/// See the file's head.
pub(super) const METHOD: Method = Method {
    name: "nested",
    about: "every ordered pair of points: killed, killed again in the resume, resumed",
    scenarios,
};

/// A first kill; what it leaves is played once and continued in many folders,
/// which halves the processes. A replay plays every kill.
struct First {
    point: CrashPoint,
    past: Mutex<Option<Arc<Past>>>,
}

fn scenarios(bench: &Arc<Bench>) -> Result<Vec<Scenario>, LabError> {
    let mut all = Vec::new();
    for point in bench.discovery.clean.iter().filter(|point| matters(bench, point)) {
        let recorded = bench.discovery.after.get(point).map_or(&[][..], Vec::as_slice);
        let mut seconds = CrashPoint::of_contract(bench.case.steps.len());
        let more = recorded.iter().filter(|second| !seconds.contains(second)).cloned();
        seconds.extend(more.collect::<Vec<_>>());
        if bench.case.is_inbox() {
            seconds.retain(|second| is_of_inbox(bench, second));
        }
        let first = Arc::new(First { point: point.clone(), past: Mutex::default() });
        all.extend(seconds.iter().map(|second| scenario(bench, &first, second)));
    }
    Ok(all)
}

/// In a tool's own example only the last step is the tool; the steps before it
/// are other tools' business and have their pairs in their own plans.
fn matters(bench: &Bench, first: &CrashPoint) -> bool {
    if bench.case.is_inbox() {
        return is_of_inbox(bench, first);
    }
    bench.case.example_of.is_none() || first.step == Some(bench.last_step())
}

/// The pairs of the loop and the store are played with other plans. Of the inbox
/// there are the points of log and report, and the contract's of one step.
fn is_of_inbox(bench: &Bench, point: &CrashPoint) -> bool {
    let of_step = point.step.is_none_or(|step| step == bench.last_step());
    of_step && (point.is_of_contract() || bench.is_of_completion(point))
}

fn scenario(bench: &Arc<Bench>, first: &Arc<First>, second: &CrashPoint) -> Scenario {
    let schedule = KillSchedule::points([&first.point, second]);
    let title = format!("killed at {}, then at {second}, resumed", first.point);
    let (first, second) = (Arc::clone(first), KillSchedule::points([second]));
    let play = move |bench: &Bench| play(bench, &first, &second);
    Scenario::new(METHOD.name, bench, &schedule.to_string(), title, play).kills(schedule)
}

fn play(bench: &Bench, first: &First, second: &KillSchedule) -> Result<Played, LabError> {
    let (past, known) = first.past(bench)?;
    let mut stage = Stage::after(&bench.lab, &past)?;
    let recorded = |_| bench.discovery.after.get(&first.point).cloned().unwrap_or_default();
    let unreachable = play_schedule(&mut stage, TASK, second, &[], &recorded)?;
    let mut played = Played::judged(stage.close(TaskEnd::Done), &bench.baseline);
    if known {
        // The first kill has been counted where it was played.
        played.cycles = played.cycles.saturating_sub(1);
    }
    played.unreachable = unreachable;
    if unreachable {
        let why = "the second point is unreachable by design: its step was committed before";
        played.note = Some(why.to_owned());
    }
    Ok(played)
}

impl First {
    /// What the kill leaves, and whether it had been played before.
    fn past(&self, bench: &Bench) -> Result<(Arc<Past>, bool), LabError> {
        let mut kept = self.past.lock().map_err(|_| LabError::poisoned())?;
        if let Some(past) = &*kept {
            return Ok((Arc::clone(past), true));
        }
        let mut stage = Stage::single(&bench.lab, &bench.case)?;
        let kill = Kill::Point(self.point.clone());
        stage.run(TASK, Some(&kill), Expect::Dies, &[])?;
        let past = Arc::new(stage.into_past());
        *kept = Some(Arc::clone(&past));
        Ok((past, false))
    }
}

//! Every ordered pair of points: killed, killed again in the resume, resumed. The second kill is any point that the
//! recorded resume has shown, and any of the contract in a step that the first kill has left open; only so recovery and
//! a tool's dedup path are killed in.

use std::sync::{Arc, Mutex};

use crate::case::TASK;
use crate::error::LabError;
use crate::look::evidence::{Expect, TaskEnd};
use crate::play::method::Method;
use crate::play::prepared::Prepared;
use crate::play::scenario::{Played, Scenario, play_schedule};
use crate::play::stage::{Left, Stage};
use crate::schedule::{CrashPoint, Kill, KillSchedule};

/// See the file's head.
pub(super) const METHOD: Method = Method {
    name: "nested",
    about: "every ordered pair of points: killed, killed again in the resume, resumed",
    scenarios,
};

/// A first kill; what it leaves is played once and continued in many folders, which halves the processes. A replay
/// plays every kill.
struct First {
    point: CrashPoint,
    left: Mutex<Option<Arc<Left>>>,
}

fn scenarios(ready: &Arc<Prepared>) -> Result<Vec<Scenario>, LabError> {
    let mut all = Vec::new();
    for point in ready.discovery.clean.iter().filter(|point| matters(ready, point)) {
        let mut seconds = ready.discovery.after.get(point).cloned().unwrap_or_default();
        if ready.case.kind.log().is_some() {
            seconds.retain(|second| is_of_inbox(ready, second));
        } else if is_plain(ready) {
            seconds.retain(CrashPoint::is_of_contract);
        }
        // What the plan allows to begin twice fails after two kills, as it should.
        let limit = point.step.and_then(|step| ready.case.steps[step].max_attempts());
        if limit.is_some_and(|limit| limit <= 2) {
            seconds.retain(|second| second.step != point.step);
        }
        let first = Arc::new(First { point: point.clone(), left: Mutex::default() });
        all.extend(seconds.iter().map(|second| scenario(ready, &first, second)));
    }
    Ok(all)
}

/// In a tool's own example only the last step is the tool; the steps before it are other tools' business and have their
/// pairs in their own plans.
fn matters(ready: &Prepared, first: &CrashPoint) -> bool {
    if ready.case.kind.log().is_some() {
        return is_of_inbox(ready, first);
    }
    let is_own = ready.case.example_of.is_none() || first.step == Some(ready.last_step());
    is_own && (!is_plain(ready) || first.is_of_contract())
}

/// The example of a tool that changes nothing and has nothing of its own: it is killed where the report plan is, of
/// which all pairs are played. A tool that waits passes the points of a commit once more.
fn is_plain(ready: &Prepared) -> bool {
    let last = ready.last_step();
    let of_last = |point: &&CrashPoint| point.step == Some(last);
    ready.case.example_of.is_some()
        && !ready.effectful_steps().contains(&last)
        && ready.discovery.clean.iter().filter(of_last).all(|point| point.hit <= 2)
}

/// The pairs of the loop and the store are played with other plans. Of the inbox there are the points of log and
/// report, and the contract's of one step.
fn is_of_inbox(ready: &Prepared, point: &CrashPoint) -> bool {
    let of_step = point.step.is_none_or(|step| step == ready.last_step());
    of_step && (point.is_of_contract() || ready.is_of_completion(point))
}

fn scenario(ready: &Arc<Prepared>, first: &Arc<First>, second: &CrashPoint) -> Scenario {
    let schedule = KillSchedule::points([&first.point, second]);
    let title = format!("killed at {}, then at {second}, resumed", first.point);
    let (first, second) = (Arc::clone(first), KillSchedule::points([second]));
    let play = move |ready: &Prepared| play(ready, &first, &second);
    Scenario::new(METHOD.name, ready, &schedule.to_string(), title, play).kills(schedule)
}

fn play(ready: &Prepared, first: &First, second: &KillSchedule) -> Result<Played, LabError> {
    let (left, known) = first.left(ready)?;
    let mut stage = Stage::after(&ready.lab, &left)?;
    let recorded = |_| ready.discovery.after.get(&first.point).cloned().unwrap_or_default();
    play_schedule(&mut stage, TASK, second, &[], &recorded)?;
    let mut played = Played::judged(stage.close(TaskEnd::Done), &ready.baseline);
    if known {
        // The first kill has been counted where it was played.
        played.cycles = played.cycles.saturating_sub(1);
    }
    Ok(played)
}

impl First {
    /// What the kill leaves, and whether it had been played before.
    fn left(&self, ready: &Prepared) -> Result<(Arc<Left>, bool), LabError> {
        let mut kept = self.left.lock().map_err(|_| LabError::poisoned())?;
        if let Some(left) = &*kept {
            return Ok((Arc::clone(left), true));
        }
        let mut stage = ready.stage()?;
        let kill = Kill::Point(self.point.clone());
        stage.run(TASK, Some(&kill), Expect::Dies, &[])?;
        let left = Arc::new(stage.into_left());
        *kept = Some(Arc::clone(&left));
        Ok((left, false))
    }
}

//! What a server makes of a request: it loses it or its answer, cuts the answer off, answers 500 after the effect, is
//! slow, has it in flight, or has no time. With each of these the run is also killed at each point, and resumed. How
//! often the effect was there, the server tells.

use std::iter;
use std::sync::Arc;
use std::time::Duration;

use crate::case::TASK;
use crate::case::promise::Promise;
use crate::error::LabError;
use crate::look::evidence::{Expect, TaskEnd};
use crate::play::method::Method;
use crate::play::prepared::Prepared;
use crate::play::scenario::{Played, Scenario};
use crate::schedule::{CrashPoint, Kill, KillSchedule};
use crate::server::ledger::Fault;

/// See the file's head.
pub(super) const METHOD: Method = Method {
    name: "replies",
    about: "a server loses a request or its answer, fails after the effect, is slow or busy; also killed at each point",
    scenarios,
};

/// Longer than a step waits for an answer.
const LATE: Duration = Duration::from_millis(600);

/// What goes wrong with the first request.
const FAULTS: [(&str, Fault); 7] = [
    ("lose", Fault::Lose),
    ("drop", Fault::Drop),
    ("midway", Fault::Midway),
    ("500", Fault::Error),
    ("delay", Fault::Delay(LATE)),
    ("hold", Fault::Hold(LATE)),
    ("429", Fault::Busy(0)),
];

/// The judge that asks who has failed: here it is the server.
const UNDISTURBED: &str = "undisturbed";

fn scenarios(ready: &Arc<Prepared>) -> Result<Vec<Scenario>, LabError> {
    let points = ready.discovery.clean.iter().filter(|point| point.step.is_some()).map(Some);
    let mut all = Vec::new();
    for point in iter::once(None).chain(points) {
        let faults = FAULTS.into_iter().filter(|(_, fault)| is_fair(ready, *fault));
        all.extend(faults.map(|(name, fault)| scenario(ready, name, fault, point)));
    }
    Ok(all)
}

/// Of what is in flight without a key, nobody who asks can say that it will not happen.
fn is_fair(ready: &Prepared, fault: Fault) -> bool {
    !matches!(fault, Fault::Hold(_)) || ready.case.kind.promise(0) != Some(Promise::Verifiable)
}

fn scenario(ready: &Arc<Prepared>, name: &str, fault: Fault, point: Option<&CrashPoint>) -> Scenario {
    let schedule = KillSchedule::points(point);
    let what = point.map_or_else(|| name.to_owned(), |point| format!("{name}, {point}"));
    let killed = point.map_or_else(String::new, |point| format!(", killed at {point}"));
    let title = format!("the first request meets `{name}`{killed}, then to the end");
    let point = point.cloned();
    let play = move |ready: &Prepared| play(ready, fault, point.as_ref());
    Scenario::new(METHOD.name, ready, &what, title, play).kills(schedule)
}

fn play(ready: &Prepared, fault: Fault, point: Option<&CrashPoint>) -> Result<Played, LabError> {
    let mut stage = ready.stage()?;
    stage.sandbox.fail([fault]);
    match point {
        None => stage.run(TASK, None, Expect::Faulted, &[])?,
        // Where the answer does not come, the run may not come to the point.
        Some(point) => stage.run(TASK, Some(&Kill::Point(point.clone())), Expect::MayDie, &[])?,
    };
    stage.run(TASK, None, Expect::Ends(0), &[])?;
    let mut played = Played::judged(stage.close(TaskEnd::Done), &ready.baseline);
    played.findings.retain(|finding| finding.property != UNDISTURBED);
    Ok(played)
}

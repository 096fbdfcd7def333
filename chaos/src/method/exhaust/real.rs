//! True SIGKILLs before and after one call: the cross-check of `exhaust`, which takes a snapshot for what a kill
//! leaves.

use std::sync::Arc;

use crate::agent::process::Env;
use crate::case::TASK;
use crate::crash::{Side, kill_nth};
use crate::error::LabError;
use crate::judge::verdict::Verdict;
use crate::look::evidence::{Expect, RunRecord};
use crate::look::sandbox::Sandbox;
use crate::play::prepared::Prepared;
use crate::play::resume::{Past, to_the_end};
use crate::play::scenario::{Played, Scenario};
use crate::play::taped::Taped;
use crate::schedule::{CallPoint, Kill, KillSchedule};

/// Kills at the call `at` of the run on tape.
pub(super) fn scenario(ready: &Arc<Prepared>, taped: &Taped, at: usize) -> Scenario {
    let Taped { past, tape, .. } = taped;
    let point = tape.frames[at].at.clone();
    let title = format!("really killed before and after {point}, resumed");
    let schedule = KillSchedule(vec![Kill::Call(point.clone())]);
    let (past, image) = (past.clone(), Arc::clone(&tape.images[0]));
    let single = tape.threads == 1;
    let what = format!("real {point}");
    let play = move |ready: &Prepared| {
        let mut sum = Played::default();
        for side in [Side::Before, Side::After] {
            let mut sandbox = Sandbox::empty(&ready.lab.root, &ready.case)?;
            image.write(&sandbox.world())?;
            let (killed, hit) =
                kill_nth(&ready.lab, &mut sandbox, &ready.case.kind.words(TASK), &Env::new(), at, side)?;
            let played = judged(ready, &past, &mut sandbox, &point, killed)?;
            (sum.cycles, sum.checked) = (sum.cycles + played.cycles, sum.checked + played.checked);
            sum.evidence = played.evidence;
            sum.findings.extend(played.findings);
            sum.and("hit", reached(&point, hit, single));
        }
        Ok(sum)
    };
    Scenario::new("exhaust", ready, &what, title, play).kills(schedule)
}

fn judged(
    ready: &Prepared,
    past: &Past,
    sandbox: &mut Sandbox,
    point: &CallPoint,
    outcome: crate::agent::process::Outcome,
) -> Result<Played, LabError> {
    let mut past = past.clone();
    past.runs.push(RunRecord {
        task: TASK.to_owned(),
        kill: Some(Kill::Call(point.clone())),
        expect: Expect::MayDie,
        outcome,
        signalled: true,
        after: Some(sandbox.look()?),
    });
    let evidence = to_the_end(ready, sandbox, past, &Env::new())?;
    Ok(Played::judged(evidence, &ready.baseline))
}

/// The same call as on tape, wherever the agent is one thread alone.
fn reached(point: &CallPoint, hit: Option<&str>, single: bool) -> Verdict {
    match hit {
        Some(call) if call == point.call || !single => Verdict::Holds,
        Some(call) => Verdict::NotReached(format!("on tape the call was {}, now it was {call}", point.call)),
        None if !single => Verdict::Holds,
        None => Verdict::NotReached(format!("the run did not come to {point}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_call_than_the_one_on_tape_is_not_reached() {
        let point = CallPoint { phase: "open".to_owned(), call: "fsync".to_owned(), nth: 1 };
        assert!(reached(&point, Some("fsync"), true).holds());
        assert!(!reached(&point, Some("pwrite64"), true).holds());
        assert!(!reached(&point, None, true).holds());
        assert!(reached(&point, None, false).holds());
    }
}

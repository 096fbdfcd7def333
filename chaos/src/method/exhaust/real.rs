//! True SIGKILLs before and after one call: the cross-check of `exhaust`, which
//! takes a snapshot for what a kill leaves.

use std::sync::Arc;

use crate::crash::{Side, Tape, kill_nth};
use crate::error::LabError;
use crate::judge::verdict::Verdict;
use crate::look::facts::{Expect, RunRecord};
use crate::look::sandbox::Sandbox;
use crate::play::prepared::Bench;
use crate::play::resume::{Past, to_the_end};
use crate::play::scenario::{Played, Scenario};
use crate::play::stage::{Env, TASK};
use crate::schedule::{CallPoint, Kill, KillSchedule};

/// Kills at the call `at` of the run on tape.
pub(super) fn scenario(bench: &Arc<Bench>, past: &Past, tape: &Tape, at: usize) -> Scenario {
    let point = tape.frames[at].at.clone();
    let title = format!("really killed before and after {point}, resumed");
    let schedule = KillSchedule(vec![Kill::Call(point.clone())]);
    let (past, image) = (past.clone(), Arc::clone(&tape.images[0]));
    let single = tape.threads == 1;
    let what = format!("real {point}");
    let play = move |bench: &Bench| {
        let mut sum = Played::default();
        for side in [Side::Before, Side::After] {
            let mut sandbox = Sandbox::empty(&bench.lab.root, &bench.case)?;
            image.write(&sandbox.world())?;
            let (killed, hit) = kill_nth(&bench.lab, &mut sandbox, &["run", TASK], &Env::new(), at, side)?;
            let played = judged(bench, &past, &mut sandbox, &point, killed)?;
            (sum.cycles, sum.checked) = (sum.cycles + played.cycles, sum.checked + played.checked);
            sum.evidence = played.evidence;
            sum.findings.extend(played.findings);
            sum.and("hit", reached(&point, hit, single));
        }
        Ok(sum)
    };
    Scenario::new("exhaust", bench, &what, title, play).kills(schedule)
}

fn judged(
    bench: &Bench,
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
    let evidence = to_the_end(bench, sandbox, past, &Env::new())?;
    Ok(Played::judged(evidence, &bench.baseline))
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

//! The method `pause` with another run of the same task.

use std::sync::Arc;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use super::freeze::{NAME, freeze, is_of_database, missed};
use crate::agent::process::{Ended, Env, Outcome};
use crate::case::TASK;
use crate::crash::Frame;
use crate::error::LabError;
use crate::look::evidence::{Expect, RunRecord};
use crate::look::sandbox::Sandbox;
use crate::look::snapshot::Snapshot;
use crate::play::prepared::Prepared;
use crate::play::resume::to_the_end;
use crate::play::scenario::{Played, Scenario};
use crate::play::taped::Taped;

/// So many calls of the database are paused at in an everyday run; in a tool's own example none.
const BOUNDED: usize = 4;

/// The method for two runs of one task.
///
/// # Errors
/// The lab's own failures.
pub(super) fn scenarios(ready: &Arc<Prepared>) -> Result<Vec<Scenario>, LabError> {
    if !ready.lab.deep && ready.case.example_of.is_some() {
        return Ok(Vec::new());
    }
    let taped = Arc::new(Taped::of_run(ready)?);
    Ok(chosen(ready, &taped.tape.frames).into_iter().map(|at| scenario(ready, &taped, at)).collect())
}

/// All calls; or in an everyday run those outside the database, such as on the lock, and some of the database's own.
fn chosen(ready: &Prepared, frames: &[Frame]) -> Vec<usize> {
    let all = 0..frames.len();
    let (mut of_database, mut places): (Vec<usize>, Vec<usize>) = all.partition(|at| is_of_database(&frames[*at]));
    let mut luck = StdRng::seed_from_u64(ready.lab.seed_for(&format!("pause/{}", ready.case.name)));
    while !ready.lab.deep && of_database.len() > BOUNDED {
        of_database.remove(luck.random_range(0..of_database.len()));
    }
    places.extend(of_database);
    places.sort_unstable();
    places
}

fn scenario(ready: &Arc<Prepared>, taped: &Arc<Taped>, at: usize) -> Scenario {
    let point = &taped.tape.frames[at].at;
    let title = format!("frozen before {point} while another run goes to its end, then let go");
    let what = point.to_string();
    let taped = Arc::clone(taped);
    Scenario::new(NAME, ready, &what, title, move |ready| play(ready, &taped, at))
}

fn play(ready: &Prepared, taped: &Taped, at: usize) -> Result<Played, LabError> {
    let mut sandbox = Sandbox::empty(&ready.lab.root, &ready.case)?;
    taped.tape.images[0].write(&sandbox.world())?;
    let Some(pair) = freeze(ready, &mut sandbox, at, [TASK; 2])? else { return Ok(missed(at)) };
    let mut past = taped.past.clone();
    past.runs.push(contender(pair.other, None));
    past.runs.push(contender(pair.frozen, Some(sandbox.look()?)));
    let evidence = to_the_end(ready, &mut sandbox, past, &Env::new())?;
    let mut played = Played::judged(evidence, &ready.baseline);
    played.cycles = 1;
    played.note = pair.stalled;
    Ok(played)
}

/// One of two at once: done, refused by the lock, or refused with another reason that it has words for.
fn contender(outcome: Outcome, after: Option<Snapshot>) -> RunRecord {
    let expect = match outcome.ended {
        Ended::Exited(code) if code != 0 && code != 3 && !outcome.stderr.trim().is_empty() => Expect::Ends(code),
        _ => Expect::Contends,
    };
    RunRecord { task: TASK.to_owned(), kill: None, expect, outcome, signalled: false, after }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Story;

    #[test]
    fn a_refusal_with_words_is_accepted_and_a_hang_and_a_silent_one_are_not() {
        let mut outcome = Story::clean().evidence.creates[0].clone();
        outcome.ended = Ended::Exited(75);
        assert_eq!(contender(outcome.clone(), None).expect, Expect::Contends);
        outcome.stderr = "agent: the database is busy".to_owned();
        assert_eq!(contender(outcome.clone(), None).expect, Expect::Ends(75));
        outcome.ended = Ended::Hung;
        assert_eq!(contender(outcome, None).expect, Expect::Contends);
    }
}

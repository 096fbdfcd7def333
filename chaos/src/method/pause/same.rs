//! The method `pause` with another run of the same task.

use std::collections::BTreeSet;
use std::sync::Arc;

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

/// One in so many kinds of calls of the database is paused at in an everyday run,
/// so that as many seeds in a row see all of them; in a tool's own example none.
const ONE_IN: usize = 3;

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
    if !ready.lab.deep {
        of_database =
            one_in(ready.lab.seed, of_database, |at| (kind(&frames[at].at.phase), frames[at].at.call.as_str()));
    }
    places.extend(of_database);
    places.sort_unstable();
    places
}

/// Of each kind of place the first one, and of the kinds those whose turn it is.
fn one_in<K: Ord>(seed: u64, places: Vec<usize>, kind: impl Fn(usize) -> K) -> Vec<usize> {
    let mut seen = BTreeSet::new();
    let mut first: Vec<usize> = places.into_iter().filter(|&at| seen.insert(kind(at))).collect();
    let mut number = (seed % ONE_IN as u64) as usize;
    first.retain(|_| {
        number += 1;
        number.is_multiple_of(ONE_IN)
    });
    first
}

/// A phase of a run without its step: what the database does is the same at each.
fn kind(phase: &str) -> &str {
    phase.split(':').next().unwrap_or(phase)
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
    fn three_seeds_in_a_row_see_every_kind_of_call() {
        let of = |seed| one_in(seed, (0..20).collect(), |at| at % 10);
        let mut all: Vec<usize> = (7..10).flat_map(of).collect();
        all.sort_unstable();
        assert_eq!(all, (0..10).collect::<Vec<_>>());
    }

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

//! The run is frozen at each call in the folder while another run of the same
//! task goes to its end, then it is let go: nothing is done twice, and the other
//! run never hangs without a word.
//!
//! A run that is frozen while it sets SQLite's shared memory up holds others up
//! for some ten seconds, which no timeout of theirs bounds. The other run is then
//! let go on beside the thawed one, and the stall is told.

mod neighbour;

use std::sync::Arc;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use super::{Method, not_here};
use crate::agent::process::{Ended, Env, Launch, Outcome, Running};
use crate::case::TASK;
use crate::contract::{DB_FILE, DB_SUFFIXES};
use crate::crash::{Frame, counts, traced};
use crate::error::LabError;
use crate::judge::verdict::Verdict;
use crate::look::evidence::{Expect, RunRecord};
use crate::look::sandbox::Sandbox;
use crate::look::snapshot::Snapshot;
use crate::play::prepared::Prepared;
use crate::play::resume::to_the_end;
use crate::play::scenario::{Played, Scenario};
use crate::play::taped::Taped;
use crate::trace::{self, Call, Recorder, Verb, Watch};

/// See the file's head.
pub(super) const METHOD: Method = Method {
    name: "pause",
    about: "frozen at each system call while another run goes to its end, then let go",
    scenarios,
};

/// How long the other run may work beside a frozen one before that counts as a
/// stall, in clean runs, with the least and the most.
const PATIENCE: (f64, Duration, Duration) = (20.0, Duration::from_millis(500), Duration::from_secs(2));

/// So many calls of the database are paused at in an everyday run; in a tool's own
/// example none.
const BOUNDED: usize = 4;

fn scenarios(ready: &Arc<Prepared>) -> Result<Vec<Scenario>, LabError> {
    if !trace::available() {
        return Ok(vec![not_here(ready, METHOD.name)]);
    }
    let mut all = Vec::new();
    if ready.lab.deep || ready.case.example_of.is_none() {
        let taped = Arc::new(Taped::of_run(ready)?);
        all.extend(chosen(ready, &taped.tape.frames).into_iter().map(|at| scenario(ready, &taped, at)));
    }
    if ready.case.kind.is_created() {
        all.extend(neighbour::scenarios(ready)?);
    }
    Ok(all)
}

/// All calls; or in an everyday run those outside the database, such as on the
/// lock, and some of the database's own.
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

/// Whether a call is on one of the files that SQLite works with.
pub(super) fn is_of_database(frame: &Frame) -> bool {
    frame.call.path.strip_prefix(DB_FILE).is_some_and(|suffix| DB_SUFFIXES.contains(&suffix) || suffix == "-shm")
}

fn scenario(ready: &Arc<Prepared>, taped: &Arc<Taped>, at: usize) -> Scenario {
    let point = &taped.tape.frames[at].at;
    let title = format!("frozen before {point} while another run goes to its end, then let go");
    let what = point.to_string();
    let taped = Arc::clone(taped);
    Scenario::new(METHOD.name, ready, &what, title, move |ready| play(ready, &taped, at))
}

fn play(ready: &Prepared, taped: &Taped, at: usize) -> Result<Played, LabError> {
    let mut sandbox = Sandbox::empty(&ready.lab.root, &ready.case)?;
    taped.tape.images[0].write(&sandbox.world())?;
    let Some(pair) = freeze(ready, &mut sandbox, at, TASK)? else { return Ok(missed(at)) };
    let mut past = taped.past.clone();
    past.runs.push(contender(pair.other, None));
    past.runs.push(contender(pair.frozen, Some(sandbox.look()?)));
    let evidence = to_the_end(ready, &mut sandbox, past, &Env::new())?;
    let mut played = Played::judged(evidence, &ready.baseline);
    played.cycles = 1;
    played.note = pair.stalled;
    Ok(played)
}

/// What came of a run that is never at the call where it was to be frozen.
pub(super) fn missed(at: usize) -> Played {
    let mut missed = Played::default();
    missed.and("frozen", Verdict::NotReached(format!("the run has no call number {at}")));
    missed
}

/// A run that was frozen for a while, and the one that was at work meanwhile.
pub(super) struct Pair {
    pub(super) frozen: Outcome,
    pub(super) other: Outcome,
    /// Said where the other one could not come to its end meanwhile.
    pub(super) stalled: Option<String>,
}

/// Freezes a run of [`TASK`] before its call number `at` while a run of `task`
/// goes to its end; nothing where it has no such call.
///
/// # Errors
/// The lab's own failures.
pub(super) fn freeze(ready: &Prepared, sandbox: &mut Sandbox, at: usize, task: &str) -> Result<Option<Pair>, LabError> {
    let world = sandbox.world();
    let scratch = tempfile::Builder::new().prefix(crate::agent::stray::PREFIX).tempdir_in(&ready.lab.root);
    let scratch = scratch.map_err(LabError::io("create a folder in", &ready.lab.root))?;
    let (words, others) = (ready.case.kind.words(TASK), ready.case.kind.words(task));
    let line = || ["--db", DB_FILE].into_iter().chain(others.iter().map(String::as_str));
    let launch = || Launch::new(&ready.lab.target, line(), &world, &scratch.path().join("other"));
    let mut recorder = Recorder::new(&world)?;
    let patience = patience(ready);
    let mut ice = Ice { left: at, patience, launch: &launch, other: None, ended: None };
    let frozen = traced(&ready.lab, sandbox, &words, &Env::new(), &mut recorder, &mut ice)?.outcome;
    let stalled = ice.other.is_some();
    let stalled = stalled.then(|| format!("the other run stalled for more than {patience:?} beside the frozen one"));
    let other = match (ice.ended, ice.other) {
        (Some(outcome), _) => outcome,
        (None, Some(running)) => running.finish()?,
        (None, None) => return Ok(None),
    };
    Ok(Some(Pair { frozen, other, stalled }))
}

fn patience(ready: &Prepared) -> Duration {
    let (times, least, most) = PATIENCE;
    let clean = Duration::from_secs_f64((ready.baseline.run_seconds() * times).min(most.as_secs_f64()));
    clean.max(least).min(ready.lab.target.deadline / 4)
}

/// One of two at once: done, refused by the lock, or refused with another reason
/// that it has words for.
fn contender(outcome: Outcome, after: Option<Snapshot>) -> RunRecord {
    let expect = match outcome.ended {
        Ended::Exited(code) if code != 0 && code != 3 && !outcome.stderr.trim().is_empty() => Expect::Ends(code),
        _ => Expect::Contends,
    };
    RunRecord { task: TASK.to_owned(), kill: None, expect, outcome, signalled: false, after }
}

/// Freezes a run before one call, and plays another one meanwhile.
struct Ice<'a> {
    left: usize,
    patience: Duration,
    launch: &'a (dyn Fn() -> Launch<'a> + Sync),
    /// The other run, where it was still at work when the first one was let go.
    other: Option<Running>,
    ended: Option<Outcome>,
}

impl Watch for Ice<'_> {
    fn before(&mut self, call: &Call) -> Result<Verb, LabError> {
        let begun = self.other.is_some() || self.ended.is_some();
        if begun || !counts(call) {
            return Ok(Verb::Go);
        }
        if self.left > 0 {
            self.left -= 1;
            return Ok(Verb::Go);
        }
        // The tracer waits for all children of its own thread; this one is none of them.
        let start = std::thread::scope(|scope| scope.spawn(|| (self.launch)().start()).join());
        let mut other = start.map_err(|_| LabError::Internal("a thread panicked".to_owned()))??;
        if other.ended_within(self.patience) {
            self.ended = Some(other.finish()?);
        } else {
            self.other = Some(other);
        }
        Ok(Verb::Go)
    }
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

//! Freezes a run at one of its calls while another one is at work.

use std::time::Duration;

use crate::agent::process::{Env, Launch, Outcome, Running};
use crate::contract::{DB_FILE, DB_SUFFIXES};
use crate::crash::{Frame, counts, traced};
use crate::error::LabError;
use crate::judge::verdict::Verdict;
use crate::look::sandbox::Sandbox;
use crate::play::prepared::Prepared;
use crate::play::scenario::Played;
use crate::trace::{Call, Recorder, Verb, Watch};

/// The method's name.
pub(super) const NAME: &str = "pause";

/// How long the other run may work beside a frozen one before that counts as a stall, in clean runs, with the least and
/// the most.
const PATIENCE: (f64, Duration, Duration) = (20.0, Duration::from_millis(500), Duration::from_secs(2));

/// Whether a call is on one of the files that SQLite works with.
pub(super) fn is_of_database(frame: &Frame) -> bool {
    frame.call.path.strip_prefix(DB_FILE).is_some_and(|suffix| DB_SUFFIXES.contains(&suffix) || suffix == "-shm")
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

/// Freezes a run of the first task before its call number `at` while a run of the
/// second one goes to its end; nothing where it has no such call.
///
/// # Errors
/// The lab's own failures.
pub(super) fn freeze(
    ready: &Prepared,
    sandbox: &mut Sandbox,
    at: usize,
    tasks: [&str; 2],
) -> Result<Option<Pair>, LabError> {
    let world = sandbox.world();
    let scratch = tempfile::Builder::new().prefix(crate::agent::stray::PREFIX).tempdir_in(&ready.lab.root);
    let scratch = scratch.map_err(LabError::io("create a folder in", &ready.lab.root))?;
    let [words, others] = tasks.map(|task| ready.case.kind.words(task));
    let line = || ["--db", DB_FILE].into_iter().chain(others.iter().map(String::as_str));
    let address = sandbox.address();
    let other = || Launch::new(&ready.lab.target, line(), &world, &scratch.path().join("other"));
    let launch = || other().env(address.clone());
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

//! The method `pause` with three runs of one task: the first one has opened the lock's file and not locked it yet, the
//! second one takes the lock meanwhile and is stopped in its first step, and while the first one goes on a third comes.
//! Who removes the lock's file at its end leaves the first one with a lock that excludes nobody.

use std::sync::Arc;
use std::time::Duration;

use nix::sys::signal::Signal;

use super::freeze::NAME;
use crate::agent::process::{Ended, Env, Launch, Outcome};
use crate::case::TASK;
use crate::contract::DB_FILE;
use crate::contract::code::PERSON;
use crate::crash::traced_launch;
use crate::error::LabError;
use crate::judge::verdict::Verdict;
use crate::look::evidence::{Expect, RunRecord, TaskEnd};
use crate::look::reader::LiveReader;
use crate::look::snapshot::Snapshot;
use crate::play::prepared::Prepared;
use crate::play::scenario::{Played, Scenario};
use crate::play::stage::HOLD;
use crate::schedule::Sign;
use crate::trace::{Call, Done, Recorder, Verb, Watch};

/// How long one may take to be refused.
const PATIENCE: Duration = Duration::from_secs(2);

/// Between two looks at a journal that is being written.
const POLL: Duration = Duration::from_millis(1);

/// The scenario, for a plan that the lab plays whole.
pub(super) fn scenarios(ready: &Arc<Prepared>) -> Vec<Scenario> {
    if ready.case.example_of.is_some() {
        return Vec::new();
    }
    let title = "another run takes the lock between its opening and its locking, and ends; then a third one comes";
    vec![Scenario::new(NAME, ready, "three around the lock", title.to_owned(), play)]
}

fn play(ready: &Prepared) -> Result<Played, LabError> {
    let mut stage = ready.stage()?;
    // The first one shall make it.
    let lock = format!("{DB_FILE}.{TASK}.lock");
    let path = stage.sandbox.world().join(&lock);
    if path.exists() {
        std::fs::remove_file(&path).map_err(LabError::io("remove", &path))?;
    }
    let words = ready.case.kind.words(TASK);
    let world = stage.sandbox.world();
    let scratch = tempfile::Builder::new().prefix(crate::agent::stray::PREFIX).tempdir_in(&ready.lab.root);
    let scratch = scratch.map_err(LabError::io("create a folder in", &ready.lab.root))?;
    let address = stage.sandbox.address();
    let launch = |name: &str| {
        let line = ["--db", DB_FILE].into_iter().chain(words.iter().map(String::as_str));
        Launch::new(&ready.lab.target, line, &world, &scratch.path().join(name)).env(address.clone())
    };
    let begun = stage.sandbox.launch(&ready.lab.target, &words, &Env::new());
    let look = || stage.sandbox.look();
    let mut door =
        Door { lock: &lock, db: world.join(DB_FILE), launch: &launch, look: &look, second: None, third: None };
    let mut recorder = Recorder::new(&world)?;
    let first = traced_launch(&ready.lab, &begun, &mut recorder, &mut door)?.outcome;
    let (Some((second, left)), Some(third)) = (door.second, door.third) else {
        let mut missed = Played::default();
        missed.and("frozen", Verdict::NotReached(format!("the run does not make `{lock}`")));
        return Ok(missed);
    };
    let stopped = Expect::Interrupted(Sign::Term);
    let record = |outcome, expect, after| RunRecord {
        task: TASK.to_owned(),
        kill: None,
        expect,
        outcome,
        signalled: expect == stopped,
        after,
    };
    stage.record(record(second, stopped, Some(left)));
    stage.record(record(third, Expect::Refused, None));
    let last = stage.sandbox.look()?;
    let asks = stage.case().kind.has_person() && first.ended == Ended::Exited(PERSON);
    stage.record(record(first, Expect::Ends(if asks { PERSON } else { 0 }), Some(last)));
    stage.run(TASK, None, Expect::Ends(0), &[])?;
    Ok(Played::judged(stage.close(TaskEnd::Done), &ready.baseline))
}

/// Lets the others in while the first one stands at the door.
struct Door<'a> {
    lock: &'a str,
    db: std::path::PathBuf,
    launch: &'a (dyn Fn(&str) -> Launch<'a> + Sync),
    look: &'a (dyn Fn() -> Result<Snapshot, LabError> + Sync),
    /// With what it left.
    second: Option<(Outcome, Snapshot)>,
    third: Option<Outcome>,
}

impl Door<'_> {
    /// Runs until its first step has begun, and is stopped there.
    fn second(&self) -> Result<(Outcome, Snapshot), LabError> {
        let mut running = (self.launch)("second").env(vec![("AGENT_STEP_DELAY", (20.0 * HOLD).to_string())]).start()?;
        let started = || LiveReader::when_ready(&self.db)?.map_or(Ok(0), |reader| reader.starts(TASK, 0));
        while started()? == 0 && !running.ended_within(POLL) && !running.time_left().is_zero() {}
        running.signal(Signal::SIGTERM);
        Ok((running.finish()?, (self.look)()?))
    }

    /// Is refused at once; who gets in would wait for the database, which the first one may hold.
    fn third(&self) -> Result<Outcome, LabError> {
        let mut running = (self.launch)("third").start()?;
        if !running.ended_within(PATIENCE) {
            running.signal(Signal::SIGKILL);
        }
        running.finish()
    }
}

impl Watch for Door<'_> {
    fn after(&mut self, call: &Call, _: Done) -> Result<Verb, LabError> {
        if self.second.is_none() && call.path == self.lock {
            self.second = Some(elsewhere(|| self.second())?);
        }
        Ok(Verb::Go)
    }

    fn before(&mut self, call: &Call) -> Result<Verb, LabError> {
        // Whoever writes to the database has taken the lock.
        if self.second.is_some() && self.third.is_none() && call.path.starts_with(DB_FILE) && call.path != self.lock {
            self.third = Some(elsewhere(|| self.third())?);
        }
        Ok(Verb::Go)
    }
}

/// The tracer waits for all children of its own thread; these are none of them.
fn elsewhere<T: Send>(work: impl FnOnce() -> Result<T, LabError> + Send) -> Result<T, LabError> {
    let done = std::thread::scope(|scope| scope.spawn(work).join());
    done.map_err(|_| LabError::Internal("a thread panicked".to_owned()))?
}

//! What `run` and `inbox` share: a task under lease, brought to its end, with its action log.

use std::path::Path;

use store::model::{FailReason, RunId, TaskId, TaskStatus};
use store::sqlite::SqliteStore;
use store::{Crash, Store, SystemClock, TaskSession};
use tools::Published;

use super::asks::asks_at;
use super::log::{Log, Watchers};
use super::opening::Opening;
use super::{Parts, open_for, say};
use crate::arm;
use crate::engine::{Completion, Ended, EngineError, Outcome, Runner, Settings};
use crate::exit::{Exit, Failure};
use crate::home::Bound;
use crate::narrate::utc;
use crate::progress::Progress;
use crate::signals::Signals;

/// A run of one task, with everything that was checked and opened for it.
pub(super) struct Work<'a> {
    pub(super) opening: &'a Opening<'a>,
    pub(super) run: RunId,
    pub(super) crash: Crash,
    pub(super) signals: Signals,
    pub(super) log: Log,
}

impl<'a> Opening<'a> {
    /// Opens everything; `store` opens the database, or makes it.
    pub(super) fn open(
        &'a self,
        store: impl FnOnce(&Path, store::Crash) -> Result<SqliteStore, store::StoreError>,
    ) -> Result<(Box<dyn Store>, Work<'a>), Failure> {
        let signals = Signals::listen(self.config.grace)?;
        let crash = arm::arm(self.config)?;
        let run = RunId::random();
        let log = Log::open(self.log, &self.task, &run, &crash, &signals.stop, self.parts)?;
        let store = (self.parts.store)(store(self.db, crash.clone())?, &crash);
        Ok((store, Work { opening: self, run, crash, signals, log }))
    }
}

impl Work<'_> {
    /// Takes the lease.
    pub(super) fn session<'s>(&self, store: &'s mut dyn Store) -> Result<TaskSession<'s>, Failure> {
        Ok(TaskSession::open(store, &SystemClock, &self.opening.task, &self.run)?)
    }

    /// Takes the lease and goes on.
    pub(super) fn take_up(self, store: &mut dyn Store) -> Result<Exit, Failure> {
        let session = self.session(store)?;
        self.carry_on(session)
    }

    /// Reconciles the log, runs to the end; for a task that is over, sees that what it left is there.
    #[expect(clippy::redundant_closure_for_method_calls, reason = "a path is not general enough over the lifetimes")]
    pub(super) fn carry_on(mut self, mut session: TaskSession<'_>) -> Result<Exit, Failure> {
        self.log.start(session.reader())?;
        if session.state().status.is_over() {
            return self.look_after(&mut session);
        }
        let outcome = self.with_runner(session, |runner| runner.run())?;
        let Opening { db, task, parts, .. } = self.opening;
        Ok(match outcome {
            Outcome::Stopped => {
                say!("task `{task}` is stopped by a signal; `agent run` goes on with it");
                self.signals.exit()
            }
            Outcome::Person(step) => needs_a_person(db, task, step, parts)?,
            Outcome::NotDue(due) => {
                say!("task `{task}` waits until {}", utc(due));
                Exit::NotDue
            }
            Outcome::Over(ended) => report(task, &ended, ""),
        })
    }

    /// Ends the task, for a person.
    pub(super) fn cancel(mut self, session: TaskSession<'_>, by: String, why: Option<String>) -> Result<(), Failure> {
        self.with_runner(session, |runner| runner.cancel(by, why))
    }

    fn with_runner<T>(
        &mut self,
        mut session: TaskSession<'_>,
        work: impl FnOnce(Runner<'_, '_>) -> Result<T, EngineError>,
    ) -> Result<T, Failure> {
        let bound = self.bind(&mut session)?;
        let progress = Progress::new(session.state());
        let mut watchers = Watchers { log: &mut self.log, progress };
        let Opening { config, parts, .. } = self.opening;
        let settings = &Settings { world: bound.world, ..config.settings.clone() };
        let (crash, stop, keep_home) = (&self.crash, &self.signals.stop, bound.keep);
        let Parts { tools, replace, .. } = **parts;
        let runner = Runner { session, settings, keep_home, crash, stop, observer: &mut watchers, tools, replace };
        Ok(work(runner)?)
    }

    /// Finds the task's folders, as they are under the lease.
    fn bind(&self, session: &mut TaskSession<'_>) -> Result<Bound, Failure> {
        let completion = Completion::of(session.reader(), &self.opening.task)?;
        self.opening.bind(session.reader(), completion.as_ref())
    }

    fn look_after(&mut self, session: &mut TaskSession<'_>) -> Result<Exit, Failure> {
        let (state, task) = (session.state(), &self.opening.task);
        if state.status == TaskStatus::Done {
            if let Some(completion) = Completion::of(session.reader(), task)? {
                let world = self.bind(session)?.world;
                completion.sweep(task, &world)?;
                let points = self.crash.scope(None);
                let replace = self.opening.parts.replace;
                if completion.carry_out(session.reader(), task, &world, replace, points)? == Published::New {
                    say!("the report of task `{task}` was missing or changed, it is there again");
                }
            }
            self.log.already_done()?;
        }
        Ok(report(task, &Ended::of(session.reader(), task, state)?, "already "))
    }
}

/// Says what a person has to say first.
pub(super) fn needs_a_person(db: &Path, task: &TaskId, step: u32, parts: &Parts<'_>) -> Result<Exit, Failure> {
    let asks = asks_at(&mut open_for(db, task)?, parts.tools, task, step)?;
    say!("{}", asks.sentence());
    Ok(Exit::Person)
}

/// Says how a task has ended.
pub(super) fn report(task: &TaskId, ended: &Ended, already: &str) -> Exit {
    match ended {
        Ended::Done => {
            say!("task `{task}` is {already}done");
            Exit::Done
        }
        Ended::Cancelled => {
            say!("task `{task}` is {already}cancelled");
            Exit::Cancelled
        }
        Ended::Failed { step, reason, cause } => {
            let what = step.map_or("its report".to_owned(), |step| format!("step {step}"));
            let cause = cause.as_ref().map_or(String::new(), |cause| format!(": {cause}"));
            let (how, again) = match reason {
                None | Some(FailReason::MaxAttempts) => ("used up its attempts".to_owned(), "gives it new ones"),
                Some(FailReason::Permanent) => ("failed for good".to_owned(), "tries it again all the same"),
                Some(FailReason::Abandoned) => ("was given up in doubt".to_owned(), "takes it up again"),
                Some(FailReason::Rejected) => ("was refused".to_owned(), "asks again"),
                Some(FailReason::Expired) => ("was not answered in time".to_owned(), "asks again"),
                Some(FailReason::Other(other)) => (format!("failed ({other})"), "gives it new attempts"),
            };
            say!("task `{task}` has {already}failed: {what} {how}{cause}; `agent retry` {again}");
            Exit::TaskFailed
        }
    }
}

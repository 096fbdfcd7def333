//! What `run` and `inbox` share: a task under lease, brought to its end, with its action log.

use std::path::Path;

use store::model::{Event, RunId, TaskId, TaskState, TaskStatus};
use store::{Clock, Crash, Reader, Store, SystemClock, TaskSession};
use tools::{Published, Stop};

use super::opening::Opening;
use super::{Parts, say};
use crate::action_log::{ActionLog, LogError};
use crate::engine::{Completion, Ended, Observer, ObserverError, Outcome, Runner, Settings};
use crate::exit::{Exit, Failure};
use crate::home::Bound;
use crate::progress::Progress;
use crate::signals::Signals;

/// Which action log a task gets.
#[derive(Clone, Copy, Debug)]
pub struct LogChoice<'a> {
    /// The file.
    pub path: &'a Path,
    /// Whether the task goes on where the log cannot be written.
    pub best_effort: bool,
}

/// The action log of a run, if it has one.
pub(super) struct Log {
    log: Option<ActionLog>,
    best_effort: bool,
    warned: bool,
}

impl Log {
    /// Opens it. To be called before anything of the task is stored, so that a log that cannot be had costs nothing.
    pub(super) fn open(
        choice: Option<LogChoice<'_>>,
        task: &TaskId,
        run: &RunId,
        crash: &Crash,
        stop: &Stop,
        parts: &Parts<'_>,
    ) -> Result<Self, Failure> {
        let Some(LogChoice { path, best_effort }) = choice else {
            return Ok(Self { log: None, best_effort: false, warned: false });
        };
        let mut log = Self { log: None, best_effort, warned: false };
        match ActionLog::open(path, task, run, crash, stop, parts.tools, parts.log) {
            Ok(open) => log.log = Some(open),
            Err(error) => log.settle(Err(error))?,
        }
        Ok(log)
    }

    fn start(&mut self, reader: &mut dyn Reader) -> Result<(), LogError> {
        let Some(log) = &mut self.log else { return Ok(()) };
        let result = log.start(reader);
        if result.is_err() {
            // What it has is not known, so nothing can be added to it; the next run reconciles it.
            self.log = None;
        }
        self.settle(result)
    }

    fn catch_up(&mut self, reader: &mut dyn Reader) -> Result<(), LogError> {
        let Some(log) = &mut self.log else { return Ok(()) };
        let result = log.catch_up(reader);
        self.settle(result)
    }

    fn already_done(&mut self) -> Result<(), LogError> {
        let Some(log) = &mut self.log else { return Ok(()) };
        let result = log.already_done(SystemClock.now().as_seconds());
        self.settle(result)
    }

    /// An error of the log ends the run, or is said once where the log is best effort. After a failed sync nothing is
    /// written any more: the next one would report pages as written that the kernel has dropped.
    fn settle(&mut self, result: Result<(), LogError>) -> Result<(), LogError> {
        let error = match result {
            Ok(()) => return Ok(()),
            Err(error @ LogError::Store(_)) => return Err(error),
            Err(error) if !self.best_effort => return Err(error),
            Err(error) => error,
        };
        if matches!(error, LogError::Sync { .. }) {
            self.log = None;
        }
        if !std::mem::replace(&mut self.warned, true) {
            say!("warning: {error}; the task goes on, a later run writes what the log lacks");
        }
        Ok(())
    }
}

/// Hears of every commit: first the log, then the eye.
struct Watchers<'a> {
    log: &'a mut Log,
    progress: Progress,
}

impl Observer for Watchers<'_> {
    fn committed(&mut self, reader: &mut dyn Reader, state: TaskState, events: &[Event]) -> Result<(), ObserverError> {
        self.log.catch_up(reader)?;
        self.progress.committed(reader, state, events)
    }
}

/// A run of one task, with everything that was checked and opened for it.
pub(super) struct Work<'a> {
    pub(super) opening: &'a Opening<'a>,
    pub(super) run: RunId,
    pub(super) crash: Crash,
    pub(super) signals: Signals,
    pub(super) log: Log,
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
    pub(super) fn carry_on(mut self, mut session: TaskSession<'_>) -> Result<Exit, Failure> {
        self.log.start(session.reader())?;
        if session.state().status.is_over() {
            return self.look_after(&mut session);
        }
        let bound = self.bind(&mut session)?;
        let progress = Progress::new(session.state());
        let mut watchers = Watchers { log: &mut self.log, progress };
        let Opening { task, config, parts, .. } = self.opening;
        let settings = &Settings { world: bound.world, ..config.settings.clone() };
        let (crash, stop, keep_home) = (&self.crash, &self.signals.stop, bound.keep);
        let Parts { tools, replace, .. } = **parts;
        let runner = Runner { session, settings, keep_home, crash, stop, observer: &mut watchers, tools, replace };
        let outcome = runner.run()?;
        drop(watchers);
        Ok(match outcome {
            Outcome::Stopped => {
                say!("task `{task}` is stopped by a signal; `agent run` goes on with it");
                self.signals.exit()
            }
            Outcome::Over(ended) => report(task, &ended, ""),
        })
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

/// Says how a task has ended.
pub(super) fn report(task: &TaskId, ended: &Ended, already: &str) -> Exit {
    match ended {
        Ended::Done => {
            say!("task `{task}` is {already}done");
            Exit::Done
        }
        Ended::Failed { step, cause } => {
            let what = step.map_or("its report".to_owned(), |step| format!("step {step}"));
            let cause = cause.as_ref().map_or(String::new(), |cause| format!(": {cause}"));
            say!(
                "task `{task}` has {already}failed: {what} used up its attempts{cause}; `agent retry` gives it new ones"
            );
            Exit::TaskFailed
        }
    }
}

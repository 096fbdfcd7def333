//! What `run` and `inbox` share: a task under lease, brought to its end, with its action log.

use std::path::Path;

use store::model::{Event, RunId, TaskId, TaskState, TaskStatus};
use store::{Clock, Crash, Reader, Store, SystemClock, TaskSession};
use tools::Published;

use super::{Parts, Sink, say};
use crate::action_log::{ActionLog, LogError};
use crate::completion::Completion;
use crate::config::Config;
use crate::exit::{Exit, Failure};
use crate::progress::Progress;
use crate::runner::{Observer, Outcome, Runner, preflight};
use crate::signals::Stop;

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
        sink: Sink<'_>,
    ) -> Result<Self, Failure> {
        let Some(LogChoice { path, best_effort }) = choice else {
            return Ok(Self { log: None, best_effort: false, warned: false });
        };
        let mut log = Self { log: None, best_effort, warned: false };
        match ActionLog::open(path, task, run, crash, sink) {
            Ok(open) => log.log = Some(open),
            Err(error) => log.settle(Err(error))?,
        }
        Ok(log)
    }

    fn start(&mut self, session: &mut TaskSession<'_>) -> Result<(), Failure> {
        let Some(log) = &mut self.log else { return Ok(()) };
        let result = log.start(session);
        if result.is_err() {
            // What it has is not known, so nothing can be added to it; the next run reconciles it.
            self.log = None;
        }
        self.settle(result)
    }

    fn catch_up(&mut self, session: &mut TaskSession<'_>) -> Result<(), Failure> {
        let Some(log) = &mut self.log else { return Ok(()) };
        let result = log.catch_up(session);
        self.settle(result)
    }

    fn already_done(&mut self) -> Result<(), Failure> {
        let Some(log) = &mut self.log else { return Ok(()) };
        let result = log.already_done(SystemClock.now());
        self.settle(result)
    }

    /// An error of the log ends the run, or is said once where the log is best effort. After a failed sync nothing is
    /// written any more: the next one would report pages as written that the kernel has dropped.
    fn settle(&mut self, result: Result<(), LogError>) -> Result<(), Failure> {
        let error = match result {
            Ok(()) => return Ok(()),
            Err(error @ LogError::Store(_)) => return Err(error.into()),
            Err(error) if !self.best_effort => return Err(error.into()),
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
    fn committed(&mut self, session: &mut TaskSession<'_>, events: &[Event]) -> Result<(), Failure> {
        self.log.catch_up(session)?;
        self.progress.committed(session, events)
    }
}

/// A run of one task, with everything that was checked and opened for it.
pub(super) struct Work<'a> {
    pub(super) task: &'a TaskId,
    pub(super) run: &'a RunId,
    pub(super) config: &'a Config,
    pub(super) crash: &'a Crash,
    pub(super) stop: &'a Stop,
    pub(super) parts: &'a Parts<'a>,
    pub(super) log: Log,
}

impl Work<'_> {
    /// Takes the lease and goes on.
    pub(super) fn take_up(self, store: &mut dyn Store) -> Result<Exit, Failure> {
        let session = TaskSession::open(store, &SystemClock, self.task, self.run)?;
        self.carry_on(session)
    }

    /// Reconciles the log, runs to the end; for a task that is over, sees that what it left is there.
    pub(super) fn carry_on(mut self, mut session: TaskSession<'_>) -> Result<Exit, Failure> {
        self.log.start(&mut session)?;
        if session.state().status.is_over() {
            return self.look_after(&mut session);
        }
        let progress = Progress::new(session.state());
        let mut watchers = Watchers { log: &mut self.log, progress };
        let (config, crash, stop) = (self.config, self.crash, self.stop);
        let Parts { tools, replace, .. } = *self.parts;
        let runner = Runner { session, config, crash, stop, observer: &mut watchers, tools, replace };
        let outcome = runner.run()?;
        drop(watchers);
        Ok(report(self.task, &outcome, ""))
    }

    fn look_after(&mut self, session: &mut TaskSession<'_>) -> Result<Exit, Failure> {
        let state = session.state();
        if state.status == TaskStatus::Done {
            if let Some(completion) = Completion::of(session.reader(), self.task)? {
                completion.sweep(self.task)?;
                let points = self.crash.scope(None);
                if completion.carry_out(session.reader(), self.task, self.parts.replace, points)? == Published::New {
                    say!("the report of task `{}` was missing or changed, it is there again", self.task);
                }
            }
            self.log.already_done()?;
        }
        Ok(report(self.task, &over(state), "already "))
    }
}

/// Refuses what the next step or the task's end would stumble over, as far as reading tells.
pub(super) fn check_ahead(
    reader: &mut dyn Reader,
    task: &TaskId,
    state: TaskState,
) -> Result<Option<Completion>, Failure> {
    let completion = Completion::of(reader, task)?;
    if !state.status.is_over() {
        preflight(reader, task, state)?;
    }
    Ok(completion)
}

/// How a task that is over has ended.
pub(super) fn over(state: TaskState) -> Outcome {
    match state.status {
        TaskStatus::Failed => Outcome::Failed { step: state.cursor, error: None },
        _ => Outcome::Done,
    }
}

/// Says how a run ended.
pub(super) fn report(task: &TaskId, outcome: &Outcome, already: &str) -> Exit {
    match outcome {
        Outcome::Done => {
            say!("task `{task}` is {already}done");
            Exit::Done
        }
        Outcome::Failed { step, error } => {
            let why = match error {
                Some(error) => format!("step {step} used up its attempts: {error}"),
                None => format!("step {step} used up its attempts"),
            };
            say!("task `{task}` has {already}failed: {why}; `agent retry` gives it new ones");
            Exit::TaskFailed
        }
        Outcome::Stopped(exit) => {
            say!("task `{task}` is stopped by a signal; `agent run` goes on with it");
            *exit
        }
    }
}

//! The action log of a run, and who else hears of its commits.

use std::path::Path;

use store::model::{Event, RunId, TaskId, TaskState};
use store::{Clock, Crash, Reader, SystemClock};
use tools::Stop;

use super::{Parts, say};
use crate::action_log::{ActionLog, LogError};
use crate::engine::{Observer, ObserverError, Remark};
use crate::exit::Failure;
use crate::narrate::utc;
use crate::progress::Progress;

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

    pub(super) fn start(&mut self, reader: &mut dyn Reader) -> Result<(), LogError> {
        let Some(log) = &mut self.log else { return Ok(()) };
        let result = log.start(reader);
        if result.is_err() {
            // What it has is not known, so nothing can be added to it; the next run reconciles it.
            self.log = None;
        }
        self.settle(result)
    }

    pub(super) fn catch_up(&mut self, reader: &mut dyn Reader) -> Result<(), LogError> {
        let Some(log) = &mut self.log else { return Ok(()) };
        let result = log.catch_up(reader);
        self.settle(result)
    }

    pub(super) fn already_done(&mut self) -> Result<(), LogError> {
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
pub(super) struct Watchers<'a> {
    pub(super) log: &'a mut Log,
    pub(super) progress: Progress,
}

impl Observer for Watchers<'_> {
    fn committed(&mut self, reader: &mut dyn Reader, state: TaskState, events: &[Event]) -> Result<(), ObserverError> {
        self.log.catch_up(reader)?;
        self.progress.committed(reader, state, events)
    }

    fn hears(&mut self, remark: &Remark) {
        match remark {
            Remark::Waits(until) => {
                say!("waiting until {}; a signal ends that, and a later run goes on", utc(*until));
            }
            Remark::Differs { what, before, now } => {
                say!("warning: the {what} is {now}, and was {before} in the first run of the task");
            }
        }
    }
}

//! The loop.

use std::collections::VecDeque;
use std::time::Duration;

use store::crash::{COMPLETE_DONE, COMPLETE_READY};
use store::machine::{Command, Next, next};
use store::model::{Event, TaskState, TaskStatus};
use store::{Crash, StepRow, TaskSession, limits};
use tools::{Stop, World};

use super::attempt::Attempt;
use super::completion::{Completion, Replace};
use super::prepared::{Lookup, Prepared, no_such_step};
use super::{EngineError, Observer};

/// What a run goes by.
#[derive(Clone, Debug)]
pub struct Settings {
    /// What tools may know.
    pub world: World,
    /// Attempts per step before the task fails.
    pub max_attempts: u32,
    /// Pause inside every step, before its effect.
    pub step_delay: Duration,
    /// Negative control only: a fresh idempotency key for every attempt.
    pub unsafe_keys: bool,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The task is over.
    Over(Ended),
    /// The process was asked to stop, and the task is not over.
    Stopped,
}

/// How a task has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// It is done.
    Done,
    /// It has failed at this step; the error is that of its last attempt, where this run saw it.
    Failed {
        /// The step.
        step: u32,
        /// What its tool said last.
        error: Option<String>,
    },
}

impl Ended {
    /// How a task that is over has ended; `error` is what the last attempt of a failed step said, if that is known.
    pub(crate) fn of(state: TaskState, error: Option<String>) -> Self {
        match state.status {
            TaskStatus::Failed => Self::Failed { step: state.cursor, error },
            _ => Self::Done,
        }
    }
}

/// A run of a task under lease.
pub(crate) struct Runner<'a, 's> {
    /// The task.
    pub(crate) session: TaskSession<'s>,
    /// What it goes by.
    pub(crate) settings: &'a Settings,
    /// Its crash points.
    pub(crate) crash: &'a Crash,
    /// Whether it has to stop.
    pub(crate) stop: &'a Stop,
    /// Who hears of its progress.
    pub(crate) observer: &'a mut dyn Observer,
    /// Where its tools come from.
    pub(crate) tools: Lookup<'a>,
    /// Puts the report into the world.
    pub(crate) replace: Replace<'a>,
}

impl Runner<'_, '_> {
    /// Recovers, then runs to the end.
    ///
    /// # Errors
    /// The process must stop; whatever was committed is durable, and the next run goes on from there.
    pub(crate) fn run(mut self) -> Result<Outcome, EngineError> {
        let state = self.session.state();
        if state.status.is_over() {
            return Ok(Outcome::Over(Ended::of(state, None)));
        }
        self.recover()?;
        let mut page = VecDeque::new();
        let mut error = None;
        loop {
            match next(&self.session.state()) {
                Next::Over(_) => return Ok(Outcome::Over(Ended::of(self.session.state(), error))),
                _ if self.stop.asked() => return Ok(Outcome::Stopped),
                Next::Complete => self.complete()?,
                Next::Step(step) => {
                    let prepared = self.prepare(step, &mut page)?;
                    match self.attempt(&prepared)? {
                        Attempt::Failed(why) => {
                            page.push_front(prepared.step);
                            error = Some(why);
                        }
                        Attempt::Done | Attempt::Released | Attempt::Over => {}
                    }
                }
            }
        }
    }

    fn complete(&mut self) -> Result<(), EngineError> {
        self.crash.scope(None).point(COMPLETE_READY);
        if let Some(completion) = self.completion()? {
            let task = self.session.task().clone();
            completion.carry_out(self.session.reader(), &task, self.replace, self.crash.scope(None))?;
        }
        self.commit(&Command::Complete)?;
        self.crash.scope(None).point(COMPLETE_DONE);
        Ok(())
    }

    pub(super) fn completion(&mut self) -> Result<Option<Completion>, EngineError> {
        let task = self.session.task().clone();
        Completion::of(self.session.reader(), &task)
    }

    /// The step with what it needs; `page` holds the rows that were read ahead.
    pub(super) fn prepare(&mut self, step: u32, page: &mut VecDeque<StepRow>) -> Result<Prepared, EngineError> {
        let task = self.session.task().clone();
        if page.is_empty() {
            page.extend(self.session.reader().steps(&task, step, limits::STEP_PAGE)?);
        }
        match page.pop_front() {
            Some(row) if row.idx == step => Prepared::read(self.session.reader(), &task, row, self.tools),
            _ => Err(no_such_step(&task, step)),
        }
    }

    pub(super) fn commit(&mut self, command: &Command) -> Result<(), EngineError> {
        let events = self.session.apply(command)?;
        self.tell(&events)
    }

    pub(super) fn tell(&mut self, events: &[Event]) -> Result<(), EngineError> {
        let state = self.session.state();
        self.observer.committed(self.session.reader(), state, events).map_err(EngineError::Observer)
    }
}

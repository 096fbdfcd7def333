//! The loop: from recovery to the end.

use std::collections::VecDeque;
use std::time::Duration;

use store::crash::{COMPLETE_DONE, COMPLETE_READY};
use store::machine::{Command, Next, next};
use store::model::{FailReason, TaskId, TaskState, TaskStatus, Timestamp};
use store::{Reader, StoreError};
use tools::PublishError;

use super::attempt::one_line;
use super::completion::Completion;
use super::history::History;
use super::{EngineError, Remark, Runner};

/// How often a run that waits looks at the clock.
const CLOCK_LOOK: Duration = Duration::from_secs(1);

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The task is over.
    Over(Ended),
    /// The process was asked to stop, and the task is not over.
    Stopped,
    /// A person has to speak about this step first.
    Person(u32),
    /// Nothing is due before then.
    NotDue(Timestamp),
}

/// How a task has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// It is done.
    Done,
    /// A person has ended it.
    Cancelled,
    /// It has failed.
    Failed {
        /// At which step; none where it was the completion.
        step: Option<u32>,
        /// Why, as far as the journal says.
        reason: Option<FailReason>,
        /// What is known of the last attempt.
        cause: Option<String>,
    },
}

impl Ended {
    /// How a task that is over has ended, as its journal says.
    ///
    /// # Errors
    /// The journal cannot be read.
    pub(crate) fn of(reader: &mut dyn Reader, task: &TaskId, state: TaskState) -> Result<Self, StoreError> {
        match state.status {
            TaskStatus::Failed => {
                let step = state.step();
                let history = History::of(reader, task, step)?;
                Ok(Self::Failed { step, reason: history.reason(), cause: history.cause() })
            }
            TaskStatus::Cancelled => Ok(Self::Cancelled),
            _ => Ok(Self::Done),
        }
    }
}

impl Runner<'_, '_> {
    /// Recovers, then runs to the end. The task must not be over.
    ///
    /// # Errors
    /// The process must stop; whatever was committed is durable, and the next run goes on from there.
    pub(crate) fn run(mut self) -> Result<Outcome, EngineError> {
        // A run that comes too early has nothing to recover and nothing to say.
        if let Next::Until(due) = next(&self.session.state(), self.session.now())
            && let Some(outcome) = self.wait_until(due)
        {
            return Ok(outcome);
        }
        self.recover()?;
        let mut page = VecDeque::new();
        loop {
            match next(&self.session.state(), self.session.now()) {
                Next::Over(_) => return self.over(),
                // Asked last: a stop that comes when the task is over has stopped nothing.
                _ if self.stop.asked() => return Ok(Outcome::Stopped),
                Next::Person(step) => return Ok(Outcome::Person(step)),
                Next::Until(due) => {
                    if let Some(outcome) = self.wait_until(due) {
                        return Ok(outcome);
                    }
                }
                Next::Complete => self.complete()?,
                Next::Step(step) => {
                    let prepared = self.prepare(step, &mut page)?;
                    self.attempt(&prepared)?;
                    if self.session.state().step() == Some(step) {
                        // Its row has changed.
                        page.clear();
                    }
                }
            }
        }
    }

    /// Sleeps, with the lock; the time is in the database, so that a run which dies meanwhile changes nothing. Gives
    /// how the run ends where it does not wait to the end.
    fn wait_until(&mut self, due: Timestamp) -> Option<Outcome> {
        if self.settings.no_wait {
            return Some(Outcome::NotDue(due));
        }
        self.observer.hears(&Remark::Waits(due));
        loop {
            let left = due.as_micros().saturating_sub(self.session.now().as_micros());
            match u64::try_from(left) {
                _ if self.stop.asked() => return Some(Outcome::Stopped),
                // A clock that is set meanwhile is followed.
                Ok(left) if left > 0 => self.stop.sleep(Duration::from_micros(left).min(CLOCK_LOOK)),
                _ => return None,
            }
        }
    }

    fn over(&mut self) -> Result<Outcome, EngineError> {
        let (task, state) = (self.session.task().clone(), self.session.state());
        Ok(Outcome::Over(Ended::of(self.session.reader(), &task, state)?))
    }

    /// What comes after the last step. A completion is begun, limited and recovered like a step: one that kills its
    /// process each time must come to an end too.
    fn complete(&mut self) -> Result<(), EngineError> {
        let completion = self.completion()?;
        if completion.is_some() {
            let budget = self.budget_at_the_end()?;
            self.commit(&Command::StartCompletion(budget))?;
            if self.session.state().status.is_over() {
                return Ok(());
            }
        }
        self.crash.scope(None).point(COMPLETE_READY);
        if let Some(completion) = completion {
            self.carry_out(&completion)?;
        }
        self.commit(&Command::Complete)?;
        self.crash.scope(None).point(COMPLETE_DONE);
        Ok(())
    }

    /// A place at which the report cannot stand is journaled and not counted, for somebody else has to mend it. Where
    /// the disk cannot be trusted, nothing is recorded.
    fn carry_out(&mut self, completion: &Completion) -> Result<(), EngineError> {
        let task = self.session.task().clone();
        let points = self.crash.scope(None);
        let done = completion.carry_out(self.session.reader(), &task, &self.settings.world, self.replace, points);
        if let Err(EngineError::Report(why)) = &done
            && !matches!(why, PublishError::Sync { .. })
        {
            self.commit(&Command::FailCompletion { error: one_line(&why.to_string()) })?;
        }
        done.map(drop)
    }
}

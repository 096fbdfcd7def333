//! The loop: from recovery to the end.

use std::collections::VecDeque;

use store::crash::{COMPLETE_DONE, COMPLETE_READY};
use store::machine::{Command, Next, next};
use store::model::{TaskId, TaskState, TaskStatus, Timestamp};
use store::{Reader, StoreError};
use tools::PublishError;

use super::attempt::{Attempt, one_line};
use super::completion::Completion;
use super::history::History;
use super::{EngineError, Runner};

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
                Ok(Self::Failed { step, cause: History::of(reader, task, step)?.cause() })
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
        self.recover()?;
        let mut page = VecDeque::new();
        loop {
            match next(&self.session.state(), self.session.now()) {
                Next::Over(_) => return self.over(),
                // Asked last: a stop that comes when the task is over has stopped nothing.
                _ if self.stop.asked() => return Ok(Outcome::Stopped),
                Next::Person(step) => return Ok(Outcome::Person(step)),
                Next::Until(due) => return Ok(Outcome::NotDue(due)),
                Next::Complete => self.complete()?,
                Next::Step(step) => {
                    let prepared = self.prepare(step, &mut page)?;
                    match self.attempt(&prepared)? {
                        Attempt::Failed => page.push_front(prepared.step),
                        Attempt::Done | Attempt::Released | Attempt::Over => {}
                    }
                }
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
            let budget = self.budget(None)?;
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

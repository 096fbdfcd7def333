//! One run's hold on one task: load, decide, evolve, commit, written once for every backend.

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::clock::Clock;
use crate::commit::Commit;
use crate::error::{ErrorKind, StoreError};
use crate::lease::{Fence, Lease};
use crate::machine::{Command, Refused, decide};
use crate::model::{Event, PlanSource, RunId, TaskId, TaskState, Timestamp};
use crate::store::{Reader, Store};

/// Why a command did not go through. In each case nothing of it is stored.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// It is not legal in the task's state.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// The store refused or failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A task under lease. Every change of a task goes through [`TaskSession::apply`].
pub struct TaskSession<'a> {
    store: &'a mut dyn Store,
    clock: &'a dyn Clock,
    lease: Lease,
    state: TaskState,
}

impl<'a> TaskSession<'a> {
    /// Takes the lease, then loads the state: in that order, since what is read before the lock may be another run's
    /// work in progress.
    ///
    /// # Errors
    /// [`ErrorKind::Held`] where another process has the lease; nothing was changed.
    pub fn open(
        store: &'a mut dyn Store,
        clock: &'a dyn Clock,
        task: &TaskId,
        run: &RunId,
    ) -> Result<Self, StoreError> {
        let lease = store.acquire(task, run)?;
        Self::under(store, clock, lease)
    }

    /// Loads the state under a lease that is held.
    ///
    /// # Errors
    /// The task is not there, or cannot be read.
    pub fn under(store: &'a mut dyn Store, clock: &'a dyn Clock, lease: Lease) -> Result<Self, StoreError> {
        let Some(state) = store.load(lease.task())? else {
            let why = format!("task `{}` has vanished from the database", lease.task());
            return Err(StoreError::new(ErrorKind::Conflict, why));
        };
        Ok(Self { store, clock, lease, state })
    }

    /// Creates the task and holds it: no other process comes in between.
    ///
    /// # Errors
    /// [`ErrorKind::Held`] where another process is creating or running it, [`ErrorKind::Exists`] where it is there
    /// already; nothing was changed.
    pub fn create(
        store: &'a mut dyn Store,
        clock: &'a dyn Clock,
        task: &TaskId,
        run: &RunId,
        plan: Arc<dyn PlanSource>,
        home: Option<String>,
    ) -> Result<Self, StoreError> {
        let lease = store.reserve(task, run)?;
        let commit = Commit::create(lease.fence().clone(), clock.now(), plan, home);
        store.commit(&commit)?;
        Ok(Self { store, clock, lease, state: commit.next() })
    }

    /// The task.
    #[must_use]
    pub fn task(&self) -> &TaskId {
        self.lease.task()
    }

    /// The task's state as of the last commit.
    #[must_use]
    pub fn state(&self) -> TaskState {
        self.state
    }

    /// The present time, by the clock that the journal goes by.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// For reading plans and outputs.
    pub fn reader(&mut self) -> &mut dyn Reader {
        self.store
    }

    /// The run.
    #[must_use]
    pub fn run(&self) -> &RunId {
        self.lease.run()
    }

    /// Decides `command` and commits what it causes, which may be nothing. The events are durable when it returns.
    ///
    /// # Errors
    /// Refused by the machine or by the store; nothing is stored.
    pub fn apply(&mut self, command: &Command) -> Result<Vec<Event>, SessionError> {
        self.write(command, None, &mut |_| false)
    }

    /// Like [`TaskSession::apply`] for a command that makes a step done, whose output, the text of a JSON object, is
    /// stored with it. Where the store fails, `again` is asked whether the same commit is to be tried once more.
    ///
    /// # Errors
    /// Refused by the machine or by the store; nothing is stored.
    pub fn apply_with(
        &mut self,
        command: &Command,
        output: String,
        again: &mut dyn FnMut(&StoreError) -> bool,
    ) -> Result<Vec<Event>, SessionError> {
        self.write(command, Some(output), again)
    }

    /// Finishes a step.
    ///
    /// # Errors
    /// Refused by the machine or by the store; nothing is stored.
    pub fn finish(&mut self, step: u32, tool: &str, output: Map<String, Value>) -> Result<Vec<Event>, SessionError> {
        let command = Command::Finish { step, tool: tool.to_owned(), adopted: false };
        self.apply_with(&command, Value::Object(output).to_string(), &mut |_| false)
    }

    fn write(
        &mut self,
        command: &Command,
        output: Option<String>,
        again: &mut dyn FnMut(&StoreError) -> bool,
    ) -> Result<Vec<Event>, SessionError> {
        let now = self.clock.now();
        let events = decide(&self.state, command, now)?;
        if events.is_empty() {
            return Ok(events);
        }
        let commit = Commit::new(self.lease.fence().clone(), now, self.state, events, output)
            .unwrap_or_else(|illegal| unreachable!("decide and evolve disagree on {command:?}: {illegal}"));
        while let Err(error) = self.store.commit(&commit) {
            if !again(&error) {
                return Err(error.into());
            }
        }
        self.state = commit.next();
        Ok(commit.into_events())
    }

    /// Asserts that the task is still this run's; see [`Store::renew`].
    ///
    /// # Errors
    /// [`ErrorKind::Fenced`] where a later run has taken it over.
    pub fn renew(&mut self) -> Result<(), StoreError> {
        self.store.renew(&self.lease)
    }

    /// Gives the task back.
    ///
    /// # Errors
    /// See [`Store::release`]; the task is given back all the same.
    pub fn release(self) -> Result<(), StoreError> {
        self.store.release(self.lease)
    }
}

/// Stores a task that nobody is to hold.
///
/// # Errors
/// [`ErrorKind::Exists`] where it is there already; nothing was changed.
pub fn create(
    store: &mut dyn Store,
    clock: &dyn Clock,
    task: &TaskId,
    plan: Arc<dyn PlanSource>,
    home: Option<String>,
) -> Result<(), StoreError> {
    let fence = Fence::unheld(task.clone(), RunId::random());
    store.commit(&Commit::create(fence, clock.now(), plan, home))
}

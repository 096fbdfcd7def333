//! The right to change one task.

use std::any::Any;
use std::fmt;

use crate::model::{RunId, TaskId};

/// Grows with every lease of a task. A commit under an old token is refused, whatever its holder believes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FencingToken(pub i64);

/// The right of one run to change one task, from [`crate::Store::acquire`] until it is dropped or the process dies.
pub struct Lease {
    task: TaskId,
    run: RunId,
    token: FencingToken,
    /// What keeps the lease alive while it exists, for SQLite the locked file. Dropping it gives the lease up.
    _hold: Box<dyn Any + Send>,
}

impl Lease {
    /// For backends: a lease that lives as long as `hold` does.
    pub fn new(task: TaskId, run: RunId, token: FencingToken, hold: Box<dyn Any + Send>) -> Self {
        Self { task, run, token, _hold: hold }
    }

    /// The task that may be changed.
    #[must_use]
    pub fn task(&self) -> &TaskId {
        &self.task
    }

    /// The run that holds the lease; every event that it journals carries this id.
    #[must_use]
    pub fn run(&self) -> &RunId {
        &self.run
    }

    /// The token that a commit is checked against.
    #[must_use]
    pub fn token(&self) -> FencingToken {
        self.token
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease").field("task", &self.task).field("run", &self.run).field("token", &self.token).finish()
    }
}

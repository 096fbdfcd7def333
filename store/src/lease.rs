//! The right to change one task.

use std::any::Any;
use std::fmt;

use crate::model::{RunId, TaskId};

/// Grows with every lease of a task. A commit under an old token is refused, whatever its holder believes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FencingToken(pub i64);

/// Who writes, and by which right: what a commit is checked against and journaled under. It is plain data and goes
/// wherever the commit goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fence {
    /// The task that is changed.
    pub task: TaskId,
    /// The run that changes it; every event that it journals carries this id.
    pub run: RunId,
    /// The token that the commit is checked against.
    pub token: FencingToken,
}

impl Fence {
    /// For the creation of a task that nobody is to hold.
    #[must_use]
    pub fn unheld(task: TaskId, run: RunId) -> Self {
        Self { task, run, token: FencingToken(0) }
    }
}

/// The right of one run to change one task, from [`crate::Store::acquire`] until it is released, lost or dropped, or
/// the process dies.
pub struct Lease {
    fence: Fence,
    /// What keeps the lease alive while it exists, for SQLite the locked file. Dropping it gives the lease up.
    _hold: Box<dyn Any + Send + Sync>,
}

impl Lease {
    /// For backends: a lease that lives as long as `hold` does.
    pub fn new(fence: Fence, hold: Box<dyn Any + Send + Sync>) -> Self {
        Self { fence, _hold: hold }
    }

    /// What the commits under this lease carry.
    #[must_use]
    pub fn fence(&self) -> &Fence {
        &self.fence
    }

    /// The task that may be changed.
    #[must_use]
    pub fn task(&self) -> &TaskId {
        &self.fence.task
    }

    /// The run that holds the lease.
    #[must_use]
    pub fn run(&self) -> &RunId {
        &self.fence.run
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease").field("fence", &self.fence).finish_non_exhaustive()
    }
}

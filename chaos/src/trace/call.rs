//! What a watch is told of a call, and what it may answer.

use nix::errno::Errno;

use super::op::Op;
use crate::error::LabError;

/// What a call is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// It changes the folder.
    Change,
    /// It makes changes durable.
    Sync,
    /// It changes SQLite's shared memory, which no kill and no power cut keeps.
    Shm,
    /// It prints.
    Say,
}

/// A call that touches the folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// The kernel's name of it, e.g. `pwrite64`.
    pub name: &'static str,
    /// What it is about.
    pub class: Class,
    /// The file, relative to the folder.
    pub path: String,
    /// How many bytes it is asked to write; 0 for other calls.
    pub bytes: usize,
    /// The thread that makes it.
    pub thread: i32,
}

/// A call that has been made.
#[derive(Debug, Clone)]
pub struct Done {
    /// What the kernel returned; `-errno` for a failure.
    pub result: i64,
    /// What it did to the folder.
    pub ops: Vec<Op>,
}

/// What becomes of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// It is made.
    Go,
    /// It is not made and fails with this number.
    Fail(Errno),
    /// It writes only so many bytes.
    Shorten(usize),
    /// The agent is killed here.
    Kill,
}

/// Is told of every call that touches the folder, while the agent stands still.
pub trait Watch {
    /// Before the call is made.
    ///
    /// # Errors
    /// The lab's own failures; they end the trace.
    fn before(&mut self, call: &Call) -> Result<Verb, LabError> {
        let _ = call;
        Ok(Verb::Go)
    }

    /// After it was made. [`Verb::Kill`] is the only answer but [`Verb::Go`] that has a meaning here.
    ///
    /// # Errors
    /// The lab's own failures; they end the trace.
    fn after(&mut self, call: &Call, done: Done) -> Result<Verb, LabError> {
        let _ = (call, done);
        Ok(Verb::Go)
    }
}

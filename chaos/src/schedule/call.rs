//! A place in a run that the agent does not know of: a system call.

use std::fmt;

/// `phase/call#nth`, e.g. `write_artifact:2/linkat#1`: the nth call of this kind that touches the lab's folder in that
/// phase of one process. It stays the same place when the binary changes, as long as the phase makes the same calls.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallPoint {
    /// Where the task stands: `create`, `open` before the run announced itself, `tool:step` while a step runs,
    /// `next:step` before one, `finish`, `close`.
    pub phase: String,
    /// The kernel's name of the call.
    pub call: String,
    /// Which one of them in that phase, from 1.
    pub nth: u32,
}

impl fmt::Display for CallPoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}#{}", self.phase, self.call, self.nth)
    }
}

//! Why an attempt did not succeed.

use std::time::Duration;

/// Why an attempt did not succeed. What comes of it is decided elsewhere, from this and from the class of the step.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ToolError {
    /// This attempt failed and has changed nothing; it is journaled, and tried again at once while attempts are left.
    #[error("{0}")]
    Step(String),
    /// This attempt failed and has changed nothing; a later one may succeed, when it is due.
    #[error("{why}")]
    Transient {
        /// What went wrong.
        why: String,
        /// How long the other side asks to be left alone.
        after: Option<Duration>,
    },
    /// No attempt with this input can succeed.
    #[error("{0}")]
    Permanent(String),
    /// The effect may have happened: the answer was lost, or never came.
    #[error("{why}")]
    Unknown {
        /// What is known.
        why: String,
        /// How long the other side asks to be left alone, should it be tried again.
        after: Option<Duration>,
    },
    /// The attempt was given up since [`crate::ToolContext::stop`] asks for it. Only for a call without effect, or
    /// before its effect has begun: nothing needs to be found out about it.
    #[error("given up, the process has been asked to stop")]
    Stopped,
    /// The disk can no longer be trusted, a sync failed. The process must stop without recording anything: the kernel
    /// may have dropped the very pages that a second sync would report as written.
    #[error("{0}")]
    Poison(String),
}

impl ToolError {
    /// A failed attempt, with what went wrong.
    pub fn step(why: impl Into<String>) -> Self {
        Self::Step(why.into())
    }

    /// An attempt that has changed nothing, and may succeed later.
    pub fn transient(why: impl Into<String>) -> Self {
        Self::Transient { why: why.into(), after: None }
    }

    /// An attempt that can never succeed.
    pub fn permanent(why: impl Into<String>) -> Self {
        Self::Permanent(why.into())
    }

    /// An attempt whose effect may have happened.
    pub fn unknown(why: impl Into<String>) -> Self {
        Self::Unknown { why: why.into(), after: None }
    }
}

//! Why the lab could not give a verdict. A property that is violated is never an error: that is a
//! [`crate::judge::verdict::Verdict`].

use std::path::{Path, PathBuf};

/// The lab itself could not do its work.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// The caller asked for something that does not exist or makes no sense.
    #[error("{0}")]
    Usage(String),
    /// The agent under test cannot be started at all.
    #[error("cannot start the agent `{command}`: {source}")]
    Spawn {
        /// The command as it was given.
        command: String,
        /// What the system says.
        source: std::io::Error,
    },
    /// The agent's own inventory cannot be understood.
    #[error("the agent's `tools --json` cannot be read: {0}")]
    Inventory(String),
    /// What is tested fails where nothing is done to it.
    #[error("{0}")]
    Unjudged(String),
    /// A file or folder of the lab cannot be used.
    #[error("cannot {what} {}: {source}", path.display())]
    Io {
        /// What was tried, as a verb.
        what: &'static str,
        /// Where.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// Anything else that must not happen.
    #[error("{0}")]
    Internal(String),
}

impl LabError {
    /// A thread of the lab panicked while it held something shared.
    #[must_use]
    pub fn poisoned() -> Self {
        Self::Internal("a worker of the lab panicked".to_owned())
    }

    /// An [`LabError::Io`] maker for `map_err`.
    pub fn io(what: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { what, path, source }
    }
}

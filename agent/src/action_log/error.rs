//! What can go wrong with an action log.

use std::io;
use std::path::{Path, PathBuf};

use store::StoreError;
use tools::PublishError;

/// Why the log could not be read or written. The task's state is safe in each case.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// A file operation failed.
    #[error("cannot {op} the action log {path}: {source}", path = .path.display())]
    Io {
        /// What was tried.
        op: &'static str,
        /// The log.
        path: PathBuf,
        /// What came of it.
        source: io::Error,
    },
    /// A sync failed: what the disk holds of the log is unknown.
    #[error("cannot sync the action log {path}: {source}", path = .path.display())]
    Sync {
        /// The log.
        path: PathBuf,
        /// What came of it.
        source: io::Error,
    },
    /// Its folder could not be made or synced.
    #[error("the folder of the action log: {0}")]
    Folder(#[from] PublishError),
    /// Another process holds the log's lock and does not let go of it.
    #[error("the action log {path} has been locked by another process for too long", path = .path.display())]
    Busy {
        /// The log.
        path: PathBuf,
    },
    /// Each run looks what the log has, which a pipe forgets; and a disk is not to be written over.
    #[error("the action log cannot be {path}: {source}", path = .path.display())]
    NotAFile {
        /// The log.
        path: PathBuf,
        /// What it is.
        source: io::Error,
    },
    /// Not the log: the database.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl LogError {
    pub(super) fn io<'a>(op: &'static str, path: &'a Path) -> impl Fn(io::Error) -> Self + 'a {
        move |source| Self::Io { op, path: path.to_owned(), source }
    }
}

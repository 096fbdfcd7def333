//! What can go wrong with a store, by what the caller can do about it.

use std::error::Error;

/// What the caller can do: each kind has one exit code and one piece of advice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// Another writer held the database for longer than [`crate::limits::BUSY_WAIT`]. Try again.
    Busy,
    /// Another process holds this task's lock. It is at work; nothing was changed.
    Held,
    /// The lease was lost: a later run has taken the task over. This process must stop.
    Fenced,
    /// The rows are not as this process left them. This process must stop.
    Conflict,
    /// There is no database at that place.
    Missing,
    /// There is no task of that id.
    NoTask,
    /// A task of that id exists already.
    Exists,
    /// The file is not a database of this program.
    Foreign,
    /// The database was written by a newer version of this program.
    Newer,
    /// The database is damaged, or a stored value does not decode.
    Corrupt,
    /// The file or its folder may not be read.
    Unreadable,
    /// The operating system refused to write: permissions, read-only, missing folder.
    Refused,
    /// Reading, writing or syncing failed. What was not committed is lost, nothing else; what the disk holds is
    /// unknown.
    Io,
    /// The disk is full. Nothing of the transaction is stored, and a smaller one may still go through.
    Full,
    /// A value is larger than the storage takes. Nothing of the transaction is stored.
    TooLarge,
    /// The end of a commit was not heard of: it may be stored or not. This process must stop; whoever takes the task up
    /// next finds out.
    Unsettled,
}

/// An error of a store: what was tried, what is wrong, and (by its kind) what to do.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct StoreError {
    kind: ErrorKind,
    message: String,
    source: Option<Box<dyn Error + Send + Sync>>,
}

impl StoreError {
    /// An error of `kind`; the message is one line for people and names the file or task.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), source: None }
    }

    /// The same with what caused it, which is kept beside the message: [`line`] puts them together.
    #[must_use]
    pub fn because(self, source: impl Error + Send + Sync + 'static) -> Self {
        Self { source: Some(Box::new(source)), ..self }
    }

    /// What the caller can do about it.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// True where the same call may succeed later with nothing repaired in between.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        matches!(self.kind, ErrorKind::Busy | ErrorKind::Held)
    }
}

/// An error with everything that caused it, as one line for people.
#[must_use]
pub fn line(error: &dyn Error) -> String {
    let mut line = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let said = error.to_string();
        if !line.contains(&said) {
            line = format!("{line}: {said}");
        }
        cause = error.source();
    }
    line
}

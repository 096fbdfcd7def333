//! Whether the paths still lead to the files that were opened.
//!
//! SQLite goes on writing into files that were moved or removed, and a commit into them would be told as durable while
//! nobody will ever find it. So a commit looks before it promises anything.

use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::beside::beside;
use super::error::io_failed;
use crate::error::{ErrorKind, StoreError};

/// Database and WAL, as they were when they were opened.
#[derive(Clone, Copy)]
pub(super) struct Opened {
    database: (u64, u64),
    wal: (u64, u64),
}

/// What became of them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Files {
    Same,
    /// The path of the database leads elsewhere, nowhere, or to a file that was emptied.
    DatabaseGone,
    /// The WAL has no name any more.
    WalRemoved,
    /// Under the name of the WAL lies another.
    WalReplaced,
}

impl Opened {
    /// Once there is a WAL, which there is after the first transaction.
    pub(super) fn of(path: &Path) -> Result<Self, StoreError> {
        let look = |path: &Path| fs::metadata(path).map(|meta| id(&meta)).map_err(io_failed("look at", path));
        Ok(Self { database: look(path)?, wal: look(&beside(path, "-wal"))? })
    }

    /// What became of the files.
    pub(super) fn files(&self, path: &Path) -> Files {
        match fs::metadata(path) {
            Ok(meta) if id(&meta) == self.database && meta.len() > 0 => self.wal(path),
            _ => Files::DatabaseGone,
        }
    }

    fn wal(&self, path: &Path) -> Files {
        match fs::metadata(beside(path, "-wal")) {
            Ok(meta) if id(&meta) == self.wal => Files::Same,
            Ok(_) => Files::WalReplaced,
            Err(_) => Files::WalRemoved,
        }
    }

    /// Refuses files that are no longer those that were opened.
    pub(super) fn check(&self, path: &Path) -> Result<(), StoreError> {
        accept(self.files(path), path)
    }

    /// Refuses a WAL that is no longer the one that was opened.
    pub(super) fn check_wal(&self, path: &Path) -> Result<(), StoreError> {
        accept(self.wal(path), path)
    }
}

fn accept(files: Files, path: &Path) -> Result<(), StoreError> {
    let (database, wal) = (path.display(), beside(path, "-wal"));
    let wal = wal.display();
    let why = match files {
        Files::Same => return Ok(()),
        Files::DatabaseGone => format!(
            "{database} is no longer the file that this run opened: it was moved, removed or replaced; the run stops. What \
             it had committed last is in {wal}, which needs that file beside it under that name"
        ),
        Files::WalRemoved => format!("{wal} was removed under this run, which stops"),
        Files::WalReplaced => format!(
            "{wal} is no longer the file that this run opened: it was moved, removed or replaced; the run stops. What it \
             had committed last is in the file that was moved"
        ),
    };
    Err(StoreError::new(ErrorKind::Conflict, why))
}

fn id(meta: &Metadata) -> (u64, u64) {
    (meta.dev(), meta.ino())
}

//! Whether the path still leads to the file that was opened.
//!
//! SQLite goes on writing into a file that was moved or removed, and a commit into it would be told as durable while
//! nobody will ever find it. So a commit looks before it promises anything.

use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::error::io_failed;
use crate::error::{ErrorKind, StoreError};

/// The file behind a path, as it was when it was opened.
#[derive(Clone, Copy)]
pub(super) struct Identity {
    device: u64,
    inode: u64,
}

impl Identity {
    pub(super) fn of(path: &Path) -> Result<Self, StoreError> {
        let meta = fs::metadata(path).map_err(io_failed("look at", path))?;
        Ok(Self { device: meta.dev(), inode: meta.ino() })
    }

    /// Refuses a path that leads elsewhere, nowhere, or to a file that was emptied.
    pub(super) fn check(&self, path: &Path) -> Result<(), StoreError> {
        let is_same = |meta: &Metadata| (meta.dev(), meta.ino()) == (self.device, self.inode) && meta.len() > 0;
        if fs::metadata(path).is_ok_and(|meta| is_same(&meta)) {
            return Ok(());
        }
        let why = format!(
            "{} is no longer the file that this run opened: it was moved, removed or replaced; the run stops",
            path.display()
        );
        Err(StoreError::new(ErrorKind::Conflict, why))
    }
}

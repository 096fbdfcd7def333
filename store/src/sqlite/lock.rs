//! The lock of one task: an exclusive `flock`, which the kernel frees when its holder dies.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::error::io_failed;
use crate::error::{ErrorKind, StoreError};
use crate::limits;
use crate::model::TaskId;

/// `<db>.<task>.lock`. Other programs lock the same file, so the name is fixed; see [`TaskId::file_stem`].
#[must_use]
pub fn lock_path(database: &Path, task: &TaskId) -> PathBuf {
    let mut name = OsString::from(database);
    name.push(format!(".{}.lock", task.file_stem()));
    PathBuf::from(name)
}

/// Refuses a task whose lock file the file system could not name, before anything is stored.
pub(super) fn check_lock_name(database: &Path, task: &TaskId) -> Result<(), StoreError> {
    let path = lock_path(database, task);
    let length = path.file_name().map_or(0, OsStr::len);
    if length > limits::FILE_NAME_BYTES {
        let why = format!(
            "the name of the lock file would have {length} bytes, at most {} are possible: take a shorter task id or database name",
            limits::FILE_NAME_BYTES
        );
        return Err(StoreError::new(ErrorKind::Refused, why));
    }
    Ok(())
}

/// Takes the lock without waiting.
pub(super) fn try_lock(database: &Path, task: &TaskId) -> Result<File, StoreError> {
    let path = lock_path(database, task);
    loop {
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path)
            .map_err(io_failed("open the lock file", &path))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let why = format!("another process is running task `{task}` (it holds {})", path.display());
                return Err(StoreError::new(ErrorKind::Held, why));
            }
            Err(TryLockError::Error(error)) => return Err(io_failed("lock", &path)(error)),
        }
        // Somebody may have removed the file between the two calls; a lock on a nameless file excludes nobody.
        let held = file.metadata().map_err(io_failed("look at", &path))?;
        match fs::metadata(&path) {
            Ok(named) if (named.dev(), named.ino()) == (held.dev(), held.ino()) => return Ok(file),
            _ => {}
        }
    }
}

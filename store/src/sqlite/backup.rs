//! A copy of a database that is in use.

use std::fs::{self, File};
use std::path::Path;

use rusqlite::Connection;
use rusqlite::backup::{Backup, StepResult};

use super::error::{failed, io_failed};
use super::place::sync_folder;
use super::reader::SqliteReader;
use crate::error::{ErrorKind, StoreError};
use crate::files::folder_of;

/// Copies the database at `from`, with what is still in its WAL, to the new file `to`: synced, and under its name
/// only when it is complete. Writers are not held up.
///
/// # Errors
/// [`ErrorKind::Exists`] where `to` exists: a backup never replaces anything.
pub fn backup(from: &Path, to: &Path) -> Result<(), StoreError> {
    let folder = folder_of(to);
    if fs::symlink_metadata(to).is_ok() {
        return Err(exists(to));
    }
    let mut source = SqliteReader::open(from)?;
    // A copy of a damaged database would pass for a safe one.
    source.check_small()?;
    sweep(folder);
    let temporary = tempfile::Builder::new().prefix(PREFIX).suffix(SUFFIX).tempdir_in(folder).map_err(|error| {
        StoreError::new(ErrorKind::Refused, format!("cannot write to {}: {}", folder.display(), error.kind()))
    })?;
    // Locked while this process lives, which is how a later backup knows that the folder must not be swept.
    let lock = temporary.path().join(LOCK);
    let _held = File::create(&lock).and_then(|file| file.lock().map(|()| file)).map_err(io_failed("lock", &lock))?;
    let copy = temporary.path().join("copy.db");
    source.settled(|tables| copy_pages(tables.conn, &copy))?;
    File::open(&copy).and_then(|file| file.sync_all()).map_err(io_failed("sync", &copy))?;
    fs::hard_link(&copy, to).map_err(|error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => exists(to),
        _ => io_failed("name the backup", to)(error),
    })?;
    drop(temporary);
    sync_folder(folder)
}

/// Names of the folders in which copies are made.
const PREFIX: &str = ".backup-";
const SUFFIX: &str = ".tmp";
const LOCK: &str = "lock";

/// Removes what killed backups left. It is not what was asked for, so what cannot be removed stays.
fn sweep(folder: &Path) {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    for path in entries.map(|entry| entry.path()) {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with(PREFIX)
            && name.ends_with(SUFFIX)
            && File::open(path.join(LOCK)).is_ok_and(|lock| lock.try_lock().is_ok())
        {
            let _best_effort = fs::remove_dir_all(&path);
        }
    }
}

fn copy_pages(source: &Connection, copy: &Path) -> Result<(), StoreError> {
    let failed = failed("back up the database", copy);
    match fs::remove_file(copy) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(io_failed("replace", copy)(error)),
        _ => {}
    }
    let mut target = Connection::open(copy).map_err(&failed)?;
    let backup = Backup::new(source, &mut target).map_err(&failed)?;
    // All pages in one step: one snapshot, and a WAL reader holds nobody up.
    match backup.step(-1).map_err(&failed)? {
        StepResult::Done => Ok(()),
        _ => {
            Err(StoreError::new(ErrorKind::Busy, format!("the database was busy while {} was written", copy.display())))
        }
    }
}

fn exists(to: &Path) -> StoreError {
    StoreError::new(ErrorKind::Exists, format!("{} exists already; a backup never replaces a file", to.display()))
}

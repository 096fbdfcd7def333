//! A copy of a database that is in use.

use std::fs::{self, File};
use std::path::Path;

use rusqlite::Connection;
use rusqlite::backup::{Backup, StepResult};

use super::beside::beside;
use super::connection::make_file;
use super::error::{failed, io_failed};
use super::owner;
use super::place::{name_free, sync_folder};
use super::reader::SqliteReader;
use super::scratch::Scratch;
use crate::error::{ErrorKind, StoreError};
use crate::files::folder_of;

/// Copies the database at `from`, with what is still in its WAL, to the new file `to`: synced, and under its name only
/// when it is complete. Writers are not held up.
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
    let scratch = Scratch::make(folder, "backup").map_err(|error| {
        StoreError::new(ErrorKind::Refused, format!("cannot write to {}: {}", folder.display(), error.kind()))
    })?;
    let copy = scratch.path().join("copy.db");
    source.settled(|tables| copy_pages(tables.conn, &copy))?;
    File::open(&copy).and_then(|file| file.sync_all()).map_err(io_failed("sync", &copy))?;
    name_free(&copy, to).map_err(|error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => exists(to),
        _ => io_failed("name the backup", to)(error),
    })?;
    drop(scratch);
    sync_folder(folder)
}

/// Copies a database into a file of its own, which gets an identity of its own.
pub(super) fn copy_pages(source: &Connection, copy: &Path) -> Result<(), StoreError> {
    let failed = failed("back up the database", copy);
    match fs::remove_file(copy) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(io_failed("replace", copy)(error)),
        _ => {}
    }
    make_file(copy).map_err(io_failed("make", copy))?;
    let mut target = Connection::open(copy).map_err(&failed)?;
    let backup = Backup::new(source, &mut target).map_err(&failed)?;
    // All pages in one step: one snapshot, and a WAL reader holds nobody up.
    let done = backup.step(-1).map_err(&failed)?;
    drop(backup);
    if !matches!(done, StepResult::Done) {
        let why = format!("the database was busy while {} was written", copy.display());
        return Err(StoreError::new(ErrorKind::Busy, why));
    }
    // The copy is another database: the WAL of the original must not be taken for its own.
    target.pragma_update(None, "application_id", owner::fresh()).map_err(&failed)?;
    target.close().map_err(|(_, error)| failed(error))?;
    match beside(copy, "-wal").exists() {
        false => Ok(()),
        true => Err(StoreError::new(ErrorKind::Io, format!("{} could not be written to its end", copy.display()))),
    }
}

fn exists(to: &Path) -> StoreError {
    StoreError::new(ErrorKind::Exists, format!("{} exists already; a backup never replaces a file", to.display()))
}

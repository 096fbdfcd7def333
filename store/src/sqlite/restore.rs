//! A backup put in the place of a database.
//!
//! The new file takes the name first, and what SQLite kept beside the old one is removed after it. A kill in between
//! leaves the new database beside the WAL of the old one, which is named as such (see [`super::owner`]) and refused
//! until the restore is done again: so there is the old database, or the new one, and never something of both.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{MetadataExt, fchown};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::backup::copy_pages;
use super::beside::head_of;
use super::error::io_failed;
use super::lock;
use super::owner::Gate;
use super::place::{Place, sync_folder};
use super::reader::SqliteReader;
use super::schema::Schema;
use super::scratch::Scratch;
use crate::error::{ErrorKind, StoreError};
use crate::limits;
use crate::store::Reader;

/// Puts a copy of the database at `backup`, with what is still in its WAL, in the place of the one at `to`, or where
/// there is none. It is checked before and after it is copied.
///
/// # Errors
/// [`ErrorKind::Held`] while a task of the database is run, and [`ErrorKind::Busy`] while another program has it open;
/// [`ErrorKind::Foreign`] where something that is not a database stands there. Nothing was changed then.
pub fn restore(backup: &Path, to: &Path) -> Result<(), StoreError> {
    let (backup, to) = (Place::of(backup), Place::of(to));
    let mut source = SqliteReader::open_at(&backup)?;
    check(&mut source, &backup)?;
    let former = to.check_kind()?;
    match &former {
        Some(meta) if meta.len() > 0 && head_of(to.path(), MAGIC.len())? != MAGIC => {
            let why = format!("{to} is not a SQLite database, and is not replaced by one: move it away first");
            return Err(StoreError::new(ErrorKind::Foreign, why));
        }
        Some(_) => {}
        None => to.check_free()?,
    }
    // Whoever runs a task has its lock first, and is told at once; who opens the database otherwise is waited for. Who
    // has come in between has a lock that was not there before.
    let mut held = lock_tasks(&to, &[])?;
    let gate = Gate::exclusive(&to)?;
    held.extend(lock_tasks(&to, &held)?);
    let scratch = Scratch::make(to.folder(), "backup").map_err(io_failed("write to", to.folder()))?;
    let copy = scratch.path().join("copy.db");
    source.settled(|tables| copy_pages(tables.conn, &copy))?;
    drop(source);
    let copy = Place::of(&copy);
    let mut copied = SqliteReader::open_at(&copy)?;
    check(&mut copied, &copy)?;
    drop(copied);
    dress(copy.path(), former.as_ref()).map_err(io_failed("write", copy.path()))?;
    if former.is_some() {
        wait_for_others(&to)?;
    }
    replace(&copy, &to, &gate)
}

/// What every SQLite database begins with.
const MAGIC: &[u8] = b"SQLite format 3\0";

fn check(reader: &mut SqliteReader, place: &Place) -> Result<(), StoreError> {
    if let Some(fault) = reader.integrity()?.into_iter().next() {
        return Err(StoreError::new(ErrorKind::Corrupt, format!("{place} is damaged: {fault}")));
    }
    if reader.schema() == Schema::Empty {
        return Err(StoreError::new(ErrorKind::Foreign, format!("{place} is empty: there are no tasks to restore")));
    }
    Ok(())
}

/// The locks of all tasks that have one, but for those that are held already.
fn lock_tasks(place: &Place, held: &[(PathBuf, File)]) -> Result<Vec<(PathBuf, File)>, StoreError> {
    let folder = fs::read_dir(place.folder()).map_err(io_failed("look into", place.folder()))?;
    let start = place.beside(".");
    let mut locks = Vec::new();
    for path in folder.flatten().map(|entry| entry.path()) {
        let name = path.as_os_str().as_encoded_bytes();
        let is_lock = name.starts_with(start.as_os_str().as_encoded_bytes()) && name.ends_with(b".lock");
        if is_lock && held.iter().all(|(held, _)| *held != path) {
            let file = lock::try_lock_at(&path, place.path(), "a task of the database")?;
            locks.push((path, file));
        }
    }
    Ok(locks)
}

/// The copy gets mode and owner of what it replaces, and is made durable.
fn dress(copy: &Path, former: Option<&fs::Metadata>) -> io::Result<()> {
    let file = File::open(copy)?;
    if let Some(meta) = former {
        // The owner first: to change it takes away some of the mode.
        let _only_root_can = fchown(&file, Some(meta.uid()), Some(meta.gid()));
        file.set_permissions(meta.permissions())?;
    }
    file.sync_all()
}

/// Waits until no other program has the database open: it would go on with a file that has no name any more.
fn wait_for_others(place: &Place) -> Result<(), StoreError> {
    let file = File::open(place.path()).map_err(io_failed("open", place.path()))?;
    let start = Instant::now();
    while lock::is_sqlite_at_work(&file).map_err(io_failed("look at the locks of", place.path()))? {
        if start.elapsed() > limits::BUSY_WAIT {
            return Err(StoreError::new(ErrorKind::Busy, format!("another program has {place} open")));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

fn replace(copy: &Place, to: &Place, gate: &Gate) -> Result<(), StoreError> {
    // From here on the new file is told from the one that the WAL belongs to.
    gate.name_former(to)?;
    fs::rename(copy.path(), to.path()).map_err(io_failed("put the backup at", to.path()))?;
    sync_folder(to.folder())?;
    for path in ["-wal", "-journal", "-shm"].map(|suffix| to.beside(suffix)) {
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(io_failed("remove", &path)(error)),
            _ => {}
        }
    }
    sync_folder(to.folder())?;
    gate.name_alone(to)
}

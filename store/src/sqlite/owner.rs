//! Whose WAL it is.
//!
//! Nothing in a WAL says which database it belongs to. Put another database in the place of one whose WAL is still
//! there (the ordinary way to restore one), and SQLite applies the one to the other: it undoes what was done, or
//! damages it. So a database has an identity, a random number in its header (SQLite's application id), and a small file
//! beside it names the identity of the database that the WAL is of. A WAL with frames is read and written only beside a
//! database that is named.
//!
//! The identity is renewed whenever the database is opened for writing, so that also an older copy of the same database
//! is known. What holds at every moment, whatever a kill or a power cut interrupts: while there are frames in the WAL,
//! the identity in the file's header is among those that are named. The new one is named first, beside those that may
//! still come; then it is written, and moved into the file; then it is named alone. A file that names nothing, or is
//! torn, claims nothing, and neither do databases and WALs that other programs made.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, fchown};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, TransactionBehavior};
use sha2::{Digest, Sha256};

use super::beside::{ID, has_frames, has_rollback};
use super::error::{failed, io_failed};
use super::place::{Place, sync_folder};
use super::uri::{ATTEMPTS, connect};
use crate::error::{ErrorKind, StoreError};
use crate::limits;

/// What a header says of itself. 0 is what every database has that nobody gave one.
type Identity = i32;

/// Those that the header of the WAL's database may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Named([Identity; 3]);

/// An identity that no other database has.
pub(super) fn fresh() -> Identity {
    rand::random::<Identity>() | 1
}

/// Refuses a WAL or rollback journal that is not of the database that it lies beside.
pub(super) fn check(place: &Place) -> Result<(), StoreError> {
    let wal = place.beside("-wal");
    let in_force = || -> Result<Option<PathBuf>, StoreError> {
        let journal = has_rollback(place.path())?.then(|| place.beside("-journal"));
        Ok(journal.or(has_frames(&wal)?.then(|| wal.clone())))
    };
    for _ in 0..ATTEMPTS {
        let named = Named::read(place);
        let Some(file) = in_force()? else { return Ok(()) };
        match (named, identity(place.path())) {
            (Some(named), Some(identity)) if !named.0.contains(&identity) => {
                // A database at work is opened and closed between these looks; what stays is not its work.
                if Named::read(place) == Some(named) && in_force()?.as_ref() == Some(&file) {
                    return Err(foreign(place, &file));
                }
            }
            _ => return Ok(()),
        }
    }
    Err(StoreError::new(ErrorKind::Busy, format!("{place} is opened and closed without a pause by other processes")))
}

fn foreign(place: &Place, file: &Path) -> StoreError {
    let (file, id) = (file.display(), place.beside(ID));
    let why = format!(
        "{file} is not of the database {place}, which was put there later, and would undo or damage it; nothing was changed: \
         move {file} away if the database is the one that you want (`agent restore` does both), or put the former \
         database back; if the file is the database's own, left by `sqlite3` for example, remove {}",
        id.display()
    );
    StoreError::new(ErrorKind::Foreign, why)
}

/// What the header in the file says, whatever is in the WAL; `None` where there is no header. It is read through
/// SQLite: if this process closed the file, it would lose the locks that other connections of its own have on it.
fn identity(path: &Path) -> Option<Identity> {
    let read = || {
        let conn = connect(path, "mode=ro&immutable=1")?;
        // A checkpoint that was cut off may leave a header that counts pages which are not there yet.
        conn.set_db_config(DbConfig::SQLITE_DBCONFIG_RESET_DATABASE, true)?;
        application_id(&conn)
    };
    read().ok()
}

fn application_id(conn: &Connection) -> rusqlite::Result<Identity> {
    conn.query_row("PRAGMA application_id", [], |row| row.get(0))
}

impl Named {
    fn read(place: &Place) -> Option<Self> {
        let text = fs::read(place.beside(ID)).ok()?;
        let mut named = [0; 3];
        for (at, named) in named.iter_mut().enumerate() {
            let digits = std::str::from_utf8(text.get(at * 9..at * 9 + 8)?).ok()?;
            *named = u32::from_str_radix(digits, 16).ok()?.cast_signed();
        }
        (Self(named).text() == text).then_some(Self(named))
    }

    /// Always of one length, so that it can be written over, and with a sum that tells a torn one.
    fn text(self) -> Vec<u8> {
        let [a, b, c] = self.0;
        let text = format!("{a:08x} {b:08x} {c:08x}");
        let sum = Sha256::digest(&text);
        format!("{text} {:02x}{:02x}{:02x}{:02x}\n", sum[0], sum[1], sum[2], sum[3]).into_bytes()
    }
}

/// The file that names, open for writing. Whoever writes to the database shares a lock on it, which keeps a restore
/// away.
pub(super) struct Gate {
    file: File,
    path: PathBuf,
}

impl Gate {
    /// Opens the file, or makes it as those that SQLite makes: with the mode and the owner of the database.
    pub(super) fn open(place: &Place) -> Result<Self, StoreError> {
        let path = place.beside(ID);
        let file = match OpenOptions::new().write(true).open(&path) {
            // Another user's file can be replaced by who may write in the folder, and has to be: nothing in it is
            // secret.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                fs::remove_file(&path).and_then(|()| make(&path, place))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => make(&path, place),
            file => file,
        };
        Ok(Self { file: file.map_err(io_failed("open", &path))?, path })
    }

    /// Keeps a restore away for as long as this lives, and waits for one that is under way. Where a database is to be
    /// made, and what lay there before left names, 0 is named instead, which is what a new header says.
    pub(super) fn shared(place: &Place, to_be_made: bool) -> Result<Self, StoreError> {
        let gate = Self::open(place)?;
        let stale = || Named::read(place).is_some_and(|named| !named.0.contains(&0));
        let is_new = || !fs::metadata(place.path()).is_ok_and(|meta| meta.len() > 0);
        // Nobody else is there while the lock is exclusive, so that nobody else's names are lost.
        if to_be_made && stale() && is_new() && gate.file.try_lock().is_ok() && is_new() {
            gate.name(place, Named([0; 3]))?;
        }
        gate.wait_for(place, File::try_lock_shared)
    }

    /// Keeps everybody away who would write, once nobody does.
    pub(super) fn exclusive(place: &Place) -> Result<Self, StoreError> {
        Self::open(place)?.wait_for(place, File::try_lock)
    }

    fn wait_for(self, place: &Place, lock: fn(&File) -> Result<(), TryLockError>) -> Result<Self, StoreError> {
        let start = Instant::now();
        loop {
            match lock(&self.file) {
                Ok(()) => return Ok(self),
                Err(TryLockError::WouldBlock) if start.elapsed() < limits::BUSY_WAIT => {
                    std::thread::sleep(Duration::from_millis(5));
                }
                Err(TryLockError::WouldBlock) => {
                    let why = format!("another process has been writing to {place}, or restoring it, for too long");
                    return Err(StoreError::new(ErrorKind::Busy, why));
                }
                Err(TryLockError::Error(error)) => return Err(io_failed("lock", &self.path)(error)),
            }
        }
    }

    /// Names these, durably.
    fn name(&self, place: &Place, named: Named) -> Result<(), StoreError> {
        if Named::read(place) == Some(named) {
            return Ok(());
        }
        let text = named.text();
        let failed = io_failed("write", &self.path);
        let length = text.len() as u64;
        // One that has that length already has been written before: only its content is to be made durable.
        let is_new = self.file.metadata().map_err(&failed)?.len() != length;
        if is_new {
            self.file.set_len(length).map_err(&failed)?;
        }
        self.file.write_all_at(&text, 0).map_err(&failed)?;
        if !is_new {
            return self.file.sync_data().map_err(&failed);
        }
        self.file.sync_all().map_err(&failed)?;
        sync_folder(place.folder())
    }

    /// Names the database that is there, where nothing is named: its WAL is not to be taken for that of another.
    pub(super) fn name_former(&self, place: &Place) -> Result<(), StoreError> {
        match Named::read(place) {
            Some(_) => Ok(()),
            None => self.name(place, Named([identity(place.path()).unwrap_or_default(); 3])),
        }
    }

    /// Names the database that is there, and no other: it has no WAL.
    pub(super) fn name_alone(&self, place: &Place) -> Result<(), StoreError> {
        self.name(place, Named([identity(place.path()).unwrap_or_default(); 3]))
    }

    /// Gives the database a new identity, where no WAL goes with the one that it has. Nothing may have been written on
    /// the connection.
    pub(super) fn renew(&self, conn: &mut Connection, place: &Place) -> Result<(), StoreError> {
        let failed = failed("renew the identity", place.path());
        // Within a transaction, since only its holder may change the names.
        let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate).map_err(&failed)?;
        let current = application_id(&tx).map_err(&failed)?;
        let filed = identity(place.path()).unwrap_or(current);
        if has_frames(&place.beside("-wal"))? {
            let named = Named::read(place).is_some_and(|named| [filed, current].iter().all(|id| named.0.contains(id)));
            return if named { Ok(()) } else { self.name(place, Named([filed, current, current])) };
        }
        let fresh = fresh();
        self.name(place, Named([filed, current, fresh]))?;
        tx.pragma_update(None, "application_id", fresh).map_err(&failed)?;
        tx.commit().map_err(&failed)?;
        // What is not moved yet because others are reading is moved later: then all three stay named.
        if !move_wal(conn).map_err(&failed)? {
            return Ok(());
        }
        let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate).map_err(&failed)?;
        let current = application_id(&tx).map_err(&failed)?;
        if current == fresh && identity(place.path()) == Some(fresh) {
            self.name(place, Named([fresh; 3]))?;
        }
        Ok(())
    }
}

/// Moves the WAL into the database and syncs it; false where not all of it could be moved.
pub(super) fn move_wal(conn: &Connection) -> rusqlite::Result<bool> {
    conn.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |row| {
        let (busy, frames, moved): (i64, i64, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
        Ok(busy == 0 && frames >= 0 && frames == moved)
    })
}

fn make(path: &Path, place: &Place) -> io::Result<File> {
    let file = OpenOptions::new().write(true).create(true).truncate(false).open(path)?;
    if let Ok(database) = fs::metadata(place.path()) {
        let _others_permissions = file.set_permissions(database.permissions());
        let _only_root_can = fchown(&file, Some(database.uid()), Some(database.gid()));
    }
    Ok(file)
}

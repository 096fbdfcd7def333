//! A connection that may write.

use std::fs::OpenOptions;
use std::io;
use std::path::Path;

use rusqlite::{Connection, OpenFlags};
use rustix::fs::{AtFlags, CWD, accessat};
use rustix::io::Errno;

use super::configure::configure;
use super::error::{failed, io_failed};
use super::opened::{Files, Opened};
use super::owner::{self, Gate, move_wal};
use super::place::Place;
use super::reader::SqliteReader;
use super::schema::{Schema, VERSION, migrate};
use crate::error::{ErrorKind, StoreError};
use crate::limits;

/// What a store has open. Nothing is opened for writing before it has to be, which for a run is after it has taken the
/// lock: even the mode of the journal is not changed under the hands of an agent that is at work.
pub(super) enum Access {
    Closed,
    Reading(Box<SqliteReader>),
    Writing(Connected),
}

/// A connection that may write, with what is known of its files.
pub(super) struct Connected {
    pub(super) conn: Connection,
    pub(super) opened: Opened,
    pub(super) schema: Schema,
    _gate: Gate,
}

impl Connected {
    /// Opens the database for writing; `create` makes one where there is none.
    pub(super) fn open(place: &Place, create: bool) -> Result<Self, StoreError> {
        let path = place.path();
        let unwritable = || {
            let why = format!("{} may not be written: check its permissions", path.display());
            StoreError::new(ErrorKind::Refused, why)
        };
        if let Err(Errno::ACCESS | Errno::ROFS) = accessat(CWD, path, rustix::fs::Access::WRITE_OK, AtFlags::EACCESS) {
            return Err(unwritable());
        }
        let gate = Gate::shared(place, create)?;
        if create {
            make_file(path).map_err(io_failed("open the database", path))?;
        }
        owner::check(place)?;
        let failed = failed("open the database", path);
        let mut conn = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE).map_err(&failed)?;
        conn.busy_timeout(limits::BUSY_WAIT).map_err(&failed)?;
        // SQLite opens for reading what it may not write, and would then make a WAL that nobody may write either.
        if conn.is_readonly("main").map_err(&failed)? {
            return Err(unwritable());
        }
        configure(&conn, path)?;
        let schema = Schema::of(&conn, path)?;
        match gate.renew(&mut conn, place).and_then(|()| Opened::of(path)) {
            Ok(opened) => Ok(Self { conn, opened, schema, _gate: gate }),
            Err(error) => {
                if error.kind() == ErrorKind::Io {
                    // What the disk holds is not known, and to close the connection would build on it.
                    std::mem::forget(conn);
                }
                Err(error)
            }
        }
    }

    /// Where the files are no longer those that were opened: what to add to the message of it. Nothing is deleted; a
    /// WAL that has no name any more still has the commits, and where they belong they can be brought.
    pub(super) fn rescue(&self, path: &Path) -> Option<String> {
        match self.opened.files(path) {
            Files::Same => None,
            Files::DatabaseGone | Files::WalReplaced | Files::WalCut => Some(String::new()),
            Files::WalRemoved => Some(match move_wal(&self.conn) {
                Ok(true) => format!("; what it had committed has been brought into {}", path.display()),
                _ => "; what it had committed last is lost with it".to_owned(),
            }),
        }
    }

    /// Brings the tables up to date.
    pub(super) fn migrate(&mut self, place: &Place) -> Result<(), StoreError> {
        if self.schema != Schema::Version(VERSION) {
            self.schema = migrate(&mut self.conn, place.path())?;
        }
        Ok(())
    }
}

/// Makes an empty file where there is none. SQLite would give it a mode of its own, not that of all new files.
pub(super) fn make_file(path: &Path) -> io::Result<()> {
    match OpenOptions::new().write(true).create_new(true).open(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

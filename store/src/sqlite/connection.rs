//! A connection that may write.

use std::fs::OpenOptions;
use std::io;
use std::path::Path;

use rusqlite::{Connection, OpenFlags};

use super::configure::configure;
use super::error::{failed, io_failed};
use super::identity::Identity;
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

/// A connection that may write, with what is known of its file.
pub(super) struct Connected {
    pub(super) conn: Connection,
    pub(super) identity: Identity,
    pub(super) schema: Schema,
}

impl Connected {
    /// Opens the database for writing; `create` makes one where there is none.
    pub(super) fn open(place: &Place, create: bool) -> Result<Self, StoreError> {
        let path = place.path();
        let failed = failed("open the database", path);
        if create {
            make_file(path).map_err(io_failed("open the database", path))?;
        }
        let conn = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE).map_err(&failed)?;
        conn.busy_timeout(limits::BUSY_WAIT).map_err(&failed)?;
        // SQLite opens for reading what it may not write, and would then make a WAL that nobody may write either.
        if conn.is_readonly("main").map_err(&failed)? {
            let why = format!("{} may not be written: check its permissions", path.display());
            return Err(StoreError::new(ErrorKind::Refused, why));
        }
        configure(&conn, path)?;
        let identity = Identity::of(path)?;
        let schema = Schema::of(&conn, path)?;
        Ok(Self { conn, identity, schema })
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

//! Reading without a trace.
//!
//! A read-only connection to a WAL database would still create `-wal` and `-shm` files beside it, or rebuild a `-shm`
//! that a killed process left. So the reader looks at what is there and opens the file in the one way that changes
//! nothing:
//!
//! * no WAL, or one without a frame: the database file is all there is, and it is read as immutable. Should somebody
//!   write meanwhile, the answer is thrown away and asked for again, from the files as they are then;
//! * WAL and `-shm`: `readonly_shm`, with which SQLite follows a live writer, or, where there is none, builds the index
//!   of the WAL in its own memory;
//! * a WAL alone (a copy that somebody made): SQLite builds the index of the WAL in its own memory, as for a connection
//!   that has the file to itself, but takes no locks for it and folds nothing in when it closes. Again it counts only
//!   for as long as nobody opens the files;
//! * a rollback journal in force (a database whose making was cut off before it had a WAL): the files are copied to a
//!   temporary folder and mended and read there, likewise.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use rusqlite::config::DbConfig;

use super::Source;
use super::beside::{beside, has_frames, has_rollback};
use super::error::{failed, io_failed};
use super::owner;
use super::place::Place;
use super::schema::{Schema, VERSION};
use super::scratch::Scratch;
use super::tables::Tables;
use super::uri::{ATTEMPTS, connect};
use crate::error::{ErrorKind, StoreError};

/// Opens a database for reading; see the module for how. It never waits for a writer, since WAL readers need not.
pub struct SqliteReader {
    place: Place,
    conn: Connection,
    schema: Schema,
    view: View,
}

/// How the file is being read.
enum View {
    /// With SQLite's own locking, beside possible writers.
    Live,
    /// As files that nobody changes, for as long as the stamp stays the same; with the private copy, if one was made.
    Still { stamp: Stamp, _copy: Option<Scratch> },
}

/// Changes when somebody opens the database for writing.
#[derive(PartialEq, Eq)]
struct Stamp {
    database: FileStamp,
    wal: Option<FileStamp>,
    journal: Option<FileStamp>,
    shm: bool,
}

/// Which file it is, how long, and when it was changed last.
#[derive(PartialEq, Eq)]
struct FileStamp {
    file: (u64, u64, u64),
    modified: (i64, i64),
}

impl SqliteReader {
    /// Opens `path`.
    ///
    /// # Errors
    /// [`ErrorKind::Missing`], [`ErrorKind::Unreadable`], [`ErrorKind::Foreign`], [`ErrorKind::Newer`],
    /// [`ErrorKind::Corrupt`] as they say.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        Self::open_at(&Place::of(path))
    }

    pub(super) fn open_at(place: &Place) -> Result<Self, StoreError> {
        Self::open_settled(place).map_err(|error| match error.kind() {
            ErrorKind::Refused => {
                let why = format!("cannot read {place}: check the permissions of the file and its folder");
                StoreError::new(ErrorKind::Unreadable, why)
            }
            _ => error,
        })
    }

    fn open_settled(place: &Place) -> Result<Self, StoreError> {
        let mut last = None;
        for _ in 0..ATTEMPTS {
            match Self::open_once(place) {
                Ok(Some(reader)) => return Ok(reader),
                Ok(None) => {}
                // The files may have come or gone between the look at them and the opening.
                Err(error) if error.kind() == ErrorKind::Refused && place.path().exists() => last = Some(error),
                Err(error) => return Err(error),
            }
        }
        Err(last.unwrap_or_else(|| unsettled(place)))
    }

    /// `None` where the files changed while they were being opened, so that nothing is to be made of what was seen.
    fn open_once(place: &Place) -> Result<Option<Self>, StoreError> {
        place.check_file()?;
        let path = place.path();
        let stamp = Stamp::of(path)?;
        owner::check(place)?;
        let has_index = stamp.shm;
        let still = |copy| View::Still { stamp, _copy: copy };
        let (view, conn) = if has_rollback(path)? {
            let (scratch, copy) = copied(path)?;
            (still(Some(scratch)), connect(&copy, "mode=rw"))
        } else if !has_frames(&beside(path, "-wal"))? {
            (still(None), connect(path, "mode=ro&immutable=1"))
        } else if has_index {
            (View::Live, connect(path, "mode=ro&readonly_shm=1"))
        } else {
            (still(None), connect(path, "mode=ro&vfs=unix-none").and_then(index_in_memory))
        };
        let conn = conn.map_err(failed("open the database", path))?;
        let schema = Schema::of(&conn, path);
        if view.is_over(path)? {
            return Ok(None);
        }
        Ok(Some(Self { place: place.clone(), conn, schema: schema?, view }))
    }

    /// Refuses a small database with a damaged page: better found before a connection that may write than by it.
    #[expect(clippy::redundant_closure_for_method_calls, reason = "a path is not general enough over the lifetime")]
    pub(super) fn check_small(&mut self) -> Result<(), StoreError> {
        self.settled(|tables| tables.check_small())
    }

    /// True where the database has no tables yet.
    pub(super) fn schema(&self) -> Schema {
        self.schema
    }

    /// Runs `query` on the connection; again, on a new connection, where the file changed underneath it.
    pub(super) fn settled<T>(
        &mut self,
        mut query: impl FnMut(&Tables<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut last = None;
        for _ in 0..ATTEMPTS {
            let answer = self.ask(&mut query);
            match answer {
                // The last writer has taken the index along, and who only reads may not make it anew.
                Err(error) if error.kind() == ErrorKind::Refused && matches!(self.view, View::Live) => {
                    last = Some(error);
                }
                answer if !self.view.is_over(self.place.path())? => return answer,
                _ => {}
            }
            *self = Self::open_at(&self.place)?;
        }
        Err(last.unwrap_or_else(|| unsettled(&self.place)))
    }

    fn ask<T>(&mut self, query: &mut impl FnMut(&Tables<'_>) -> Result<T, StoreError>) -> Result<T, StoreError> {
        if matches!(self.view, View::Live) && self.schema != Schema::Version(VERSION) {
            // A writer may have made or migrated the tables since.
            self.schema = Schema::of(&self.conn, self.place.path())?;
        }
        query(&Tables { conn: &self.conn, path: self.place.path(), schema: self.schema })
    }
}

impl Source for SqliteReader {
    fn read<T>(&mut self, query: impl FnMut(&Tables<'_>) -> Result<T, StoreError>) -> Result<T, StoreError> {
        self.settled(query)
    }
}

impl View {
    /// True where the files are no longer as they were when they were opened, and nothing follows the change.
    fn is_over(&self, path: &Path) -> Result<bool, StoreError> {
        match self {
            Self::Live => Ok(false),
            Self::Still { stamp, .. } => Ok(*stamp != Stamp::of(path)?),
        }
    }
}

impl Stamp {
    fn of(path: &Path) -> Result<Self, StoreError> {
        let database = fs::metadata(path).map(|meta| FileStamp::of(&meta)).map_err(io_failed("look at", path))?;
        let of = |suffix| fs::metadata(beside(path, suffix)).ok().map(|meta| FileStamp::of(&meta));
        let (wal, journal) = (of("-wal"), of("-journal"));
        Ok(Self { database, wal, journal, shm: beside(path, "-shm").exists() })
    }
}

impl FileStamp {
    fn of(meta: &fs::Metadata) -> Self {
        Self { file: (meta.dev(), meta.ino(), meta.len()), modified: (meta.mtime(), meta.mtime_nsec()) }
    }
}

/// Has the index of the WAL built in memory, and nothing moved from the WAL into the database.
fn index_in_memory(conn: Connection) -> rusqlite::Result<Connection> {
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    conn.query_row("PRAGMA locking_mode = EXCLUSIVE", [], |_| Ok(()))?;
    Ok(conn)
}

/// A private copy of the database and what belongs to it.
fn copied(path: &Path) -> Result<(Scratch, PathBuf), StoreError> {
    let folder =
        Scratch::make(&std::env::temp_dir(), "agent-read").map_err(io_failed("make a folder for a copy of", path))?;
    let copy = folder.path().join("copy.db");
    for suffix in ["", "-wal", "-journal"] {
        let from = beside(path, suffix);
        match fs::copy(&from, beside(&copy, suffix)) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && !suffix.is_empty() => {}
            result => _ = result.map_err(io_failed("copy", &from))?,
        }
    }
    Ok((folder, copy))
}

fn unsettled(place: &Place) -> StoreError {
    StoreError::new(ErrorKind::Busy, format!("{place} is opened and closed without a pause by other processes"))
}

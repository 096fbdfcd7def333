//! Reading without a trace.
//!
//! A read-only connection to a WAL database would still create `-wal` and `-shm` files beside it, or rebuild a
//! `-shm` that a killed process left. So the reader looks at what is there and opens the file in the one way that
//! changes nothing:
//!
//! * no WAL, or one without a frame: the database file is all there is, and it is read as immutable. Should somebody
//!   write meanwhile, the answer is thrown away and asked for again, from the files as they are then;
//! * WAL and `-shm`: `readonly_shm`, with which SQLite follows a live writer, or, where there is none, builds the
//!   index of the WAL in its own memory;
//! * a WAL alone (a copy that somebody made), or a rollback journal (a database whose making was cut off, before it had
//!   a WAL): the files are copied to a temporary folder and mended and read there, again for as long as nobody opens the
//!   originals.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::Read as _;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags};
use tempfile::TempDir;

use super::Source;
use super::error::{failed, io_failed};
use super::schema::{Schema, VERSION};
use super::tables::Tables;
use crate::error::{ErrorKind, StoreError};
use crate::limits;

/// Opens a database for reading; see the module for how. It never waits for a writer, since WAL readers need not.
pub struct SqliteReader {
    path: PathBuf,
    conn: Connection,
    schema: Schema,
    view: View,
}

/// How the file is being read.
enum View {
    /// With SQLite's own locking, beside possible writers.
    Live,
    /// As files that nobody changes, for as long as the stamp stays the same; with the private copy, if one was made.
    Still { stamp: Stamp, _copy: Option<TempDir> },
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

/// A database that is opened and closed again and again could in theory outrun its reader for ever.
const ATTEMPTS: u32 = 100;

impl SqliteReader {
    /// Opens `path`.
    ///
    /// # Errors
    /// [`ErrorKind::Missing`], [`ErrorKind::Unreadable`], [`ErrorKind::Foreign`], [`ErrorKind::Newer`], [`ErrorKind::Corrupt`] as they say.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        Self::open_settled(path).map_err(|error| match error.kind() {
            ErrorKind::Refused => {
                let why = format!("cannot read {}: check the permissions of the file and its folder", path.display());
                StoreError::new(ErrorKind::Unreadable, why)
            }
            _ => error,
        })
    }

    fn open_settled(path: &Path) -> Result<Self, StoreError> {
        let path = anchored(path);
        let mut last = None;
        for _ in 0..ATTEMPTS {
            match Self::open_once(&path) {
                Ok(Some(reader)) => return Ok(reader),
                Ok(None) => {}
                // The files may have come or gone between the look at them and the opening.
                Err(error) if error.kind() == ErrorKind::Refused && path.exists() => last = Some(error),
                Err(error) => return Err(error),
            }
        }
        Err(last.unwrap_or_else(|| unsettled(&path)))
    }

    /// `None` where the files changed while they were being opened, so that nothing is to be made of what was seen.
    fn open_once(path: &Path) -> Result<Option<Self>, StoreError> {
        check_is_file(path)?;
        let stamp = Stamp::of(path)?;
        let (view, uri, flags) = if has_rollback(path)? {
            Self::from_copy(path, stamp)?
        } else if !has_frames(&beside(path, "-wal"))? {
            let view = View::Still { stamp, _copy: None };
            (view, uri(path, "mode=ro&immutable=1"), OpenFlags::SQLITE_OPEN_READ_ONLY)
        } else if stamp.shm {
            (View::Live, uri(path, "mode=ro&readonly_shm=1"), OpenFlags::SQLITE_OPEN_READ_ONLY)
        } else {
            Self::from_copy(path, stamp)?
        };
        let failed = failed("open the database", path);
        let conn = Connection::open_with_flags(uri, flags | OpenFlags::SQLITE_OPEN_URI).map_err(&failed)?;
        conn.busy_timeout(limits::BUSY_WAIT).map_err(&failed)?;
        let schema = Schema::of(&conn, path);
        if view.is_over(path)? {
            return Ok(None);
        }
        Ok(Some(Self { path: path.to_owned(), conn, schema: schema?, view }))
    }

    fn from_copy(path: &Path, stamp: Stamp) -> Result<(View, PathBuf, OpenFlags), StoreError> {
        let (folder, copy) = copied(path)?;
        let view = View::Still { stamp, _copy: Some(folder) };
        Ok((view, uri(&copy, "mode=rw"), OpenFlags::SQLITE_OPEN_READ_WRITE))
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
        for _ in 0..ATTEMPTS {
            if matches!(self.view, View::Live) && self.schema != Schema::Version(VERSION) {
                // A writer may have made or migrated the tables since.
                self.schema = Schema::of(&self.conn, &self.path)?;
            }
            let answer = query(&Tables { conn: &self.conn, path: &self.path, schema: self.schema });
            if !self.view.is_over(&self.path)? {
                return answer;
            }
            *self = Self::open(&self.path)?;
        }
        Err(unsettled(&self.path))
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

/// Whether a WAL holds anything. A process that was killed early leaves its header alone, or less; opened read-only
/// beside an index, such a WAL makes SQLite retry for ten seconds and then give up with "locking protocol".
fn has_frames(wal: &Path) -> Result<bool, StoreError> {
    /// Length of the header, and the two magic numbers that it begins with, by the byte order of the checksums; see
    /// "WAL File Format" in SQLite's documentation.
    const HEADER: usize = 32;
    const MAGIC: [[u8; 4]; 2] = [0x377f_0682_u32.to_be_bytes(), 0x377f_0683_u32.to_be_bytes()];
    let head = head_of(wal, HEADER + 1)?;
    Ok(head.len() > HEADER && MAGIC.iter().any(|magic| head.starts_with(magic)))
}

/// Whether SQLite would first roll a transaction back. A database is made with a rollback journal and changed to WAL,
/// so a cut in those moments leaves one, with a file beside it that may be anything, even zeros for a header.
fn has_rollback(path: &Path) -> Result<bool, StoreError> {
    /// What a journal begins with while it is in force; see "Rollback Journal Format" in SQLite's documentation.
    const MAGIC: u64 = 0xd9d5_05f9_20a1_63d7;
    Ok(head_of(&beside(path, "-journal"), size_of::<u64>())? == MAGIC.to_be_bytes())
}

/// The first bytes of a file, fewer where it is shorter, none where it is missing.
fn head_of(path: &Path, length: usize) -> Result<Vec<u8>, StoreError> {
    let failed = io_failed("read", path);
    let file = match fs::File::open(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        file => file.map_err(&failed)?,
    };
    let mut head = Vec::with_capacity(length);
    file.take(length as u64).read_to_end(&mut head).map_err(&failed)?;
    Ok(head)
}

/// A private copy of the database and what belongs to it.
fn copied(path: &Path) -> Result<(TempDir, PathBuf), StoreError> {
    let folder = tempfile::tempdir().map_err(io_failed("make a folder for a copy of", path))?;
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

/// Length of the header that every SQLite database begins with.
const HEADER_BYTES: u64 = 100;

/// Refuses what is no plain file before SQLite sees it: its own message would only say "unable to open".
pub(super) fn check_is_file(path: &Path) -> Result<(), StoreError> {
    match fs::metadata(path) {
        // SQLite takes a file of one byte for an empty one, and would write over it.
        Ok(meta) if meta.is_file() && (1..HEADER_BYTES).contains(&meta.len()) && !has_rollback(path)? => {
            Err(StoreError::new(ErrorKind::Foreign, format!("{} is no SQLite database", path.display())))
        }
        Ok(meta) if meta.is_file() => Ok(()),
        Ok(_) => Err(StoreError::new(ErrorKind::Foreign, format!("{} is no file", path.display()))),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Err(StoreError::new(ErrorKind::Missing, format!("there is no database at {}", path.display())))
        }
        Err(error) => Err(io_failed("open the database", path)(error)),
    }
}

/// A relative path gets its `./`, so that no spelling (`:memory:`, a leading `file:`) means anything but a file.
pub(super) fn anchored(path: &Path) -> PathBuf {
    let plain = path.components().next().is_some_and(|first| matches!(first, std::path::Component::Normal(_)));
    if plain && (path.as_os_str().as_bytes().starts_with(b":") || path.as_os_str().as_bytes().contains(&b':')) {
        Path::new(".").join(path)
    } else {
        path.to_owned()
    }
}

/// `<path><suffix>`.
pub(super) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    PathBuf::from(name)
}

fn uri(path: &Path, query: &str) -> PathBuf {
    let mut uri = b"file:".to_vec();
    for &byte in path.as_os_str().as_bytes() {
        if byte.is_ascii_alphanumeric() || b"/._-".contains(&byte) {
            uri.push(byte);
        } else {
            uri.extend_from_slice(format!("%{byte:02X}").as_bytes());
        }
    }
    uri.push(b'?');
    uri.extend_from_slice(OsStr::new(query).as_bytes());
    PathBuf::from(OsString::from_vec(uri))
}

fn unsettled(path: &Path) -> StoreError {
    StoreError::new(
        ErrorKind::Busy,
        format!("{} is opened and closed without a pause by other processes", path.display()),
    )
}

//! Reading without a trace.
//!
//! A read-only connection to a WAL database would still create `-wal` and `-shm` files beside it, or rebuild a
//! `-shm` that a killed process left. So the reader looks at what is there and opens the file in the one way that
//! changes nothing:
//!
//! * no WAL: nobody has the database open, and it is read as immutable. Should somebody open it meanwhile, the
//!   answer is thrown away and asked for again;
//! * WAL and `-shm`: `readonly_shm`, with which SQLite follows a live writer, or, where there is none, builds the
//!   index of the WAL in its own memory;
//! * a WAL alone (a copy that somebody made): both files are copied to a temporary folder and read there.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags};
use tempfile::TempDir;

use super::Source;
use super::error::{failed, io_failed};
use super::schema::Schema;
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
    /// As a file that nobody changes, for as long as the stamp stays the same.
    Immutable(Stamp),
    /// A private copy.
    Copied { _folder: TempDir },
}

/// Changes when somebody opens the database for writing.
#[derive(PartialEq, Eq)]
struct Stamp {
    file: (u64, u64, u64),
    modified: (i64, i64),
    wal: bool,
}

/// A database that is opened and closed again and again could in theory outrun its reader for ever.
const ATTEMPTS: u32 = 100;

impl SqliteReader {
    /// Opens `path`.
    ///
    /// # Errors
    /// [`ErrorKind::Missing`], [`ErrorKind::Foreign`], [`ErrorKind::Newer`], [`ErrorKind::Corrupt`] as they say.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let path = anchored(path);
        let mut last = None;
        for _ in 0..ATTEMPTS {
            match Self::open_once(&path) {
                // The files may have come or gone between the look at them and the opening.
                Err(error) if error.kind() == ErrorKind::Refused && path.exists() => last = Some(error),
                other => return other,
            }
        }
        Err(last.unwrap_or_else(|| unsettled(&path)))
    }

    fn open_once(path: &Path) -> Result<Self, StoreError> {
        check_is_file(path)?;
        let stamp = Stamp::of(path)?;
        let (wal, shm) = (beside(path, "-wal"), beside(path, "-shm"));
        let (view, uri) = if !stamp.wal {
            (View::Immutable(stamp), uri(path, "mode=ro&immutable=1"))
        } else if shm.exists() {
            (View::Live, uri(path, "mode=ro&readonly_shm=1"))
        } else {
            let folder = tempfile::tempdir().map_err(io_failed("make a folder for a copy of", path))?;
            let copy = folder.path().join("copy.db");
            fs::copy(path, &copy).map_err(io_failed("copy", path))?;
            fs::copy(&wal, beside(&copy, "-wal")).map_err(io_failed("copy", &wal))?;
            (View::Copied { _folder: folder }, uri(&copy, "mode=rw"))
        };
        let failed = failed("open the database", path);
        let flags = match view {
            View::Copied { .. } => OpenFlags::SQLITE_OPEN_READ_WRITE,
            _ => OpenFlags::SQLITE_OPEN_READ_ONLY,
        };
        let conn = Connection::open_with_flags(uri, flags | OpenFlags::SQLITE_OPEN_URI).map_err(&failed)?;
        conn.busy_timeout(limits::BUSY_WAIT).map_err(&failed)?;
        let schema = Schema::of(&conn, path)?;
        Ok(Self { path: path.to_owned(), conn, schema, view })
    }

    /// True where the database has no tables yet.
    pub(super) fn schema(&self) -> Schema {
        self.schema
    }

    /// Runs `query` on the connection; again, on a new connection, where the file changed underneath it.
    pub(super) fn settled<T>(&mut self, query: impl Fn(&Tables<'_>) -> Result<T, StoreError>) -> Result<T, StoreError> {
        for _ in 0..ATTEMPTS {
            let answer = query(&Tables { conn: &self.conn, path: &self.path, schema: self.schema });
            match &self.view {
                View::Immutable(stamp) if *stamp != Stamp::of(&self.path)? => {
                    let path = std::mem::take(&mut self.path);
                    *self = Self::open(&path)?;
                }
                _ => return answer,
            }
        }
        Err(unsettled(&self.path))
    }
}

impl Source for SqliteReader {
    fn read<T>(&mut self, query: impl Fn(&Tables<'_>) -> Result<T, StoreError>) -> Result<T, StoreError> {
        self.settled(query)
    }
}

impl Stamp {
    fn of(path: &Path) -> Result<Self, StoreError> {
        let meta = fs::metadata(path).map_err(io_failed("look at", path))?;
        Ok(Self {
            file: (meta.dev(), meta.ino(), meta.len()),
            modified: (meta.mtime(), meta.mtime_nsec()),
            wal: beside(path, "-wal").exists(),
        })
    }
}

/// Refuses what is no plain file before SQLite sees it: its own message would only say "unable to open".
pub(super) fn check_is_file(path: &Path) -> Result<(), StoreError> {
    match fs::metadata(path) {
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

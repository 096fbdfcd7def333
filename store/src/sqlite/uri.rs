//! A connection to a file by its address, which can say more than a path.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags};

use crate::limits;

/// A database that is opened and closed again and again could in theory outrun its reader for ever.
pub(super) const ATTEMPTS: u32 = 100;

pub(super) fn connect(path: &Path, query: &str) -> rusqlite::Result<Connection> {
    let writable =
        if query == "mode=rw" { OpenFlags::SQLITE_OPEN_READ_WRITE } else { OpenFlags::SQLITE_OPEN_READ_ONLY };
    let conn = Connection::open_with_flags(uri(path, query), writable | OpenFlags::SQLITE_OPEN_URI)?;
    conn.busy_timeout(limits::BUSY_WAIT)?;
    Ok(conn)
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

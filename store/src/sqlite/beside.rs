//! What lies beside a database, and what its first bytes tell of it.

use std::ffi::OsString;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use super::error::io_failed;
use crate::error::StoreError;

/// What is appended to the name of a database for the file that says whose WAL lies beside it.
pub(super) const ID: &str = "-id";

/// `<path><suffix>`.
pub(super) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    PathBuf::from(name)
}

/// Whether a WAL holds anything. A process that was killed early leaves its header alone, or less; opened read-only
/// beside an index, such a WAL makes SQLite retry for ten seconds and then give up with "locking protocol".
pub(super) fn has_frames(wal: &Path) -> Result<bool, StoreError> {
    /// Length of the header, and the two magic numbers that it begins with, by the byte order of the checksums; see
    /// "WAL File Format" in SQLite's documentation.
    const HEADER: usize = 32;
    const MAGIC: [[u8; 4]; 2] = [0x377f_0682_u32.to_be_bytes(), 0x377f_0683_u32.to_be_bytes()];
    let head = head_of(wal, HEADER + 1)?;
    Ok(head.len() > HEADER && MAGIC.iter().any(|magic| head.starts_with(magic)))
}

/// Whether SQLite would first roll a transaction back. A database is made with a rollback journal and changed to WAL,
/// so a cut in those moments leaves one, with a file beside it that may be anything, even zeros for a header.
pub(super) fn has_rollback(path: &Path) -> Result<bool, StoreError> {
    /// What a journal begins with while it is in force; see "Rollback Journal Format" in SQLite's documentation.
    const MAGIC: u64 = 0xd9d5_05f9_20a1_63d7;
    Ok(head_of(&beside(path, "-journal"), size_of::<u64>())? == MAGIC.to_be_bytes())
}

/// The first bytes of a file, fewer where it is shorter, none where it is missing.
pub(super) fn head_of(path: &Path, length: usize) -> Result<Vec<u8>, StoreError> {
    let failed = io_failed("read", path);
    let file = match fs::File::open(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        file => file.map_err(&failed)?,
    };
    let mut head = Vec::with_capacity(length);
    file.take(length as u64).read_to_end(&mut head).map_err(&failed)?;
    Ok(head)
}

//! SQLite's errors in the store's words.

use std::fs::File;
use std::io;
use std::path::Path;

use rusqlite::ErrorCode;
use rustix::io::Errno;

use crate::error::{ErrorKind, StoreError};

/// For `map_err`: what was tried on which file, and what came of it.
pub(super) fn failed<'a>(op: &'a str, path: &'a Path) -> impl Fn(rusqlite::Error) -> StoreError + 'a {
    move |error| {
        let kind = kind_of(&error);
        let path = path.display();
        if kind == ErrorKind::Refused
            && let Some(cause) = out_of_descriptors()
        {
            return StoreError::new(ErrorKind::Io, format!("cannot {op} in {path}")).because(cause);
        }
        let message = match kind {
            ErrorKind::Busy => format!("cannot {op}: another process has been writing to {path} for too long"),
            ErrorKind::Foreign => format!("{path} is not a SQLite database"),
            ErrorKind::Corrupt => format!("cannot {op}: {path} is damaged or out of order"),
            _ => format!("cannot {op} in {path}"),
        };
        StoreError::new(kind, message).because(Cause(error))
    }
}

/// That this process, or the machine, can open no more files, if that is so: SQLite says only that it cannot open one,
/// and a person would look for what is wrong with the file. It needs up to five at once, and has closed some by now.
fn out_of_descriptors() -> Option<io::Error> {
    const SOME: usize = 6;
    let mut held = Vec::with_capacity(SOME);
    for _ in 0..SOME {
        match File::open("/dev/null") {
            Ok(file) => held.push(file),
            Err(error) => {
                let errno = error.raw_os_error().map(Errno::from_raw_os_error);
                return matches!(errno, Some(Errno::MFILE | Errno::NFILE)).then_some(error);
            }
        }
    }
    None
}

/// What SQLite said. Its own source would only say the same once more, by number.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Cause(rusqlite::Error);

fn kind_of(error: &rusqlite::Error) -> ErrorKind {
    use rusqlite::Error as E;
    match error {
        E::SqliteFailure(failure, _) => match failure.code {
            ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => ErrorKind::Busy,
            ErrorCode::NotADatabase => ErrorKind::Foreign,
            // What was written before the sync may have arrived or not; who opens the database next finds out.
            _ if failure.extended_code == rusqlite::ffi::SQLITE_IOERR_FSYNC => ErrorKind::Unsettled,
            // So is a quota, or a limit on the size of files, though SQLite has no word for it: the write was refused,
            // and unlike a sync it leaves no doubt about what it has not done.
            _ if failure.extended_code == rusqlite::ffi::SQLITE_IOERR_WRITE => ErrorKind::Full,
            ErrorCode::DiskFull => ErrorKind::Full,
            ErrorCode::TooBig => ErrorKind::TooLarge,
            ErrorCode::CannotOpen
            | ErrorCode::ReadOnly
            | ErrorCode::PermissionDenied
            | ErrorCode::AuthorizationForStatementDenied => ErrorKind::Refused,
            // A missing table or column is reported as an unknown error: the schema is not what its version says.
            ErrorCode::DatabaseCorrupt
            | ErrorCode::Unknown
            | ErrorCode::TypeMismatch
            | ErrorCode::ConstraintViolation => ErrorKind::Corrupt,
            _ => ErrorKind::Io,
        },
        E::SqlInputError { .. }
        | E::FromSqlConversionFailure(..)
        | E::IntegralValueOutOfRange(..)
        | E::InvalidColumnType(..)
        | E::Utf8Error(..) => ErrorKind::Corrupt,
        _ => ErrorKind::Io,
    }
}

/// For `map_err`: an operation on a file that the operating system refused.
pub(crate) fn io_failed<'a>(op: &'a str, path: &'a Path) -> impl Fn(std::io::Error) -> StoreError + 'a {
    use std::io::ErrorKind as Io;
    move |error| {
        let kind = match error.kind() {
            Io::NotFound
            | Io::PermissionDenied
            | Io::ReadOnlyFilesystem
            | Io::NotADirectory
            | Io::IsADirectory
            | Io::InvalidFilename => ErrorKind::Refused,
            _ => ErrorKind::Io,
        };
        StoreError::new(kind, format!("cannot {op} {}", path.display())).because(error)
    }
}

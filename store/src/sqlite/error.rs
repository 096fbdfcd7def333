//! SQLite's errors in the store's words.

use std::path::Path;

use rusqlite::ErrorCode;

use crate::error::{ErrorKind, StoreError};

/// For `map_err`: what was tried on which file, and what came of it.
pub(super) fn failed<'a>(op: &'a str, path: &'a Path) -> impl Fn(rusqlite::Error) -> StoreError + 'a {
    move |error| {
        let kind = kind_of(&error);
        let path = path.display();
        let message = match kind {
            ErrorKind::Busy => format!("cannot {op}: another process has been writing to {path} for too long"),
            ErrorKind::Foreign => format!("{path} is not a SQLite database"),
            ErrorKind::Corrupt => format!("cannot {op}: {path} is damaged or out of order"),
            _ => format!("cannot {op} in {path}"),
        };
        StoreError::new(kind, message).because(Cause(error))
    }
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

//! How a connection is set up.

use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode};

use super::error::failed;
use crate::error::{ErrorKind, StoreError};
use crate::limits;

/// Sets what durability rests on and reads it back: SQLite takes a pragma that it does not understand without a word.
pub(super) fn configure(conn: &Connection, path: &Path) -> Result<(), StoreError> {
    let failed = failed("configure the database", path);
    let mode = loop_while_busy(|| change_to_wal(conn)).map_err(&failed)?;
    conn.execute_batch(&format!(
        "PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; PRAGMA wal_autocheckpoint = {};",
        limits::WAL_AUTOCHECKPOINT_PAGES
    ))
    .map_err(&failed)?;
    let number = |pragma: &str| conn.query_row(&format!("PRAGMA {pragma}"), [], |row| row.get::<_, i64>(0));
    let (sync, keys) = (number("synchronous").map_err(&failed)?, number("foreign_keys").map_err(&failed)?);
    if mode != "wal" || sync != 2 || keys != 1 {
        let why = format!(
            "{} cannot be used durably: journal_mode is {mode}, synchronous {sync}, foreign_keys {keys}; wal, 2 and 1 are needed",
            path.display()
        );
        return Err(StoreError::new(ErrorKind::Refused, why));
    }
    conn.set_prepared_statement_cache_capacity(32);
    Ok(())
}

/// The mode that the database has then. The statement gives its row first and commits the change after it, so it is
/// stepped to its end: an error of the disk comes last.
fn change_to_wal(conn: &Connection) -> rusqlite::Result<String> {
    let mut change = conn.prepare("PRAGMA journal_mode = WAL")?;
    let modes = change.query_map([], |row| row.get::<_, String>(0))?;
    modes.last().unwrap_or_else(|| Ok(String::new()))
}

/// The change to WAL does not wait for other connections as everything else does.
fn loop_while_busy<T>(mut run: impl FnMut() -> rusqlite::Result<T>) -> rusqlite::Result<T> {
    let start = Instant::now();
    loop {
        match run() {
            Err(rusqlite::Error::SqliteFailure(failure, _))
                if failure.code == ErrorCode::DatabaseBusy && start.elapsed() < limits::BUSY_WAIT =>
            {
                std::thread::sleep(Duration::from_millis(5));
            }
            other => return other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pragma(conn: &Connection, name: &str) -> i64 {
        conn.query_row(&format!("PRAGMA {name}"), [], |row| row.get(0)).unwrap()
    }

    /// `synchronous = WAL` is taken by SQLite without a word, and means NORMAL: so the connection itself is asked.
    #[test]
    fn the_connection_has_the_pragmas_that_durability_rests_on() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state.db");
        for _ in 0..2 {
            let conn = Connection::open(&path).unwrap();
            configure(&conn, &path).unwrap();
            assert_eq!(pragma(&conn, "synchronous"), 2);
            assert_eq!(pragma(&conn, "foreign_keys"), 1);
            assert_eq!(pragma(&conn, "wal_autocheckpoint"), i64::from(limits::WAL_AUTOCHECKPOINT_PAGES));
            let mode: String = conn.query_row("PRAGMA journal_mode", [], |row| row.get(0)).unwrap();
            assert_eq!(mode, "wal");
        }
    }

    #[test]
    fn a_database_that_cannot_have_a_wal_is_refused() {
        let conn = Connection::open_in_memory().unwrap();
        let error = configure(&conn, Path::new("state.db")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Refused);
        assert!(error.to_string().contains("journal_mode is memory"), "{error}");
    }
}

//! Which schema a file has, and how it gets from one version to the next.

use std::path::Path;

use rusqlite::{Connection, TransactionBehavior};

use super::error::failed;
use crate::error::{ErrorKind, StoreError};

/// The schema version that this program writes.
pub const VERSION: u32 = 4;

/// `MIGRATIONS[n]` leads from version n to version n + 1. Version 0 is a database without tables.
const MIGRATIONS: [&str; VERSION as usize] = [
    include_str!("migrations/0001.sql"),
    include_str!("migrations/0002.sql"),
    include_str!("migrations/0003.sql"),
    include_str!("migrations/0004.sql"),
];

/// `COLUMNS[n]` is what version n + 1 added, as queries that can be prepared where it is there.
const COLUMNS: [&[&str]; VERSION as usize] = [
    &[
        "SELECT id, goal, status, created_at, updated_at FROM tasks",
        "SELECT task_id, idx, tool, input, status, output, attempts FROM steps",
        "SELECT seq, ts, task_id, run_id, kind, step_idx, data FROM events",
    ],
    &["SELECT fence, completion, first_event FROM tasks", "SELECT forgiven FROM steps"],
    &["SELECT home, artifacts, completion_status, completion_attempts, completion_forgiven FROM tasks"],
    &[
        "SELECT settings, wait, due, input_sha256, effect, unknown, checkpoint, answer FROM steps",
        "SELECT inputs, labels, plan_sha256, language, source FROM tasks",
    ],
];

/// What a database file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Schema {
    /// No table at all: a database that is just being made, or whose making was interrupted.
    Empty,
    /// Our tables, of this version.
    Version(u32),
}

impl Schema {
    /// Tells what `conn` holds, and refuses what is not ours or newer than this program.
    pub(super) fn of(conn: &Connection, path: &Path) -> Result<Self, StoreError> {
        let failed = failed("read the schema", path);
        let version: i64 = conn.query_row("PRAGMA user_version", [], |row| row.get(0)).map_err(&failed)?;
        let (all, ours): (u32, u32) = conn
            .query_row(
                "SELECT count(*), count(*) FILTER (WHERE name IN ('tasks', 'steps', 'events'))
                 FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'",
                [],
                |row| Ok((row.get(0)?, row.get(1)?)),
            )
            .map_err(&failed)?;
        let found = if ours == 3 { version_by_columns(conn).map_err(&failed)? } else { 0 };
        let path = path.display();
        match (all, found, version) {
            (0, _, 0) => Ok(Self::Empty),
            (_, 0, _) => Err(StoreError::new(ErrorKind::Foreign, format!("{path} is a database of another program"))),
            // Version 1 has no number, and a text dump loses that of any other.
            (_, found, 0) => Ok(Self::Version(found)),
            (_, _, version) => match u32::try_from(version) {
                Ok(version) if version <= VERSION => Ok(Self::Version(version)),
                _ => Err(StoreError::new(
                    ErrorKind::Newer,
                    format!(
                        "{path} has schema version {version}, this program knows versions up to {VERSION}: use a newer one"
                    ),
                )),
            },
        }
    }

    fn number(self) -> u32 {
        match self {
            Self::Empty => 0,
            Self::Version(version) => version,
        }
    }
}

/// The version whose columns the tables have, with those of all before it; 0 where they are not ours: another program
/// may have tables of these names, and nothing is to be written into those.
fn version_by_columns(conn: &Connection) -> rusqlite::Result<u32> {
    for (version, columns) in (0..).zip(COLUMNS) {
        for column in columns {
            match conn.prepare(column) {
                Ok(_) => {}
                Err(rusqlite::Error::SqlInputError { .. }) => return Ok(version),
                Err(error) => return Err(error),
            }
        }
    }
    Ok(VERSION)
}

/// Brings the database to [`VERSION`] in one transaction, so that a kill leaves the old version or the new one.
pub(super) fn migrate(conn: &mut Connection, path: &Path) -> Result<Schema, StoreError> {
    let failed = failed("bring the schema up to date", path);
    let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate).map_err(&failed)?;
    // Looked at under the write lock: another process may have migrated it since it was opened.
    let from = Schema::of(&tx, path)?.number();
    for migration in &MIGRATIONS[from as usize..] {
        tx.execute_batch(migration).map_err(&failed)?;
    }
    tx.pragma_update(None, "user_version", VERSION).map_err(&failed)?;
    tx.commit().map_err(&failed)?;
    Ok(Schema::Version(VERSION))
}

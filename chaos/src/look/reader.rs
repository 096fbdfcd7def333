//! The lab's own reader of an agent's database: its own SQL against the contract's tables. The only file of the lab
//! that knows SQLite.
//!
//! A database at rest is read from a *copy*: opening the original after a kill would recover its write-ahead log, and
//! the next run would no longer find what the kill had left.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, Row};
use serde_json::Value;

use crate::contract::DB_SUFFIXES;
use crate::error::LabError;
use crate::look::files;
use crate::look::tables::{EventRow, StepRow, Tables, TaskRow};

/// How long a live reader waits for a database that is busy.
const BUSY: Duration = Duration::from_secs(5);

/// Offset of the two bytes of a database's header that say `2` for WAL.
const WAL_BYTES: std::ops::Range<usize> = 18..20;

/// Reads the database `db` that no process has open, by way of a copy in `scratch`. What is wrong with it comes back as
/// text, beside whatever could be read all the same.
///
/// # Errors
/// A copy that cannot be made.
pub fn read_at_rest(db: &Path, scratch: &Path) -> Result<(Tables, Vec<String>), LabError> {
    let copy = scratch.join("copy.db");
    if !db.is_file() {
        return Ok((Tables::default(), vec!["there is no database".to_owned()]));
    }
    for suffix in DB_SUFFIXES {
        let from = with_suffix(db, suffix);
        if from.is_file() {
            let to = with_suffix(&copy, suffix);
            std::fs::copy(&from, &to).map_err(LabError::io("copy", &from))?;
        }
    }
    let mut faults = Vec::new();
    let tables = read_copy(&copy, &mut faults);
    // A database is made first and changed to WAL then, so one that holds no task yet may have been cut off in between.
    // The header is read last, when SQLite has rolled back what a cut left half done.
    let header = std::fs::read(&copy).map_err(LabError::io("read", &copy))?;
    if !tables.tasks.is_empty() && header.get(WAL_BYTES) != Some([2, 2].as_slice()) {
        faults.push("the database is not in WAL mode".to_owned());
    }
    for suffix in ["", "-wal", "-shm", "-journal"] {
        // The copy is of no use to anyone, and the next one overwrites it.
        let _ = std::fs::remove_file(with_suffix(&copy, suffix));
    }
    Ok((tables, faults))
}

fn read_copy(copy: &Path, faults: &mut Vec<String>) -> Tables {
    let read = || -> rusqlite::Result<(Tables, Vec<String>)> {
        let db = Connection::open(copy)?;
        // The copy need not survive anything.
        db.pragma_update(None, "synchronous", "OFF")?;
        let mut unsound = lines(&db, "PRAGMA integrity_check", |row| row.get(0))?;
        unsound.retain(|line| line != "ok");
        unsound.extend(lines(&db, "PRAGMA foreign_key_check", |row| {
            let table: String = row.get(0)?;
            Ok(format!("a row of `{table}` refers to nothing"))
        })?);
        Ok((tables(&db)?, unsound))
    };
    match read() {
        Ok((tables, unsound)) => {
            faults.extend(unsound);
            tables
        }
        Err(error) => {
            faults.push(format!("SQLite cannot read it: {error}"));
            Tables::default()
        }
    }
}

/// A read-only connection to a database that an agent is at work on.
pub struct LiveReader {
    db: Connection,
    path: PathBuf,
}

impl LiveReader {
    /// Opens it.
    ///
    /// # Errors
    /// A database that is not there or cannot be opened.
    pub fn open(path: &Path) -> Result<Self, LabError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let open = || -> rusqlite::Result<Connection> {
            let db = Connection::open_with_flags(path, flags)?;
            db.busy_timeout(BUSY)?;
            Ok(db)
        };
        let db = open().map_err(|e| unreadable(path, &e))?;
        Ok(Self { db, path: path.to_owned() })
    }

    /// Opens it once it is a database with the contract's tables in it; nothing before. To be called only while this
    /// process has no other connection to it: closing any file of a database drops the locks of all of them.
    ///
    /// # Errors
    /// A database that cannot be read.
    pub fn when_ready(path: &Path) -> Result<Option<Self>, LabError> {
        let mut header = [0; WAL_BYTES.end];
        let read = files::open(path).and_then(|mut file| file.read_exact(&mut header));
        // To open it earlier could get into the way of the agent that makes it.
        if read.is_err() || header[WAL_BYTES] != [2, 2] {
            return Ok(None);
        }
        let reader = Self::open(path)?;
        let sql = "SELECT count(*) FROM sqlite_master WHERE name IN ('tasks', 'steps', 'events')";
        let tables: i64 = reader.db.query_row(sql, [], |row| row.get(0)).map_err(|e| unreadable(path, &e))?;
        Ok((tables == 3).then_some(reader))
    }

    /// How often the step was started so far.
    ///
    /// # Errors
    /// A database that cannot be read.
    pub fn starts(&self, task: &str, step: usize) -> Result<i64, LabError> {
        let sql = "SELECT count(*) FROM events
                   WHERE task_id = ?1 AND kind = 'step_started' AND step_idx = ?2";
        let read = || {
            let mut query = self.db.prepare_cached(sql)?;
            query.query_row((task, step as i64), |row| row.get(0))
        };
        read().map_err(|e| unreadable(&self.path, &e))
    }

    /// All three tables in one read transaction.
    ///
    /// # Errors
    /// A database that cannot be read.
    pub fn tables(&self) -> Result<Tables, LabError> {
        let read = || {
            let transaction = self.db.unchecked_transaction()?;
            tables(&transaction)
        };
        read().map_err(|e| unreadable(&self.path, &e))
    }
}

/// A connection that stays open beside the agent's, to a database whose log has been written through once: the agent
/// then overwrites the log instead of making it longer, and its end neither empties nor removes it.
pub struct Keeper {
    db: Connection,
}

/// So many rounds of four commits make the log longer than two runs do.
const AGING_ROUNDS: usize = 20;

impl Keeper {
    /// Opens the database, writes its log through and has it begin anew.
    ///
    /// # Errors
    /// A database that cannot be opened or written.
    pub fn age(path: &Path) -> Result<Self, LabError> {
        let age = || -> rusqlite::Result<Connection> {
            let db = Connection::open(path)?;
            db.busy_timeout(BUSY)?;
            db.execute_batch("PRAGMA wal_autocheckpoint = 0")?;
            for _ in 0..AGING_ROUNDS {
                // There and back, because what does not change a page is not written.
                db.execute_batch(
                    "UPDATE tasks SET goal = goal || '.'; UPDATE steps SET tool = tool || '.';
                     UPDATE tasks SET goal = substr(goal, 1, length(goal) - 1);
                     UPDATE steps SET tool = substr(tool, 1, length(tool) - 1);",
                )?;
            }
            db.query_row("PRAGMA wal_checkpoint(RESTART)", [], |_| Ok(()))?;
            Ok(db)
        };
        age().map(|db| Self { db }).map_err(|e| unreadable(path, &e))
    }

    /// Gives the database up without any trace in it.
    ///
    /// # Errors
    /// A database that cannot be closed.
    pub fn leave(self) -> Result<(), LabError> {
        self.db.close().map_err(|(_, e)| LabError::Internal(format!("cannot close the database: {e}")))
    }
}

/// Holds the database as its writer for so long, again and again until it is over,
/// and changes a time of the tasks each time; how often.
///
/// # Errors
/// A database that cannot be opened or written.
pub fn hold_again_and_again(path: &Path, hold: Duration, over: &AtomicBool) -> Result<usize, LabError> {
    let play = || -> rusqlite::Result<usize> {
        let db = Connection::open(path)?;
        db.busy_timeout(BUSY)?;
        let mut held = 0;
        while !over.load(Ordering::Relaxed) {
            db.execute_batch("BEGIN IMMEDIATE; UPDATE tasks SET updated_at = updated_at + 0.000001")?;
            std::thread::sleep(hold);
            db.execute_batch("COMMIT")?;
            held += 1;
            // So that somebody else comes in.
            std::thread::sleep(hold / 8);
        }
        Ok(held)
    };
    play().map_err(|e| unreadable(path, &e))
}

fn unreadable(path: &Path, error: &rusqlite::Error) -> LabError {
    LabError::Internal(format!("cannot read {}: {error}", path.display()))
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

fn tables(db: &Connection) -> rusqlite::Result<Tables> {
    Ok(Tables {
        tasks: lines(db, "SELECT id, goal, status FROM tasks ORDER BY id", task)?,
        steps: lines(
            db,
            "SELECT task_id, idx, tool, input, status, output, attempts
             FROM steps ORDER BY task_id, idx",
            step,
        )?,
        events: lines(db, "SELECT seq, ts, task_id, run_id, kind, step_idx, data FROM events ORDER BY seq", event)?,
    })
}

fn lines<T>(db: &Connection, sql: &str, read: fn(&Row<'_>) -> rusqlite::Result<T>) -> rusqlite::Result<Vec<T>> {
    let mut query = db.prepare_cached(sql)?;
    let rows = query.query_map([], read)?;
    rows.collect()
}

fn task(row: &Row<'_>) -> rusqlite::Result<TaskRow> {
    Ok(TaskRow { id: row.get(0)?, goal: row.get(1)?, status: row.get(2)? })
}

fn step(row: &Row<'_>) -> rusqlite::Result<StepRow> {
    Ok(StepRow {
        task: row.get(0)?,
        idx: index(row.get(1)?)?,
        tool: row.get(2)?,
        input: json(row.get(3)?),
        status: row.get(4)?,
        output: row.get::<_, Option<String>>(5)?.map(json),
        attempts: row.get(6)?,
    })
}

fn event(row: &Row<'_>) -> rusqlite::Result<EventRow> {
    Ok(EventRow {
        seq: row.get(0)?,
        ts: row.get(1)?,
        task: row.get(2)?,
        run: row.get::<_, Option<String>>(3)?.unwrap_or_default(),
        kind: row.get(4)?,
        step: row.get::<_, Option<i64>>(5)?.map(index).transpose()?,
        data: row.get::<_, Option<String>>(6)?.unwrap_or_default(),
    })
}

/// A step index as it is stored; a negative one cannot be.
fn index(stored: i64) -> rusqlite::Result<usize> {
    usize::try_from(stored).map_err(|_| rusqlite::Error::IntegralValueOutOfRange(0, stored))
}

fn json(text: String) -> Value {
    serde_json::from_str(&text).unwrap_or(Value::String(text))
}

/// A database of the contract that stays open, with a step at work; for tests.
#[cfg(test)]
pub(crate) fn testing_database(path: &Path) -> Connection {
    let writer = Connection::open(path).expect("open");
    writer.execute_batch(tests::SCHEMA).expect("schema");
    writer
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) const SCHEMA: &str = "
        PRAGMA journal_mode = WAL;
        CREATE TABLE tasks(id TEXT PRIMARY KEY, goal TEXT, status TEXT,
            created_at REAL, updated_at REAL);
        CREATE TABLE steps(task_id TEXT, idx INTEGER, tool TEXT, input TEXT, status TEXT,
            output TEXT, attempts INTEGER, PRIMARY KEY(task_id, idx));
        CREATE TABLE events(seq INTEGER PRIMARY KEY AUTOINCREMENT, ts REAL, task_id TEXT,
            run_id TEXT, kind TEXT, step_idx INTEGER, data TEXT);
        INSERT INTO tasks VALUES('t1', 'g', 'running', 1, 1);
        INSERT INTO steps VALUES('t1', 0, 'fetch', '{\"path\":\"x\"}', 'running', NULL, 1);
        INSERT INTO events VALUES(NULL, 1.5, 't1', 'r', 'step_started', 0, '{\"attempt\":1}');";

    #[test]
    fn looking_at_a_database_changes_no_byte_of_it() {
        let dir = tempfile::tempdir().expect("dir");
        let db = dir.path().join("state.db");
        let _writer = testing_database(&db);
        let bytes = |suffix| std::fs::read(with_suffix(&db, suffix)).expect("read");
        let before = (bytes(""), bytes("-wal"));
        let scratch = tempfile::tempdir().expect("dir");
        let (tables, faults) = read_at_rest(&db, scratch.path()).expect("read");
        assert_eq!(faults, Vec::<String>::new());
        assert_eq!(tables.steps[0].input["path"], "x");
        assert_eq!(tables.events[0].field("attempt"), 1);
        assert_eq!((bytes(""), bytes("-wal")), before);
        assert_eq!(std::fs::read_dir(scratch.path()).expect("dir").count(), 0);
    }

    #[test]
    fn an_aged_log_is_overwritten_and_outlives_the_agent() {
        let dir = tempfile::tempdir().expect("dir");
        let db = dir.path().join("state.db");
        Connection::open(&db).and_then(|db| db.execute_batch(SCHEMA)).expect("schema");
        let length = || std::fs::metadata(with_suffix(&db, "-wal")).map_or(0, |meta| meta.len());
        assert_eq!(length(), 0, "the last one to close removes the log");
        let rows = || Connection::open(&db).and_then(|db| tables(&db)).expect("read");
        let before = rows();
        let keeper = Keeper::age(&db).expect("aged");
        let aged = length();
        assert_eq!(rows(), before);
        assert!(aged > 300_000, "{aged}");
        let agent = Connection::open(&db).expect("open");
        agent.execute_batch("UPDATE tasks SET status = 'done'").expect("written");
        drop(agent);
        assert_eq!(length(), aged);
        keeper.leave().expect("closed");
        assert_eq!(length(), 0);
    }

    #[test]
    fn a_live_reader_sees_starts_and_tables() {
        let dir = tempfile::tempdir().expect("dir");
        let db = dir.path().join("state.db");
        let _writer = testing_database(&db);
        let reader = LiveReader::open(&db).expect("open");
        assert_eq!(reader.starts("t1", 0).expect("read"), 1);
        assert_eq!(reader.starts("t1", 1).expect("read"), 0);
        assert_eq!(reader.tables().expect("read").tasks[0].status, "running");
    }

    #[test]
    fn what_is_no_sound_database_is_a_fault_and_no_error() {
        let dir = tempfile::tempdir().expect("dir");
        let scratch = tempfile::tempdir().expect("dir");
        let db = dir.path().join("state.db");
        let faults = |db: &Path| read_at_rest(db, scratch.path()).expect("read").1;
        assert_eq!(faults(&db), ["there is no database"]);
        std::fs::write(&db, "this is not a database, but long enough to have a header").expect("write");
        assert!(faults(&db).iter().any(|f| f.contains("cannot read")));
        std::fs::remove_file(&db).expect("remove");
        let rollback = Connection::open(&db).expect("open");
        rollback.execute_batch(&SCHEMA.replace("WAL", "DELETE")).expect("schema");
        drop(rollback);
        assert_eq!(faults(&db), ["the database is not in WAL mode"]);
    }
}

//! Making databases and opening them.

use std::fs;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use fixtures::Sandbox;
use store::sqlite::{SqliteReader, SqliteStore, VERSION};
use store::{Crash, ErrorKind, Reader, Store};

use crate::support::{begin, closed, create, open, raw, run, run_steps, session, v1_rows};

fn pragma(path: &std::path::Path, name: &str) -> String {
    raw(path)
        .query_row(&format!("SELECT * FROM pragma_{name}"), [], |row| row.get::<_, rusqlite::types::Value>(0))
        .map(|value| match value {
            rusqlite::types::Value::Integer(number) => number.to_string(),
            rusqlite::types::Value::Text(text) => text,
            other => panic!("{other:?}"),
        })
        .unwrap()
}

/// Opens the database, as far as a run does before its first commit.
fn take_lease(path: &std::path::Path, task: &store::model::TaskId) {
    drop(SqliteStore::open(path, Crash::off()).unwrap().acquire(task, &run("r")).unwrap());
}

#[test]
fn a_new_database_is_in_wal_mode_and_says_its_version() {
    let sandbox = Sandbox::new();
    let path = sandbox.file("state.db");
    drop(open(&path));
    assert_eq!(pragma(&path, "user_version"), VERSION.to_string());
    assert_eq!(pragma(&path, "journal_mode"), "wal");
    assert_eq!(pragma(&path, "integrity_check"), "ok");
}

#[test]
fn the_tables_are_those_of_the_contract_with_columns_added_only_at_the_end() {
    let sandbox = Sandbox::new();
    let path = sandbox.file("state.db");
    drop(open(&path));
    let conn = raw(&path);
    for (table, columns) in fixtures::contract::TABLES_V1 {
        let mut query = conn.prepare(&format!("SELECT name FROM pragma_table_info('{table}')")).unwrap();
        let found: Vec<String> = query.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
        assert_eq!(found[..columns.len()], *columns, "{table}");
    }
}

#[test]
fn a_database_in_rollback_mode_is_put_into_wal_mode_with_its_rows_kept() {
    let sandbox = Sandbox::new();
    let path = sandbox.file("state.db");
    let task = closed(&path, 2, 1);
    let rows = v1_rows(&path);
    raw(&path).query_row("PRAGMA journal_mode = DELETE", [], |_| Ok(())).unwrap();
    assert_eq!(fs::read(&path).unwrap()[18..20], [1, 1]);
    take_lease(&path, &task);
    assert_eq!(pragma(&path, "journal_mode"), "wal");
    assert_eq!(v1_rows(&path), rows);
}

/// A text dump that is read back has all rows and columns, and no `user_version`: it was taken for version 1, and its
/// migration failed over columns that were there.
#[test]
fn a_database_whose_version_was_lost_is_known_by_its_columns() {
    let sandbox = Sandbox::new();
    let path = sandbox.file("state.db");
    let task = closed(&path, 2, 1);
    raw(&path).execute_batch("PRAGMA user_version = 0; PRAGMA journal_mode = DELETE;").unwrap();
    assert_eq!(SqliteReader::open(&path).unwrap().load(&task).unwrap().unwrap().cursor, 1);
    let mut store = SqliteStore::open(&path, Crash::off()).unwrap();
    let mut session = session(&mut store, &task);
    session.apply(&begin()).unwrap();
    run_steps(&mut session, 1);
    drop(session);
    assert_eq!(store::audit::audit(&mut store, None).unwrap(), []);
    drop(store);
    assert_eq!(pragma(&path, "journal_mode"), "wal");
}

/// A group that shares a folder by its umask could share everything in it but the database.
#[test]
fn a_new_database_follows_the_umask_as_every_new_file_does() {
    use std::os::unix::fs::PermissionsExt as _;
    let sandbox = Sandbox::new();
    let path = sandbox.file("state.db");
    closed(&path, 1, 0);
    sandbox.write("file", "");
    store::sqlite::backup(&path, &sandbox.file("copy.db")).unwrap();
    let mode = |name: &str| fs::metadata(sandbox.file(name)).unwrap().permissions().mode() & 0o777;
    for name in ["state.db", "state.db.t.lock", "copy.db"] {
        assert_eq!(mode(name), mode("file"), "{name}");
    }
}

#[test]
fn opening_what_is_not_there_makes_nothing() {
    let sandbox = Sandbox::new();
    let before = sandbox.tree();
    for path in [sandbox.file("state.db"), sandbox.file("no folder/state.db")] {
        assert_eq!(SqliteReader::open(&path).err().unwrap().kind(), ErrorKind::Missing);
        assert_eq!(SqliteStore::open(&path, Crash::off()).err().unwrap().kind(), ErrorKind::Missing);
    }
    let nowhere = sandbox.file("no folder/state.db");
    assert_eq!(SqliteStore::open_or_create(&nowhere, Crash::off()).err().unwrap().kind(), ErrorKind::Refused);
    assert_eq!(sandbox.tree(), before);
}

#[test]
fn names_that_sqlite_would_read_as_something_else_are_plain_files() {
    let sandbox = Sandbox::new();
    for name in ["a b.db", "100%.db", "q?mode=memory", "報告.db", "file:x.db", ":memory:", "a#b.db", "c%41.db"] {
        let path = sandbox.file(name);
        closed(&path, 1, 1);
        assert!(path.is_file(), "{name}");
        assert_eq!(SqliteReader::open(&path).unwrap().tasks().unwrap().len(), 1, "{name}");
    }
    let names = sandbox.tree().keys().filter(|name| !name.ends_with(".lock") && !name.ends_with("-id")).count();
    assert_eq!(names, 8 + 3, "nothing else was made: {:?}", sandbox.tree().keys());
}

#[test]
fn eight_threads_that_make_the_same_database_at_once_all_get_it() {
    const THREADS: usize = 8;
    for _ in 0..10 {
        let sandbox = Sandbox::new();
        let path = sandbox.file("state.db");
        let gate = Barrier::new(THREADS);
        thread::scope(|scope| {
            for number in 0..THREADS {
                let (gate, path) = (&gate, &path);
                scope.spawn(move || {
                    gate.wait();
                    let mut store = SqliteStore::open_or_create(path, Crash::off()).unwrap();
                    create(&mut store, &format!("t{number}"), 2);
                });
            }
        });
        let mut reader = SqliteReader::open(&path).unwrap();
        assert_eq!(reader.tasks().unwrap().len(), THREADS);
        assert_eq!(store::audit::audit(&mut reader, None).unwrap(), []);
    }
}

#[test]
fn a_writer_that_holds_the_database_for_two_seconds_is_waited_out() {
    const HELD: Duration = Duration::from_secs(2);
    let sandbox = Sandbox::new();
    let path = sandbox.file("state.db");
    let task = closed(&path, 1, 0);
    let mut store = open(&path);
    let mut waiting = session(&mut store, &task);

    let holder = raw(&path);
    holder.execute_batch("BEGIN IMMEDIATE; UPDATE tasks SET goal = goal").unwrap();
    let start = Instant::now();
    thread::scope(|scope| {
        scope.spawn(move || {
            thread::sleep(HELD);
            holder.execute_batch("COMMIT").unwrap();
        });
        waiting.apply(&begin()).unwrap();
    });
    assert!(start.elapsed() >= HELD, "{:?}", start.elapsed());
}

/// SQLite itself does not wait for others where a file is put into WAL mode.
#[test]
fn a_writer_that_holds_a_database_in_rollback_mode_is_waited_out_too() {
    const HELD: Duration = Duration::from_millis(300);
    let sandbox = Sandbox::new();
    let path = sandbox.file("state.db");
    let task = closed(&path, 1, 0);
    let holder = raw(&path);
    holder.query_row("PRAGMA journal_mode = DELETE", [], |_| Ok(())).unwrap();
    holder.execute_batch("BEGIN IMMEDIATE").unwrap();
    let start = Instant::now();
    thread::scope(|scope| {
        scope.spawn(move || {
            thread::sleep(HELD);
            holder.execute_batch("COMMIT").unwrap();
        });
        take_lease(&path, &task);
    });
    assert!(start.elapsed() >= HELD, "{:?}", start.elapsed());
    assert_eq!(pragma(&path, "journal_mode"), "wal");
}

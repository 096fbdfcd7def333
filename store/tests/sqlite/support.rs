//! Databases in every condition.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fixtures::Sandbox;
use rusqlite::Connection;
use serde_json::{Map, Value, json};
use store::machine::{Budget, Command, Next, next};
use store::model::{Plan, PlannedStep, RunId, TaskId, Terms, Timestamp};
use store::sqlite::{SqliteReader, SqliteStore, backup};
use store::{Crash, ErrorKind, SystemClock, TaskSession};

pub(crate) fn id(text: &str) -> TaskId {
    TaskId::new(text).unwrap()
}

pub(crate) fn run(text: &str) -> RunId {
    RunId::from_stored(text)
}

pub(crate) fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        other => panic!("no object: {other}"),
    }
}

/// Opens or makes a database.
pub(crate) fn open(path: &Path) -> SqliteStore {
    SqliteStore::open_or_create(path, Crash::off()).unwrap()
}

pub(crate) fn create(store: &mut SqliteStore, name: &str, steps: u32) -> TaskId {
    let step = |idx: u32| PlannedStep::new("echo".to_owned(), object(json!({ "value": idx })));
    let plan = Plan { goal: "echo".to_owned(), steps: (0..steps).map(step).collect() };
    let task = id(name);
    store::create(store, &SystemClock, &task, Arc::new(plan), None).unwrap();
    task
}

pub(crate) fn session<'a>(store: &'a mut SqliteStore, task: &TaskId) -> TaskSession<'a> {
    TaskSession::open(store, &SystemClock, task, &run("r")).unwrap()
}

pub(crate) fn begin() -> Command {
    Command::Begin(Terms::limit(3))
}

pub(crate) fn start(step: u32) -> Command {
    Command::Start { step, tool: "echo".to_owned(), budget: Budget::of(3), intent: None }
}

/// Runs `steps` further steps.
pub(crate) fn run_steps(session: &mut TaskSession<'_>, steps: u32) {
    for _ in 0..steps {
        let Next::Step(step) = next(&session.state(), Timestamp::default()) else { panic!("no step is left") };
        session.apply(&start(step)).unwrap();
        session.finish(step, "echo", object(json!({ "value": step }))).unwrap();
    }
}

/// A closed database with the task `t` of `steps` steps, of which `done` are done.
pub(crate) fn closed(path: &Path, steps: u32, done: u32) -> TaskId {
    let mut store = open(path);
    let task = create(&mut store, "t", steps);
    let mut session = session(&mut store, &task);
    session.apply(&begin()).unwrap();
    run_steps(&mut session, done);
    drop(session);
    drop(store);
    assert_eq!(beside(path).len(), 1, "closing leaves one file");
    task
}

/// A database as a killed process leaves it: task `t` of 3 steps, one done, one running, all of it still in the WAL.
/// The files are copied while their writer has them open.
pub(crate) fn killed(path: &Path) -> TaskId {
    let live = Sandbox::new();
    let from = live.file("state.db");
    let mut store = open(&from);
    let task = create(&mut store, "t", 3);
    let mut session = session(&mut store, &task);
    session.apply(&begin()).unwrap();
    run_steps(&mut session, 1);
    session.apply(&start(1)).unwrap();
    for suffix in ["", "-wal", "-shm"] {
        fs::copy(with(&from, suffix), with(path, suffix)).unwrap();
    }
    task
}

/// `<path><suffix>`.
pub(crate) fn with(path: &Path, suffix: &str) -> PathBuf {
    PathBuf::from(format!("{}{suffix}", path.display()))
}

/// The database and SQLite's files beside it, those that exist.
pub(crate) fn beside(path: &Path) -> Vec<PathBuf> {
    ["", "-wal", "-shm", "-journal"].map(|suffix| with(path, suffix)).into_iter().filter(|path| path.exists()).collect()
}

/// A connection as any other program would open one.
pub(crate) fn raw(path: &Path) -> Connection {
    Connection::open(path).unwrap()
}

/// Every row of every table in the columns of version 1, as text.
pub(crate) fn v1_rows(path: &Path) -> Vec<String> {
    let conn = raw(path);
    let mut found = Vec::new();
    for (table, columns) in fixtures::contract::TABLES_V1 {
        let list: Vec<String> = columns.iter().map(|column| format!("quote({column})")).collect();
        let sql = format!("SELECT concat_ws(' | ', '{table}', {}) FROM {table} ORDER BY rowid", list.join(", "));
        let mut query = conn.prepare(&sql).unwrap();
        found.extend(query.query_map([], |row| row.get::<_, String>(0)).unwrap().map(Result::unwrap));
    }
    found
}

/// Makes a pipe with a name, which whoever opens it waits at.
pub(crate) fn fifo(path: &Path) {
    assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success());
}

/// Reading, writing, making and copying each refuse the file with `kind`, in one line that names it.
#[track_caller]
pub(crate) fn assert_refused(sandbox: &Sandbox, path: &Path, kind: ErrorKind) {
    let before = sandbox.tree();
    let crash = Crash::off;
    let errors = [
        SqliteReader::open(path).err(),
        SqliteStore::open(path, crash()).err(),
        SqliteStore::open_or_create(path, crash()).err(),
        backup(path, &sandbox.file("copy.db")).err(),
    ];
    for (at, error) in errors.into_iter().enumerate() {
        let error = error.unwrap_or_else(|| panic!("way {at} took it"));
        let text = error.to_string();
        assert_eq!(error.kind(), kind, "way {at}: {text}");
        assert!(text.contains(&*path.to_string_lossy()) && !text.contains('\n'), "way {at}: {text}");
    }
    assert_eq!(sandbox.tree(), before);
}

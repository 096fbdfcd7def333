//! A process that dies within a commit: before it nothing is there, after it everything.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::{Arc, Mutex};

use fixtures::Sandbox;
use store::audit::audit;
use store::sqlite::{SqliteReader, SqliteStore};
use store::{Crash, Reader, SystemClock};

use crate::support::{begin, closed, id, session, start, v1_rows};

/// Dies when it passes `point`: unwinding drops the transaction, as the end of a process does.
fn dies_at(point: &'static str) -> Crash {
    Crash::watching(move |passed| assert_ne!(passed.to_string(), point, "dies here"))
}

fn die(path: &Path, point: &'static str, work: impl FnOnce(&mut SqliteStore)) {
    let mut store = SqliteStore::open(path, dies_at(point)).unwrap();
    assert!(catch_unwind(AssertUnwindSafe(|| work(&mut store))).is_err(), "{point} was not passed");
}

#[test]
fn a_commit_that_is_written_and_not_committed_is_not_there() {
    let sandbox = Sandbox::new();
    let path = sandbox.file("state.db");
    let task = closed(&path, 2, 0);
    let before = v1_rows(&path);
    die(&path, "commit.written:0", |store| drop(session(store, &task).apply(&start(0))));
    assert_eq!(v1_rows(&path), before);
    die(&path, "commit.written", |store| drop(session(store, &task).apply(&begin())));
    assert_eq!(v1_rows(&path), before);
    // Whoever comes next can go on.
    let mut store = SqliteStore::open(&path, Crash::off()).unwrap();
    session(&mut store, &task).apply(&start(0)).unwrap();
}

#[test]
fn a_commit_whose_caller_never_hears_of_it_is_there() {
    let sandbox = Sandbox::new();
    let path = sandbox.file("state.db");
    let task = closed(&path, 2, 0);
    die(&path, "commit.done:0", |store| drop(session(store, &task).apply(&start(0))));
    let mut reader = SqliteReader::open(&path).unwrap();
    assert_eq!(reader.load(&task).unwrap().unwrap().running(), Some(0));
    assert_eq!(audit(&mut reader, None).unwrap(), []);
}

#[test]
fn a_task_is_created_whole_or_not_at_all() {
    let plan = Arc::new(store::model::codec::plan_from_json(&fixtures::echo_plan(3).to_string()).unwrap());
    for (point, tasks) in [("commit.written", 1), ("commit.done", 2)] {
        let sandbox = Sandbox::new();
        let path = sandbox.file("state.db");
        closed(&path, 1, 1);
        let new = id("new");
        die(&path, point, |store| {
            store::create(store, &SystemClock, &new, plan.clone(), None).unwrap();
        });
        let mut reader = SqliteReader::open(&path).unwrap();
        assert_eq!(reader.tasks().unwrap().len(), tasks, "{point}");
        assert_eq!(audit(&mut reader, None).unwrap(), [], "{point}");
    }
}

#[test]
fn each_commit_passes_both_points_once_under_its_step() {
    let sandbox = Sandbox::new();
    let path = sandbox.file("state.db");
    let task = closed(&path, 2, 0);
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&seen);
    let mut store =
        SqliteStore::open(&path, Crash::watching(move |point| log.lock().unwrap().push(point.to_string()))).unwrap();
    let mut session = session(&mut store, &task);
    session.apply(&begin()).unwrap();
    session.apply(&start(0)).unwrap();
    session.finish(0, "echo", serde_json::Map::new()).unwrap();
    let expected =
        ["commit.written", "commit.done", "commit.written:0", "commit.done:0", "commit.written:0#2", "commit.done:0#2"];
    assert_eq!(*seen.lock().unwrap(), expected);
}

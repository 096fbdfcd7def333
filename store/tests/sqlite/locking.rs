//! The lock file, as other programs see it.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::path::Path;
use std::sync::Arc;

use fixtures::Sandbox;
use rstest::rstest;
use store::machine::Budget;
use store::machine::Command;
use store::sqlite::{SqliteStore, lock_path};
use store::{Crash, ErrorKind, SessionError, Store, SystemClock};

use crate::support::{begin, closed, create, fifo, id, open, raw, run, session};

#[rstest]
#[case("t1", "/lab/state.db.t1.lock")]
#[case("a.b-C_9", "/lab/state.db.a.b-C_9.lock")]
#[case("..", "/lab/state.db.%2E..lock")]
#[case("../../etc/passwd", "/lab/state.db.%2E.%2F..%2Fetc%2Fpasswd.lock")]
#[case("my task", "/lab/state.db.my%20task.lock")]
#[case("報告", "/lab/state.db.%E5%A0%B1%E5%91%8A.lock")]
fn the_lock_of_a_task_lies_beside_its_database(#[case] task: &str, #[case] path: &str) {
    assert_eq!(lock_path(Path::new("/lab/state.db"), &id(task)), Path::new(path));
}

#[test]
fn no_two_ids_share_a_lock_and_none_leaves_the_folder() {
    let database = Path::new("/lab/state.db");
    let ids = [
        "a",
        "A",
        "a b",
        "a%20b",
        "a%2520b",
        "a/b",
        "a%2Fb",
        ".",
        "..",
        "%2E.",
        ".a",
        "%2Ea",
        "報",
        "報報",
        "a.lock",
        &"報".repeat(66),
        &"報".repeat(65),
        &"%".repeat(200),
        &"x".repeat(200),
    ];
    let mut paths: Vec<_> = ids.iter().map(|text| lock_path(database, &id(text))).collect();
    assert!(paths.iter().all(|path| path.parent() == Some(Path::new("/lab"))), "{paths:?}");
    assert!(paths.iter().all(|path| path.file_name().unwrap().len() <= 255));
    paths.sort();
    paths.dedup();
    assert_eq!(paths.len(), ids.len());
}

/// A 250-character id once broke on the name of its lock file, after the task was stored.
#[test]
fn a_lock_that_could_not_be_named_is_refused_before_the_task_is_stored() {
    let sandbox = Sandbox::new();
    let path = sandbox.file(format!("{}.db", "d".repeat(60)));
    let mut store = open(&path);
    let plan = store::model::codec::plan_from_json(&fixtures::echo_plan(1).to_string()).unwrap();
    let long = id(&"x".repeat(200));
    let refused = store::create(&mut store, &SystemClock, &long, Arc::new(plan), None);
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::Refused);
    assert!(store::Reader::tasks(&mut store).unwrap().is_empty());
    create(&mut store, &"x".repeat(180), 1);
}

fn plain_lock(path: &Path) -> Result<File, TryLockError> {
    let file = OpenOptions::new().create(true).truncate(false).write(true).open(path).unwrap();
    file.try_lock().map(|()| file)
}

#[test]
fn a_lease_and_a_plain_flock_exclude_each_other() {
    let sandbox = Sandbox::new();
    let path = sandbox.file("state.db");
    let task = closed(&path, 1, 0);
    let mut store = open(&path);
    let lock = lock_path(&path, &task);

    let lease = store.acquire(&task, &run("r")).unwrap();
    assert!(matches!(plain_lock(&lock), Err(TryLockError::WouldBlock)));
    drop(lease);
    let plain = plain_lock(&lock).unwrap();
    let error = store.acquire(&task, &run("r")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Held);
    assert!(error.to_string().contains(&*lock.to_string_lossy()), "{error}");
    drop(plain);
    store.acquire(&task, &run("r")).unwrap();
}

#[test]
fn a_run_whose_lock_file_was_removed_is_fenced_off_by_the_next() {
    let sandbox = Sandbox::new();
    let path = sandbox.file("state.db");
    let task = closed(&path, 2, 0);
    let (mut first_store, mut second_store) = (open(&path), open(&path));
    let mut first = session(&mut first_store, &task);
    first.apply(&begin()).unwrap();
    fs::remove_file(lock_path(&path, &task)).unwrap();

    let mut second = session(&mut second_store, &task);
    let before = store::Reader::journal(second.reader(), None, 0, 100).unwrap();
    let start = Command::Start { step: 0, tool: "echo".to_owned(), budget: Budget::of(3), intent: None };
    match first.apply(&start).unwrap_err() {
        SessionError::Store(error) => assert_eq!(error.kind(), ErrorKind::Fenced),
        SessionError::Refused(refused) => panic!("{refused}"),
    }
    assert_eq!(first.state().current.attempts, 0, "the session stays where it was");
    assert_eq!(store::Reader::journal(second.reader(), None, 0, 100).unwrap(), before);
    second.apply(&begin()).unwrap();
    second.apply(&start).unwrap();
}

/// The lock of task `b` in `s.a` has the name of that of task `a.b` in `s`: whoever came second was told that its task
/// was running already.
#[test]
fn two_databases_whose_locks_have_one_name_do_not_hold_each_other_up() {
    let sandbox = Sandbox::new();
    let (one, other) = (sandbox.file("s"), sandbox.file("s.a"));
    let (mut ones, mut others) = (open(&one), open(&other));
    let (ab, b) = (create(&mut ones, "a.b", 1), create(&mut others, "b", 1));
    assert_eq!(lock_path(&one, &ab), lock_path(&other, &b));
    let held =
        |result: Result<store::Lease, store::StoreError>| assert_eq!(result.unwrap_err().kind(), ErrorKind::Held);
    for swapped in [false, true] {
        let first = if swapped { others.acquire(&b, &run("r")) } else { ones.acquire(&ab, &run("r")) }.unwrap();
        let second = if swapped { ones.acquire(&ab, &run("r")) } else { others.acquire(&b, &run("r")) }.unwrap();
        held(open(&one).acquire(&ab, &run("r")));
        held(open(&other).acquire(&b, &run("r")));
        // Who came second is protected also when the first, which has the lock of all programs, is gone.
        drop(first);
        if swapped {
            held(open(&one).acquire(&ab, &run("r")));
        } else {
            held(open(&other).acquire(&b, &run("r")));
        }
        drop(second);
    }
    // A program that only knows the file is believed.
    let plain = plain_lock(&lock_path(&one, &ab)).unwrap();
    held(ones.acquire(&ab, &run("r")));
    held(others.acquire(&b, &run("r")));
    drop(plain);
}

/// A run that was refused because an agent of an earlier version was at work had changed the journal's mode by then.
#[test]
fn a_refused_run_changes_nothing() {
    for mode in ["DELETE", "WAL"] {
        let sandbox = Sandbox::golden("v1-killed-after-effect-2");
        let path = sandbox.file("state.db");
        raw(&path).query_row(&format!("PRAGMA journal_mode = {mode}"), [], |_| Ok(())).unwrap();
        let task = id("t1");
        let holder = plain_lock(&lock_path(&path, &task)).unwrap();
        let before = sandbox.tree();
        let mut store = SqliteStore::open(&path, Crash::off()).unwrap();
        assert_eq!(store.acquire(&task, &run("r")).unwrap_err().kind(), ErrorKind::Held);
        assert_eq!(sandbox.tree(), before, "{mode}");
        drop(store);
        assert_eq!(sandbox.tree(), before, "{mode}");
        drop(holder);
    }
}

/// `run` of an unknown id once left a lock file behind.
#[test]
fn an_unknown_task_leaves_no_lock_file() {
    let sandbox = Sandbox::new();
    let path = sandbox.file("state.db");
    closed(&path, 1, 0);
    let mut store = open(&path);
    assert_eq!(store.acquire(&id("unknown"), &run("r")).unwrap_err().kind(), ErrorKind::NoTask);
    assert!(!lock_path(&path, &id("unknown")).exists());
}

#[test]
fn a_lock_file_that_cannot_be_opened_says_so() {
    let sandbox = Sandbox::new();
    let path = sandbox.file("state.db");
    let task = closed(&path, 1, 0);
    let lock = lock_path(&path, &task);
    let makings: [fn(&Path); 2] = [|lock| fs::create_dir(lock).unwrap(), fifo];
    for make in makings {
        let _ = fs::remove_file(&lock);
        make(&lock);
        let error = open(&path).acquire(&task, &run("r")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Refused);
        assert!(error.to_string().contains(&*lock.to_string_lossy()), "{error}");
        let _ = fs::remove_dir(&lock);
    }
}

//! A reader that was opened before the file changed.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use fixtures::Sandbox;
use store::audit::audit;
use store::model::StepStatus;
use store::sqlite::SqliteReader;
use store::{ErrorKind, Reader, Store, TaskSession};

use crate::child::Writer;
use crate::support::{begin, closed, create, killed, open, run, run_steps, session, v1_rows, with};

/// Longer than a tick of the clock that dates files.
const TICK: Duration = Duration::from_millis(20);

/// A closed database is read as a file that nobody changes; that view must be given up as soon as somebody does.
#[test]
fn sees_what_a_writer_committed_that_came_and_went() {
    let sandbox = Sandbox::new();
    let path = sandbox.file("state.db");
    let task = closed(&path, 3, 0);
    thread::sleep(TICK);
    let mut reader = SqliteReader::open(&path).unwrap();
    for round in 0..3 {
        assert_eq!(reader.load(&task).unwrap().unwrap().cursor, round);
        let mut store = open(&path);
        run_one(&mut session(&mut store, &task));
        assert_eq!(reader.load(&task).unwrap().unwrap().cursor, round + 1, "while the writer is there");
        drop(store);
        thread::sleep(TICK);
    }
    assert_eq!(audit(&mut reader, None).unwrap(), []);
}

fn run_one(session: &mut TaskSession<'_>) {
    session.apply(&begin()).unwrap();
    run_steps(session, 1);
}

#[test]
fn sees_what_a_writer_committed_that_came_and_went_between_two_looks() {
    let sandbox = Sandbox::new();
    let path = sandbox.file("state.db");
    let task = closed(&path, 3, 0);
    thread::sleep(TICK);
    let mut reader = SqliteReader::open(&path).unwrap();
    assert_eq!(reader.load(&task).unwrap().unwrap().cursor, 0);
    {
        let mut store = open(&path);
        run_one(&mut session(&mut store, &task));
    }
    assert_eq!(reader.load(&task).unwrap().unwrap().cursor, 1);
}

#[test]
fn of_a_killed_database_sees_the_run_that_resumes_it() {
    for index in [true, false] {
        let sandbox = Sandbox::new();
        let path = sandbox.file("state.db");
        let task = killed(&path);
        if !index {
            fs::remove_file(with(&path, "-shm")).unwrap();
        }
        let mut reader = SqliteReader::open(&path).unwrap();
        let mut seen = || reader.load(&task).unwrap().unwrap();
        assert_eq!(seen().running(), Some(1));
        let mut writer = Writer::start(&path);
        writer.tell("begin");
        assert_eq!(seen().current.status, StepStatus::Pending, "index: {index}");
        writer.tell("step");
        assert_eq!(seen().cursor, 2, "index: {index}");
        writer.tell("step");
        writer.finish();
        assert_eq!(seen().cursor, 3, "index: {index}");
        assert_eq!(audit(&mut reader, None).unwrap(), []);
    }
}

#[test]
fn reads_on_when_the_writer_is_killed_and_another_takes_over() {
    let sandbox = Sandbox::new();
    let path = sandbox.file("state.db");
    let task = closed(&path, 5, 0);
    let mut writer = Writer::start(&path);
    writer.tell("begin");
    let mut reader = SqliteReader::open(&path).unwrap();
    let mut seen = || reader.load(&task).unwrap().unwrap();
    for done in 0..4 {
        writer.tell("step");
        writer.tell("start");
        assert_eq!((seen().cursor, seen().running()), (done + 1, Some(done + 1)));
        writer.kill();
        let before = sandbox.tree();
        assert_eq!((seen().cursor, seen().running()), (done + 1, Some(done + 1)));
        assert_eq!(SqliteReader::open(&path).unwrap().load(&task).unwrap(), Some(seen()));
        assert_eq!(sandbox.tree(), before);
        writer = Writer::start(&path);
        writer.tell("begin");
        assert_eq!(seen().running(), None);
    }
    writer.tell("step");
    writer.finish();
    assert_eq!(seen().cursor, 5);
    assert_eq!(audit(&mut reader, None).unwrap(), []);
}

/// The lock is the kernel's, so it is there against other processes, and gone with the one that had it.
#[test]
fn holds_no_lock_that_a_killed_writer_had() {
    let sandbox = Sandbox::new();
    let path = sandbox.file("state.db");
    let task = closed(&path, 1, 0);
    let mut store = open(&path);
    let writer = Writer::start(&path);
    assert_eq!(store.acquire(&task, &run("r")).unwrap_err().kind(), ErrorKind::Held);
    writer.kill();
    store.acquire(&task, &run("r")).unwrap();
}

#[test]
fn of_an_empty_file_sees_the_database_that_is_made_of_it() {
    let sandbox = Sandbox::new();
    sandbox.write("state.db", "");
    let path = sandbox.file("state.db");
    thread::sleep(TICK);
    let before = sandbox.tree();
    let mut reader = SqliteReader::open(&path).unwrap();
    assert!(reader.tasks().unwrap().is_empty());
    assert_eq!(reader.output(&crate::support::id("t"), 0).unwrap(), None);
    assert_eq!(sandbox.tree(), before);
    let mut store = open(&path);
    create(&mut store, "t", 1);
    assert_eq!(reader.tasks().unwrap().len(), 1);
}

/// As when a new program migrates while an old `status` is still open.
#[test]
fn of_an_old_version_goes_on_when_the_file_is_migrated() {
    let sandbox = Sandbox::golden("v1-failed");
    let path = sandbox.file("state.db");
    let conn = crate::support::raw(&path);
    conn.execute_batch("UPDATE tasks SET goal = goal").unwrap();
    let mut reader = SqliteReader::open(&path).unwrap();
    let task = crate::support::id("t1");
    let forgiven = |reader: &mut SqliteReader| reader.load(&task).unwrap().unwrap().current.forgiven;
    assert_eq!(forgiven(&mut reader), 0);
    let rows = v1_rows(&path);
    let mut store = open(&path);
    session(&mut store, &task).apply(&store::machine::Command::Retry).unwrap();
    assert_eq!(forgiven(&mut reader), 3);
    assert_eq!(v1_rows(&path).len(), rows.len() + 1);
    drop(conn);
}

/// An audit of a database at work must not take a commit that falls between two of its queries for a fault.
///
/// The writer goes on until enough audits were made, each while it is at work: on a busy machine
/// it had once done all its steps before the fourth.
#[test]
fn audits_a_run_at_work_without_false_alarms() {
    const AUDITS: usize = 8;
    const STEPS: u32 = 20_000;
    let sandbox = Sandbox::new();
    let path = sandbox.file("state.db");
    let mut store = open(&path);
    let task = create(&mut store, "t", STEPS);
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let reading = scope.spawn(|| {
            // A failed audit must end the writer too.
            let _over = Raised(&over);
            for audit_number in 0..AUDITS {
                let mut reader = SqliteReader::open(&path).unwrap();
                assert_eq!(audit(&mut reader, None).unwrap(), [], "audit {audit_number}");
                assert!(!reader.load(&task).unwrap().unwrap().no_step_left(), "the writer was at work");
            }
        });
        let mut session = session(&mut store, &task);
        session.apply(&begin()).unwrap();
        while !over.load(Ordering::Relaxed) && !session.state().no_step_left() {
            run_steps(&mut session, 1);
        }
        reading.join().unwrap();
    });
}

/// A flag that is raised when this is dropped.
struct Raised<'a>(&'a AtomicBool);

impl Drop for Raised<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

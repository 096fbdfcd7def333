//! Reading leaves no trace, whatever state the files are in.

use std::fs;
use std::path::Path;

use fixtures::Sandbox;
use store::audit::audit;
use store::model::{StepStatus, TaskId};
use store::sqlite::{SqliteReader, SqliteStore};
use store::{Crash, ErrorKind, Reader};

use crate::child::Writer;
use crate::support::{begin, beside, closed, create, killed, open, raw, run_steps, session, with};

/// Reads everything there is and gives the statuses of the steps of `task`.
fn read_all(path: &Path, task: &TaskId) -> Vec<StepStatus> {
    let mut reader = SqliteReader::open(path).unwrap();
    assert_eq!(audit(&mut reader, None).unwrap(), []);
    assert_eq!(audit(&mut reader, Some(task)).unwrap(), []);
    reader.load(task).unwrap().unwrap();
    assert!(reader.task(task).unwrap().is_some());
    reader.steps(task, 0, 100).unwrap().into_iter().map(|step| step.state.status).collect()
}

const KILLED: [StepStatus; 3] = [StepStatus::Done, StepStatus::Running, StepStatus::Pending];

#[test]
fn of_a_closed_database() {
    let sandbox = Sandbox::new();
    let path = sandbox.file("state.db");
    let task = closed(&path, 2, 1);
    let before = sandbox.tree();
    assert_eq!(read_all(&path, &task), [StepStatus::Done, StepStatus::Pending]);
    assert_eq!(sandbox.tree(), before);
}

#[test]
fn of_a_database_whose_process_was_killed() {
    let sandbox = Sandbox::new();
    let path = sandbox.file("state.db");
    let task = killed(&path);
    assert_eq!(beside(&path).len(), 3);
    let before = sandbox.tree();
    assert_eq!(read_all(&path, &task), KILLED);
    assert_eq!(sandbox.tree(), before);
}

#[test]
fn of_a_wal_without_its_index() {
    let sandbox = Sandbox::new();
    let path = sandbox.file("state.db");
    let task = killed(&path);
    fs::remove_file(with(&path, "-shm")).unwrap();
    let before = sandbox.tree();
    assert_eq!(read_all(&path, &task), KILLED);
    assert_eq!(sandbox.tree(), before);
}

#[test]
fn of_an_index_without_its_wal() {
    let sandbox = Sandbox::new();
    let path = sandbox.file("state.db");
    let task = closed(&path, 2, 1);
    sandbox.write("state.db-shm", [0; 32768]);
    let before = sandbox.tree();
    assert_eq!(read_all(&path, &task), [StepStatus::Done, StepStatus::Pending]);
    assert_eq!(sandbox.tree(), before);
}

/// A process that was killed right after it had opened the database leaves a WAL of no bytes.
#[test]
fn of_an_empty_wal() {
    for index in [None, Some(0), Some(32768)] {
        let sandbox = Sandbox::new();
        let path = sandbox.file("state.db");
        let task = closed(&path, 2, 1);
        sandbox.write("state.db-wal", "");
        if let Some(length) = index {
            sandbox.write("state.db-shm", vec![0; length]);
        }
        let before = sandbox.tree();
        assert_eq!(read_all(&path, &task), [StepStatus::Done, StepStatus::Pending], "{index:?}");
        assert_eq!(sandbox.tree(), before, "{index:?}");
    }
}

/// A process that was killed right after it had begun a WAL left the header alone. Every later command then tried for
/// ten seconds and ended with "locking protocol", for good; only random kills had found it.
#[test]
fn of_a_wal_that_is_nothing_but_a_header() {
    for (length, index) in [(32, true), (32, false), (31, true), (4096, true)] {
        let sandbox = Sandbox::new();
        let path = sandbox.file("state.db");
        let task = killed(&path);
        let (head, shm) =
            (fs::read(with(&path, "-wal")).unwrap()[..32].to_vec(), fs::read(with(&path, "-shm")).unwrap());
        let sandbox = Sandbox::new();
        let path = sandbox.file("state.db");
        assert_eq!(closed(&path, 2, 1), task);
        // The longer one is what a power cut can leave: room for frames, and no header.
        let wal = if length > 32 { vec![0; length] } else { head[..length].to_vec() };
        sandbox.write("state.db-wal", wal);
        if index {
            sandbox.write("state.db-shm", shm);
        }
        let before = sandbox.tree();
        let start = std::time::Instant::now();
        assert_eq!(read_all(&path, &task), [StepStatus::Done, StepStatus::Pending], "{length} {index}");
        assert!(start.elapsed().as_secs() < 5, "{length} {index}");
        assert_eq!(sandbox.tree(), before, "{length} {index}");
        drop(open(&path));
    }
}

/// A kill within a write leaves half a frame at the end of the WAL; it was never committed.
#[test]
fn of_a_torn_wal() {
    let sandbox = Sandbox::new();
    let path = sandbox.file("state.db");
    let task = killed(&path);
    let mut wal = fs::read(with(&path, "-wal")).unwrap();
    wal.extend_from_within(32..2000);
    sandbox.write("state.db-wal", wal);
    let before = sandbox.tree();
    assert_eq!(read_all(&path, &task), KILLED);
    assert_eq!(sandbox.tree(), before);
    fs::remove_file(with(&path, "-shm")).unwrap();
    assert_eq!(read_all(&path, &task), KILLED);
}

#[test]
fn beside_a_writer_whose_commits_it_sees() {
    let sandbox = Sandbox::new();
    let path = sandbox.file("state.db");
    let task = closed(&path, 3, 0);
    let mut writer = Writer::start(&path);
    writer.tell("begin");
    let mut reader = SqliteReader::open(&path).unwrap();
    for step in 0..3 {
        writer.tell("start");
        let before = sandbox.tree();
        assert_eq!(reader.load(&task).unwrap().unwrap().running(), Some(step), "a reader that was there");
        assert_eq!(read_all(&path, &task)[step as usize], StepStatus::Running, "one that came");
        assert_eq!(sandbox.tree(), before);
        // The writer gives the step up, as a killed one does, and runs it anew.
        writer.tell("begin");
        writer.tell("step");
    }
    assert!(reader.load(&task).unwrap().unwrap().no_step_left());
    writer.finish();
}

#[test]
fn beside_a_writer_that_goes_and_another_that_comes() {
    let sandbox = Sandbox::new();
    let path = sandbox.file("state.db");
    let mut store = open(&path);
    let task = create(&mut store, "t", 3);
    let mut reader = SqliteReader::open(&path).unwrap();
    assert_eq!(reader.load(&task).unwrap().unwrap().cursor, 0);
    for round in 1..=3 {
        let mut session = session(&mut store, &task);
        session.apply(&begin()).unwrap();
        run_steps(&mut session, 1);
        drop(session);
        drop(store);
        assert_eq!(reader.load(&task).unwrap().unwrap().cursor, round);
        store = open(&path);
    }
}

#[test]
fn of_a_file_that_may_not_be_written() {
    use std::os::unix::fs::PermissionsExt as _;
    let sandbox = Sandbox::new();
    let path = sandbox.file("state.db");
    let task = killed(&path);
    for file in beside(&path) {
        fs::set_permissions(file, fs::Permissions::from_mode(0o444)).unwrap();
    }
    assert_eq!(read_all(&path, &task), KILLED);
}

/// The files as a power cut leaves them in a transaction of a database that has no WAL yet: a rollback journal in
/// force, and pages that are half new.
fn cut_without_wal(path: &Path) {
    let live = Sandbox::new();
    let from = live.file("state.db");
    if path.exists() {
        fs::copy(path, &from).unwrap();
    }
    let conn = raw(&from);
    conn.execute_batch(
        "PRAGMA journal_mode = DELETE; PRAGMA cache_size = 1;
         BEGIN IMMEDIATE; CREATE TABLE more(x);
         INSERT INTO more WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100)
             SELECT hex(zeroblob(1000)) FROM n;",
    )
    .unwrap();
    for suffix in ["", "-journal"] {
        fs::copy(with(&from, suffix), with(path, suffix)).unwrap();
    }
}

#[test]
fn of_a_database_with_a_rollback_journal() {
    let sandbox = Sandbox::new();
    let path = sandbox.file("state.db");
    let task = closed(&path, 2, 1);
    cut_without_wal(&path);
    let before = sandbox.tree();
    assert_eq!(read_all(&path, &task), [StepStatus::Done, StepStatus::Pending]);
    assert_eq!(sandbox.tree(), before);

    let mut store = open(&path);
    run_steps(&mut session(&mut store, &task), 1);
    drop(store);
    assert_eq!(read_all(&path, &task), [StepStatus::Done, StepStatus::Done]);
    assert_eq!(beside(&path).len(), 1, "the journal is gone");
}

/// A power cut while the database was being made left a first page of which only the end had arrived, and the journal
/// that undoes it. Its header is zeros, so every command refused it as no database, and the task could never be
/// created.
#[test]
fn of_a_database_whose_first_page_is_torn() {
    let sandbox = Sandbox::new();
    let path = sandbox.file("state.db");
    cut_without_wal(&path);
    let mut pages = fs::read(&path).unwrap();
    pages[..3584].fill(0);
    for length in [pages.len(), 4096, 50] {
        sandbox.write("state.db", &pages[..length]);
        let before = sandbox.tree();
        assert!(SqliteReader::open(&path).unwrap().tasks().unwrap().is_empty());
        assert_eq!(sandbox.tree(), before);
    }
    let task = create(&mut open(&path), "t", 1);
    assert_eq!(read_all(&path, &task), [StepStatus::Pending]);

    // Without a journal that is in force, the same file is nobody's.
    sandbox.write("state.db", &pages[..4096]);
    for journal in [vec![], vec![0; 4096]] {
        sandbox.write("state.db-journal", journal);
        assert_eq!(SqliteReader::open(&path).err().unwrap().kind(), ErrorKind::Foreign);
        assert_eq!(SqliteStore::open_or_create(&path, Crash::off()).err().unwrap().kind(), ErrorKind::Foreign);
    }
}

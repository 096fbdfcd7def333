//! A WAL is taken only by the database that it is of.

use std::fs;
use std::path::Path;

use fixtures::Sandbox;
use rstest::rstest;
use store::sqlite::{SqliteReader, SqliteStore, backup};
use store::{Crash, ErrorKind, Reader};

use crate::child::Writer;
use crate::support::{assert_refused, closed, create, id, open, raw, with};

/// Runs the task `t` for two commits, and kills it: they are in the WAL alone.
fn killed_at_work(path: &Path) {
    let mut writer = Writer::start(path);
    writer.tell("begin");
    writer.tell("start");
    writer.kill();
    assert!(fs::metadata(with(path, "-wal")).unwrap().len() > 32);
}

/// A restore by `cp` was undone without a word by the WAL that still lay there; or the copy was damaged by it; or a
/// task that was not in the copy was "done".
#[rstest]
fn a_database_that_is_put_in_the_place_of_another_does_not_get_its_wal(
    #[values("a backup", "a copy", "a copy of long ago", "another database")] what: &str,
    #[values(true, false)] index: bool,
) {
    let sandbox = Sandbox::new();
    let (path, copy) = (sandbox.file("state.db"), sandbox.file("older.db"));
    closed(&path, 3, 0);
    match what {
        "a backup" => backup(&path, &copy).unwrap(),
        "a copy" => drop(fs::copy(&path, &copy).unwrap()),
        "a copy of long ago" => {
            fs::copy(&path, &copy).unwrap();
            for _ in 0..2 {
                killed_at_work(&path);
            }
            drop(open(&path));
        }
        _ => drop(closed(&copy, 5, 5)),
    }
    killed_at_work(&path);
    fs::copy(&copy, &path).unwrap();
    if !index {
        fs::remove_file(with(&path, "-shm")).unwrap();
    }
    assert_refused(&sandbox, &path, ErrorKind::Foreign);
    let error = SqliteReader::open(&path).err().unwrap().to_string();
    assert!(error.contains("state.db-wal is not of the database"), "{error}");

    // Who moves the WAL away has what was put there.
    fs::rename(with(&path, "-wal"), sandbox.file("away")).unwrap();
    assert!(SqliteReader::open(&path).unwrap().load(&id("t")).unwrap().is_some());
    drop(open(&path));
}

/// What people do with the files of a database that nobody is at work on, and what the next look must not complain of.
#[rstest]
fn files_that_belong_together_are_taken(#[values("-shm", "-id", "")] without: &str, #[values(1, 3)] runs: u32) {
    let sandbox = Sandbox::new();
    let (path, copy) = (sandbox.file("state.db"), sandbox.file("older.db"));
    closed(&path, 3, 0);
    for _ in 0..runs {
        killed_at_work(&path);
        for suffix in ["", "-wal", "-shm", "-id"] {
            fs::copy(with(&path, suffix), with(&copy, suffix)).unwrap();
        }
        if !without.is_empty() {
            fs::remove_file(with(&copy, without)).unwrap();
        }
        let state = SqliteReader::open(&copy).unwrap().load(&id("t")).unwrap().unwrap();
        assert_eq!(state.running(), Some(0));
        drop(open(&copy));
    }
}

/// `sqlite3` knows nothing of identities: a WAL that it leaves is taken, unless the file was put there in the meantime.
#[test]
fn a_wal_of_another_program_has_a_way_out() {
    for replaced in [false, true] {
        let sandbox = Sandbox::new();
        let path = sandbox.file("state.db");
        closed(&path, 3, 0);
        if replaced {
            let other = Sandbox::new();
            closed(&other.file("other.db"), 3, 0);
            fs::copy(other.file("other.db"), &path).unwrap();
        }
        // As it is while such a program is at work, and when it was killed.
        let writer = raw(&path);
        writer.execute_batch("UPDATE tasks SET goal = 'by hand'").unwrap();
        let killed = Sandbox::new();
        let path = killed.file("state.db");
        for suffix in ["", "-wal", "-id"] {
            fs::copy(with(&sandbox.file("state.db"), suffix), with(&path, suffix)).unwrap();
        }
        if replaced {
            assert_refused(&killed, &path, ErrorKind::Foreign);
            fs::remove_file(with(&path, "-id")).unwrap();
        }
        assert_eq!(SqliteReader::open(&path).unwrap().tasks().unwrap().remove(0).unwrap().goal, "by hand");
        drop(open(&path));
    }
}

/// The database was moved away, and its WAL stayed. A `create` at the old name deleted it, with all that had been
/// committed last.
#[test]
fn a_wal_without_its_database_is_never_deleted() {
    for emptied in [false, true] {
        let sandbox = Sandbox::new();
        let (path, moved) = (sandbox.file("state.db"), sandbox.file("moved.db"));
        closed(&path, 3, 0);
        killed_at_work(&path);
        fs::rename(&path, &moved).unwrap();
        if emptied {
            sandbox.write("state.db", "");
        }
        assert_refused(&sandbox, &path, ErrorKind::Foreign);
        fs::rename(&moved, &path).unwrap();
        let state = SqliteReader::open(&path).unwrap().load(&id("t")).unwrap().unwrap();
        assert_eq!(state.running(), Some(0));
    }
}

/// What an earlier database left says nothing of one that is made anew, wherever its making is cut off.
#[test]
fn a_database_that_is_made_anew_is_not_taken_for_the_former() {
    let sandbox = Sandbox::new();
    let path = sandbox.file("state.db");
    closed(&path, 3, 0);
    fs::remove_file(&path).unwrap();
    let left = fs::read(with(&path, "-id")).unwrap();
    // Cut off within its first transaction: a rollback journal is in force.
    let mut store = open(&path);
    create(&mut store, "t", 3);
    drop(store);
    assert_ne!(fs::read(with(&path, "-id")).unwrap(), left);
    killed_at_work(&path);
    SqliteStore::open(&path, Crash::off()).unwrap();
}

/// A torn file, or one of somebody else's, says nothing.
#[test]
fn a_file_that_names_nothing_claims_nothing() {
    let sandbox = Sandbox::new();
    let path = sandbox.file("state.db");
    closed(&path, 3, 0);
    killed_at_work(&path);
    let named = fs::read(with(&path, "-id")).unwrap();
    assert_eq!(named.len(), 36);
    let mut other = named.clone();
    other[3] ^= 1;
    for content in [b"".to_vec(), named[..20].to_vec(), b"hello\n".to_vec(), vec![0xff; 36], other] {
        sandbox.write("state.db-id", content);
        SqliteReader::open(&path).unwrap();
    }
    // Sound, and of another database: this one is believed.
    let live = Sandbox::new();
    closed(&live.file("other.db"), 1, 1);
    fs::copy(live.file("other.db-id"), with(&path, "-id")).unwrap();
    assert_refused(&sandbox, &path, ErrorKind::Foreign);
}

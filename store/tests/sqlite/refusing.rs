//! Files that are refused, and left byte for byte as they are.

use std::fs;

use fixtures::Sandbox;
use rstest::rstest;
use store::audit::audit;
use store::sqlite::{SqliteReader, SqliteStore, VERSION, backup};
use store::{Crash, ErrorKind, StoreError};

use crate::support::{assert_refused, closed, fifo, killed, raw};

#[rstest]
#[case::next(i64::from(VERSION) + 1)]
#[case::far(1_000_000)]
#[case::negative(-1)]
fn a_database_of_a_newer_version_is_refused(#[case] version: i64) {
    let sandbox = Sandbox::new();
    let path = sandbox.file("state.db");
    closed(&path, 2, 1);
    raw(&path).pragma_update(None, "user_version", version).unwrap();
    assert_refused(&sandbox, &path, ErrorKind::Newer);
}

#[test]
fn a_database_of_a_newer_version_whose_process_was_killed_is_refused() {
    let sandbox = Sandbox::new();
    let path = sandbox.file("state.db");
    killed(&path);
    let live = Sandbox::new();
    let from = live.file("state.db");
    closed(&from, 2, 1);
    let conn = raw(&from);
    conn.pragma_update(None, "user_version", VERSION + 1).unwrap();
    for suffix in ["", "-wal", "-shm"] {
        fs::copy(crate::support::with(&from, suffix), crate::support::with(&path, suffix)).unwrap();
    }
    assert_refused(&sandbox, &path, ErrorKind::Newer);
}

/// SQLite takes a file of one byte for an empty one; a task was created over it.
#[rstest]
fn a_file_shorter_than_any_database_is_refused(#[values(1, 2, 99)] length: usize) {
    let sandbox = Sandbox::new();
    sandbox.write("state.db", "x".repeat(length));
    assert_refused(&sandbox, &sandbox.file("state.db"), ErrorKind::Foreign);
}

#[rstest]
#[case::other_tables("CREATE TABLE messages(id); INSERT INTO messages VALUES (1);")]
#[case::some_of_our_names("CREATE TABLE tasks(id); CREATE TABLE events(id); CREATE TABLE users(id);")]
#[case::a_version_and_no_tables("PRAGMA user_version = 2;")]
#[case::our_names_with_other_columns("CREATE TABLE tasks(id, title); CREATE TABLE steps(id); CREATE TABLE events(at);")]
#[case::our_names_and_version_with_other_columns(
    "CREATE TABLE tasks(id, title); CREATE TABLE steps(id); CREATE TABLE events(at); PRAGMA user_version = 2;"
)]
fn a_database_of_another_program_is_refused(#[case] sql: &str, #[values("DELETE", "WAL")] mode: &str) {
    let sandbox = Sandbox::new();
    let path = sandbox.file("state.db");
    raw(&path).execute_batch(&format!("PRAGMA journal_mode = {mode}; {sql}")).unwrap();
    assert_refused(&sandbox, &path, ErrorKind::Foreign);
}

#[rstest]
#[case::text(b"Dear diary,\n".repeat(1000))]
#[case::two_bytes(b"SQ".to_vec())]
#[case::zeros(vec![0; 8192])]
#[case::an_image(b"\x89PNG\r\n\x1a\n".repeat(600))]
fn a_file_that_is_no_database_is_refused(#[case] content: Vec<u8>) {
    let sandbox = Sandbox::new();
    sandbox.write("state.db", content);
    assert_refused(&sandbox, &sandbox.file("state.db"), ErrorKind::Foreign);
}

#[test]
fn a_folder_is_no_database() {
    let sandbox = Sandbox::new();
    fs::create_dir(sandbox.file("state.db")).unwrap();
    assert_refused(&sandbox, &sandbox.file("state.db"), ErrorKind::Foreign);
}

/// Opening a pipe waits for somebody at its other end: every command did, for ever.
#[rstest]
fn what_is_not_a_file_is_refused_and_never_waited_for(
    #[values("state.db", "state.db-wal", "state.db-shm", "state.db-journal")] name: &str,
    #[values("a FIFO", "a folder", "a link", "a socket")] kind: &str,
) {
    let sandbox = Sandbox::new();
    let path = sandbox.file("state.db");
    closed(&path, 1, 1);
    let place = sandbox.file(name);
    let _ = fs::remove_file(&place);
    match kind {
        "a FIFO" => fifo(&place),
        "a folder" => fs::create_dir(&place).unwrap(),
        // A link to a database is followed; SQLite does not follow one to its other files.
        "a link" if name == "state.db" => return,
        "a link" => std::os::unix::fs::symlink("elsewhere", &place).unwrap(),
        _ => drop(std::os::unix::net::UnixListener::bind(&place).unwrap()),
    }
    assert_refused(&sandbox, &path, ErrorKind::Foreign);
    assert!(SqliteReader::open(&path).err().unwrap().to_string().contains(&format!("{name} is {kind}, ")));
}

/// A database had two names. A run under each took a lock of its own and wrote a WAL of its own, both tasks were done,
/// and then the file was damaged.
#[test]
fn a_database_of_two_names_is_refused_under_each() {
    let sandbox = Sandbox::new();
    let (path, other) = (sandbox.file("state.db"), sandbox.file("other.db"));
    closed(&path, 1, 1);
    fs::hard_link(&path, &other).unwrap();
    for name in [&path, &other] {
        assert_refused(&sandbox, name, ErrorKind::Foreign);
        assert!(SqliteReader::open(name).err().unwrap().to_string().contains("2 names"));
    }
    fs::remove_file(&other).unwrap();
    SqliteStore::open(&path, Crash::off()).unwrap();
}

/// What the audit finds, as an error.
fn found(reader: &mut SqliteReader) -> Result<(), StoreError> {
    match audit(reader, None)?.pop() {
        Some(finding) => Err(StoreError::new(ErrorKind::Corrupt, finding.what)),
        None => Ok(()),
    }
}

/// A copy that was broken off: at every page boundary, and within pages.
#[test]
fn a_truncated_database_is_refused() {
    let sandbox = Sandbox::new();
    let path = sandbox.file("state.db");
    closed(&path, 200, 20);
    let whole = fs::read(&path).unwrap();
    assert!(whole.len() >= 5 * 4096, "{} bytes are too few for this test", whole.len());
    for pages in 1..whole.len() / 4096 {
        for length in [pages * 4096, pages * 4096 + 100, pages * 4096 - 1] {
            sandbox.write("state.db", &whole[..length]);
            let before = sandbox.tree();
            for error in [
                SqliteStore::open(&path, Crash::off()).err(),
                SqliteStore::open_or_create(&path, Crash::off()).err(),
                backup(&path, &sandbox.file("copy.db")).err(),
                // What is still there may be read, but not without being told of the rest.
                SqliteReader::open(&path).and_then(|mut reader| found(&mut reader)).err(),
            ] {
                assert_eq!(error.map(|error| error.kind()), Some(ErrorKind::Corrupt), "{length}");
            }
            assert_eq!(sandbox.tree(), before);
        }
    }
    sandbox.write("state.db", &whole[..15]);
    assert_refused(&sandbox, &path, ErrorKind::Foreign);
    // And the whole file is taken: what refuses is the length.
    sandbox.write("state.db", &whole);
    SqliteStore::open(&path, Crash::off()).unwrap();
}

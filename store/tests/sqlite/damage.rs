//! Damaged pages: found, named, and left as they are.

use std::fs;
use std::path::Path;

use fixtures::Sandbox;
use store::audit::audit;
use store::sqlite::{SqliteReader, SqliteStore};
use store::{Crash, ErrorKind, Store, StoreError};

use crate::support::{beside, closed, id, killed, raw, run, v1_rows};

const PAGE: usize = 4096;

/// What reading makes of the file: the errors of opening and of the audit, and the audit's findings, a line each.
fn complaints(path: &Path) -> Vec<String> {
    let findings = SqliteReader::open(path).and_then(|mut reader| audit(&mut reader, None));
    match findings {
        Ok(findings) => findings.into_iter().map(|finding| finding.what).collect(),
        Err(error) => vec![expect_damage(&error)],
    }
}

fn expect_damage(error: &StoreError) -> String {
    assert!(matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Foreign), "{:?}: {error}", error.kind());
    let text = error.to_string();
    assert!(!text.contains('\n'), "{text}");
    text
}

/// Opening for writing: true where it is refused.
fn refused_for_writing(path: &Path) -> bool {
    match SqliteStore::open(path, Crash::off()) {
        Ok(_) => false,
        Err(error) => !expect_damage(&error).is_empty(),
    }
}

#[test]
fn a_page_whose_head_is_overwritten_is_found_and_the_file_left_alone() {
    let sandbox = Sandbox::new();
    let path = sandbox.file("state.db");
    closed(&path, 300, 40);
    let whole = fs::read(&path).unwrap();
    assert!(whole.len() / PAGE >= 8, "{} pages are too few for this test", whole.len() / PAGE);
    for page in 0..whole.len() / PAGE {
        let mut bytes = whole.clone();
        // The first page begins with the file's own header.
        let at = page * PAGE + if page == 0 { 100 } else { 0 };
        bytes[at..at + 16].fill(0xff);
        sandbox.write("state.db", &bytes);
        let before = sandbox.tree();
        assert_ne!(complaints(&path), Vec::<String>::new(), "page {page}");
        assert_eq!(sandbox.tree(), before, "page {page}: reading");
        assert!(refused_for_writing(&path), "page {page}");
        assert_eq!(sandbox.tree(), before, "page {page}: writing");
    }
    sandbox.write("state.db", &whole);
    assert_eq!(complaints(&path), Vec::<String>::new());
    assert!(!refused_for_writing(&path));
}

/// In the middle of a page are rows, or nothing. Not all of that is checked by SQLite, so a damage that it does not see
/// must be one that the audit sees, or one of no bytes in use.
#[test]
fn a_page_that_is_overwritten_in_its_middle_is_found_or_holds_nothing_there() {
    let sandbox = Sandbox::new();
    let path = sandbox.file("state.db");
    closed(&path, 300, 40);
    let whole = fs::read(&path).unwrap();
    let rows = v1_rows(&path);
    let mut found = 0;
    for page in 0..whole.len() / PAGE {
        let mut bytes = whole.clone();
        let middle = page * PAGE + PAGE / 2;
        bytes[middle..middle + 64].fill(0xff);
        sandbox.write("state.db", &bytes);
        let before = sandbox.tree();
        let complaints = complaints(&path);
        assert_eq!(sandbox.tree(), before, "page {page}: reading");
        if complaints.is_empty() {
            assert_eq!(v1_rows(&path), rows, "page {page}: nobody complained");
        } else {
            found += 1;
        }
        sandbox.write("state.db", &bytes);
        if refused_for_writing(&path) {
            assert_eq!(sandbox.tree(), before, "page {page}: writing");
            assert_ne!(complaints, Vec::<String>::new(), "page {page}: reading is as strict as writing");
        }
        for file in beside(&path) {
            fs::remove_file(file).unwrap();
        }
    }
    assert!(found >= 5, "of {} pages only {found} were noticed", whole.len() / PAGE);
}

/// Closing a connection moves the WAL into the file, so the check must come before a connection that may write.
#[test]
fn a_damaged_page_beside_the_wal_of_a_killed_process_leaves_both_files_alone() {
    let sandbox = Sandbox::new();
    let path = sandbox.file("state.db");
    killed(&path);
    // Folded in once, so that the file has pages to damage, then killed again.
    raw(&path).query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    let conn = raw(&path);
    conn.execute_batch("UPDATE tasks SET goal = 'in the WAL'").unwrap();
    let copy = Sandbox::new();
    let target = copy.file("state.db");
    for from in beside(&path) {
        fs::copy(&from, copy.file(from.file_name().unwrap())).unwrap();
    }
    drop(conn);
    let mut bytes = fs::read(&target).unwrap();
    let last = bytes.len() - PAGE;
    bytes[last..last + 16].fill(0xff);
    copy.write("state.db", &bytes);

    let before = copy.tree();
    assert!(before.contains_key("state.db-wal"));
    assert_ne!(complaints(&target), Vec::<String>::new());
    assert!(refused_for_writing(&target));
    assert_eq!(copy.tree(), before);
}

#[test]
fn a_damaged_page_in_a_file_in_rollback_mode_leaves_its_mode_alone() {
    let sandbox = Sandbox::new();
    let path = sandbox.file("state.db");
    closed(&path, 20, 20);
    raw(&path).query_row("PRAGMA journal_mode = DELETE", [], |_| Ok(())).unwrap();
    let mut bytes = fs::read(&path).unwrap();
    let last = bytes.len() - PAGE;
    bytes[last..last + 16].fill(0xff);
    sandbox.write("state.db", &bytes);
    let before = sandbox.tree();
    assert!(refused_for_writing(&path));
    assert_eq!(sandbox.tree(), before);
}

#[test]
fn a_stored_value_that_does_not_decode_is_a_clear_error() {
    for (column, value, says) in [
        ("output", "'{\"value\":'", "its output is not JSON"),
        ("output", "'[1]'", "its output is a list, not an object"),
        ("output", "NULL", "its output is missing"),
        ("output", "x'ff00'", "damaged or out of order"),
    ] {
        let sandbox = Sandbox::new();
        let path = sandbox.file("state.db");
        let task = closed(&path, 2, 1);
        raw(&path).execute_batch(&format!("UPDATE steps SET {column} = {value} WHERE idx = 0")).unwrap();
        let before = sandbox.tree();
        let mut reader = SqliteReader::open(&path).unwrap();
        let error = store::Reader::output(&mut reader, &task, 0).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt);
        assert!(error.to_string().contains(says), "{error}");
        assert_eq!(sandbox.tree(), before);
    }
}

#[test]
fn a_state_that_does_not_decode_starts_no_run() {
    for sql in [
        "UPDATE steps SET status = 'dancing' WHERE idx = 1",
        "UPDATE steps SET attempts = -1 WHERE idx = 1",
        "UPDATE steps SET attempts = 'many' WHERE idx = 1",
        "UPDATE tasks SET status = 'Running'",
        "DELETE FROM steps WHERE idx = 1",
    ] {
        let sandbox = Sandbox::new();
        let path = sandbox.file("state.db");
        closed(&path, 3, 1);
        raw(&path).execute_batch(sql).unwrap();
        let rows = v1_rows(&path);
        let mut store = SqliteStore::open(&path, Crash::off()).unwrap();
        let error = store::TaskSession::open(&mut store, &store::SystemClock, &id("t"), &run("r")).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{sql}");
        // Nobody is locked out by the failure.
        drop(store.acquire(&id("t"), &run("r")).unwrap());
        drop(store);
        assert_eq!(v1_rows(&path), rows, "{sql}");
    }
}

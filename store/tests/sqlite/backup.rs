//! Copies of databases in use.

use std::collections::BTreeSet;
use std::fs;

use fixtures::Sandbox;
use store::audit::audit;
use store::sqlite::{SqliteReader, SqliteStore, backup};
use store::{Crash, ErrorKind, Reader};

use crate::support::{begin, beside, closed, create, killed, open, raw, run_steps, session, v1_rows, with};

fn names(sandbox: &Sandbox) -> BTreeSet<String> {
    sandbox.tree().into_keys().collect()
}

#[test]
fn a_backup_holds_what_is_still_in_the_wal_of_a_live_database() {
    let sandbox = Sandbox::new();
    let (path, copy) = (sandbox.file("state.db"), sandbox.file("copy.db"));
    let mut store = open(&path);
    let task = create(&mut store, "t", 3);
    let mut session = session(&mut store, &task);
    session.apply(&begin()).unwrap();
    run_steps(&mut session, 2);
    assert!(fs::metadata(with(&path, "-wal")).unwrap().len() > 0);
    let before = names(&sandbox);

    backup(&path, &copy).unwrap();
    assert_eq!(names(&sandbox).difference(&before).collect::<Vec<_>>(), ["copy.db"]);
    // The writer was not disturbed, and what it does now is not in the copy.
    run_steps(&mut session, 1);
    let mut reader = SqliteReader::open(&copy).unwrap();
    assert_eq!(reader.load(&task).unwrap().unwrap().cursor, 2);
    assert_eq!(audit(&mut reader, None).unwrap(), []);
    drop(reader);
    // The plain file alone has lost it: that is why there is a backup.
    fs::copy(&path, sandbox.file("plain.db")).unwrap();
    let lost = SqliteReader::open(&sandbox.file("plain.db")).and_then(|mut plain| plain.load(&task));
    assert!(!matches!(lost, Ok(Some(state)) if state.cursor == 2));
    drop(SqliteStore::open(&copy, Crash::off()).unwrap());
}

#[test]
fn a_backup_of_what_a_killed_process_left_is_whole_and_leaves_the_files_alone() {
    let sandbox = Sandbox::new();
    let (path, copy) = (sandbox.file("state.db"), sandbox.file("copy.db"));
    let task = killed(&path);
    let mut before = sandbox.tree();
    backup(&path, &copy).unwrap();
    let mut after = sandbox.tree();
    assert!(after.remove("copy.db").is_some());
    assert_eq!(after, before);

    let mut store = SqliteStore::open(&copy, Crash::off()).unwrap();
    assert_eq!(store.load(&task).unwrap().unwrap().running(), Some(1));
    drop(store);
    assert_eq!(beside(&copy).len(), 1);
    before.clear();
}

#[test]
fn a_backup_replaces_nothing() {
    let sandbox = Sandbox::new();
    let path = sandbox.file("state.db");
    closed(&path, 1, 1);
    sandbox.write("file", "precious");
    fs::create_dir(sandbox.file("folder")).unwrap();
    std::os::unix::fs::symlink("nowhere", sandbox.file("dangling")).unwrap();
    let before = sandbox.tree();
    for name in ["file", "folder", "dangling", "state.db"] {
        assert_eq!(backup(&path, &sandbox.file(name)).unwrap_err().kind(), ErrorKind::Exists, "{name}");
        assert_eq!(sandbox.tree(), before, "{name}");
    }
}

#[test]
fn a_backup_that_fails_leaves_nothing() {
    let sandbox = Sandbox::new();
    let path = sandbox.file("state.db");
    closed(&path, 1, 1);
    let before = sandbox.tree();
    assert_eq!(backup(&path, &sandbox.file("none/copy.db")).unwrap_err().kind(), ErrorKind::Refused);
    assert_eq!(backup(&sandbox.file("no.db"), &sandbox.file("copy.db")).unwrap_err().kind(), ErrorKind::Missing);
    assert_eq!(sandbox.tree(), before);
}

#[test]
fn a_backup_is_one_whole_state_whatever_is_written_meanwhile() {
    let sandbox = Sandbox::new();
    let path = sandbox.file("state.db");
    let mut store = open(&path);
    let task = create(&mut store, "t", 300);
    std::thread::scope(|scope| {
        let copying = scope.spawn(|| {
            for number in 0..10 {
                let copy = sandbox.file(format!("copy-{number}.db"));
                backup(&path, &copy).unwrap();
                let found = audit(&mut SqliteReader::open(&copy).unwrap(), None).unwrap();
                assert_eq!(found, [], "copy {number}");
            }
        });
        let mut session = session(&mut store, &task);
        session.apply(&begin()).unwrap();
        run_steps(&mut session, 300);
        copying.join().unwrap();
    });
}

#[test]
fn a_backup_keeps_the_version_and_every_row() {
    let sandbox = Sandbox::golden("v1-killed-after-effect-2");
    let (path, copy) = (sandbox.file("state.db"), sandbox.file("copy.db"));
    backup(&path, &copy).unwrap();
    assert_eq!(v1_rows(&copy), v1_rows(&path));
    assert_eq!(raw(&copy).query_row("PRAGMA user_version", [], |row| row.get::<_, i64>(0)).unwrap(), 0);
}

/// Each killed backup left a whole copy in a hidden folder, for good.
#[test]
fn a_backup_sweeps_what_killed_ones_left_and_nothing_else() {
    let sandbox = Sandbox::new();
    let path = sandbox.file("state.db");
    closed(&path, 2, 1);
    for folder in [".backup-dead.tmp", ".backup-alive.tmp", ".backup-unknown.tmp", ".backup-mine"] {
        sandbox.write(format!("{folder}/copy.db"), "half a copy");
    }
    for folder in [".backup-dead.tmp", ".backup-alive.tmp", ".backup-mine"] {
        sandbox.write(format!("{folder}/lock"), "");
    }
    let alive = std::fs::File::open(sandbox.file(".backup-alive.tmp/lock")).unwrap();
    alive.lock().unwrap();
    backup(&path, &sandbox.file("copy.db")).unwrap();
    let left = names(&sandbox);
    assert!(!left.contains(".backup-dead.tmp"), "{left:?}");
    assert!(
        [".backup-alive.tmp", ".backup-unknown.tmp", ".backup-mine"].iter().all(|name| left.contains(*name)),
        "{left:?}"
    );
}

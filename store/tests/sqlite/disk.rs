//! A disk that takes no more bytes. The real thing, by the limit on the size of files: in a process of its own, since
//! the limit is the process's.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command as Process;

use fixtures::Sandbox;
use store::audit::audit;
use store::sqlite::{SqliteReader, SqliteStore};
use store::{Crash, ErrorKind, Reader, SessionError};

use crate::support::{begin, closed, id, run_steps, session, start};

const CHILD: &str = "STORE_TEST_FULL_DISK";

/// Not a test by itself: what the child process does, when it is told which database to fill.
#[test]
fn child_that_fills_the_disk() {
    let Some(path) = env::var_os(CHILD).map(PathBuf::from) else { return };
    let mut store = SqliteStore::open(&path, Crash::off()).unwrap();
    let mut session = session(&mut store, &id("t"));
    session.apply(&begin()).unwrap();
    for step in 0.. {
        if let Err(error) = session.apply(&start(step)) {
            let SessionError::Store(error) = error else { panic!("{error}") };
            assert_eq!(error.kind(), ErrorKind::Full, "{error}");
            assert_eq!(session.state().cursor, step, "the session stays where it was");
            println!("failed at {step}");
            return;
        }
        if let Err(error) = session.finish(step, "echo", serde_json::Map::new()) {
            let SessionError::Store(error) = error else { panic!("{error}") };
            assert_eq!(error.kind(), ErrorKind::Full, "{error}");
            println!("failed at {step}");
            return;
        }
    }
}

fn fill(path: &Path) -> String {
    // The limit is in blocks of 512 bytes; without the trap the signal would end the child.
    let script = r#"trap '' XFSZ; ulimit -f 256; exec "$0" "$@""#;
    let output = Process::new("sh")
        .args(["-c", script])
        .arg(env::current_exe().unwrap())
        .args(["--exact", "disk::child_that_fills_the_disk", "--nocapture"])
        .env(CHILD, path)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    text
}

#[test]
fn a_failed_write_loses_what_was_not_committed_and_nothing_else() {
    let sandbox = Sandbox::new();
    let path = sandbox.file("state.db");
    let task = closed(&path, 200, 0);
    let said = fill(&path);
    let failed: u32 = said.split("failed at ").nth(1).unwrap().split_whitespace().next().unwrap().parse().unwrap();
    assert!(failed > 3, "{said}");

    // A write that was refused leaves no doubt about what it has not done, so the connection is closed as ever.
    let mut reader = SqliteReader::open(&path).unwrap();
    assert_eq!(reader.load(&task).unwrap().unwrap().cursor, failed);
    assert_eq!(audit(&mut reader, None).unwrap(), []);
    drop(reader);
    let mut store = SqliteStore::open(&path, Crash::off()).unwrap();
    let mut session = session(&mut store, &task);
    session.apply(&begin()).unwrap();
    run_steps(&mut session, 200 - failed);
    drop(session);
    assert_eq!(audit(&mut store, None).unwrap(), []);
}

//! A copy of a database that is in use. Copying the file alone loses what is in the WAL.

use std::fs;

use nix::sys::signal::Signal;

use crate::journal::assert_sound;
use crate::lab::Lab;

#[test]
fn a_backup_of_a_running_task_is_whole_and_can_be_resumed() {
    let lab = Lab::with_task();
    let call = lab.call(["run", "t1"]).env("AGENT_STEP_DELAY", "60").env("AGENT_CRASH_RECORD", "recording");
    let run = call.start();
    lab.wait_for("recording", "before_effect:0");
    lab.agent(["backup", "copy.db"]).exits(0);
    assert_eq!(
        lab.agent(["--db", "copy.db", "export", "t1"]).exits(0).stdout,
        lab.agent(["export", "t1"]).exits(0).stdout
    );
    run.signal(Signal::SIGTERM);
    run.ended().exits(143);
    let other = Lab::new();
    fs::copy(lab.path("copy.db"), other.path("state.db")).unwrap();
    other.agent(["run", "t1"]).exits(0);
    assert_sound(&other, "t1", None);
}

#[test]
fn a_backup_has_what_the_wal_of_a_killed_run_has_and_changes_nothing() {
    let lab = Lab::killed_at("after_effect:2");
    let mut before = lab.tree();
    lab.agent(["backup", "copy.db"]).exits(0);
    assert_eq!(lab.agent(["--db", "copy.db", "status", "t1"]).exits(0).json(), lab.status("t1"));
    let mut after = lab.tree();
    assert!(after.remove("copy.db").is_some());
    assert_eq!(after, before);

    // The plain copy is what this is better than.
    fs::copy(lab.path("state.db"), lab.path("plain.db")).unwrap();
    let plain = lab.agent(["--db", "plain.db", "status", "t1"]);
    assert!(plain.code != 0 || plain.json() != lab.status("t1"));
    before.clear();
}

#[test]
fn a_backup_never_replaces_a_file() {
    let lab = Lab::with_task();
    lab.write("copy.db", "precious");
    std::os::unix::fs::symlink("/nowhere", lab.path("link.db")).unwrap();
    let before = lab.tree();
    for target in ["copy.db", "state.db", "link.db", "input"] {
        lab.agent(["backup", target]).fails(73).says(target);
    }
    lab.agent(["backup", "none/copy.db"]).fails(73).says("none");
    lab.agent(["--db", "none.db", "backup", "fresh.db"]).fails(66).says("none.db");
    assert_eq!(lab.tree(), before);
}

/// Nothing stands at `state.db-wal` while nobody has the database open, and a copy there would be taken for its log.
#[test]
fn a_backup_never_takes_the_name_of_a_file_of_the_database() {
    let lab = Lab::golden("v1-done");
    let before = lab.tree();
    for name in ["state.db-wal", "state.db-journal", "./state.db-shm", "state.db.t1.lock"] {
        lab.agent(["backup", name]).exits(64).says("of the database");
    }
    assert_eq!(lab.tree(), before);
}

//! A backup put back.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use nix::sys::signal::Signal;

use crate::journal::assert_sound;
use crate::lab::Lab;

/// A lab whose `copy.db` has the task `t1` before its first step, and whose database was killed at its last: what it
/// has done is in the WAL.
fn killed_after_a_backup() -> Lab {
    let lab = Lab::with_task();
    lab.agent(["backup", "copy.db"]).exits(0);
    lab.call(["run", "t1"]).env("AGENT_CRASH_AT", "after_commit:1").ran().exits(137);
    lab
}

#[test]
fn a_restored_database_is_the_backup_and_can_be_run() {
    let lab = killed_after_a_backup();
    fs::set_permissions(lab.path("state.db"), fs::Permissions::from_mode(0o640)).unwrap();
    let backup = fs::read(lab.path("copy.db")).unwrap();
    assert_eq!(lab.steps("t1")[1].0, "done");
    lab.agent(["restore", "copy.db"]).exits(0).says("state.db is restored from copy.db");
    for suffix in ["-wal", "-shm", "-journal"] {
        assert!(!lab.path(&format!("state.db{suffix}")).exists(), "{suffix}");
    }
    assert_eq!(fs::metadata(lab.path("state.db")).unwrap().permissions().mode() & 0o777, 0o640);
    assert_eq!(lab.steps("t1")[0], ("pending".to_owned(), 0));
    lab.agent(["run", "t1"]).exits(0);
    assert_sound(&lab, "t1", None);
    assert_eq!(fs::read(lab.path("copy.db")).unwrap(), backup, "the backup stays as it is");
    // And what is restored has an identity of its own: the WAL of a run after it is not taken for that of the backup.
    lab.agent(["create", "t2", "plan.json"]).exits(0);
    lab.call(["run", "t2"]).env("AGENT_CRASH_AT", "after_commit:1").ran().exits(137);
    fs::copy(lab.path("copy.db"), lab.path("state.db")).unwrap();
    lab.agent(["status", "t1"]).fails(78).says("state.db-wal is not of the database");
    lab.agent(["restore", "copy.db"]).exits(0);
    lab.agent(["run", "t1"]).exits(0);
}

/// What a restore by `cp` does: the WAL of the former database undid it, and nobody said a word.
#[test]
fn a_restore_by_hand_beside_a_wal_is_refused_with_the_way_on() {
    let lab = killed_after_a_backup();
    fs::copy(lab.path("copy.db"), lab.path("state.db")).unwrap();
    let before = lab.tree();
    for arguments in [&["status", "t1"][..], &["run", "t1"], &["verify"], &["list"], &["create", "t2", "plan.json"]] {
        lab.agent(arguments).fails(78).says("state.db-wal is not of the database").says("agent restore");
    }
    assert_eq!(lab.tree(), before);
    lab.agent(["restore", "copy.db"]).exits(0);
    lab.agent(["run", "t1"]).exits(0);
    assert_sound(&lab, "t1", None);
}

#[test]
fn where_there_is_no_database_the_backup_is_put() {
    let lab = killed_after_a_backup();
    lab.agent(["--db", "new.db", "restore", "copy.db"]).exits(0);
    lab.agent(["--db", "new.db", "run", "t1"]).exits(0);
    // Also where only the WAL of a former one is left.
    fs::remove_file(lab.path("state.db")).unwrap();
    lab.agent(["status", "t1"]).fails(78);
    lab.agent(["restore", "copy.db"]).exits(0);
    lab.agent(["run", "t1"]).exits(0);
    lab.agent(["verify"]).exits(0);
}

#[test]
fn nothing_is_restored_under_a_run() {
    let lab = Lab::with_task();
    lab.agent(["backup", "copy.db"]).exits(0);
    let call = lab.call(["run", "t1"]).env("AGENT_STEP_DELAY", "60").env("AGENT_CRASH_RECORD", "recording");
    let run = call.start();
    lab.wait_for("recording", "before_effect:0");
    let before = lab.tree();
    lab.agent(["restore", "copy.db"]).fails(3).says("state.db.t1.lock");
    assert_eq!(lab.tree(), before);
    run.signal(Signal::SIGKILL);
    run.ended().exits(137);
    // Agents in other languages hold the lock alone.
    let lock = fs::File::open(lab.path("state.db.t1.lock")).unwrap();
    lock.lock().unwrap();
    lab.agent(["restore", "copy.db"]).fails(3);
    fixtures::unlock(lock);
    lab.agent(["restore", "copy.db"]).exits(0);
}

/// Whoever has the database open would go on writing into a file that has no name any more.
#[test]
fn another_program_that_has_the_database_open_is_waited_for() {
    let lab = Lab::with_task();
    lab.agent(["backup", "copy.db"]).exits(0);
    let other = rusqlite::Connection::open(lab.path("state.db")).unwrap();
    other.execute_batch("UPDATE tasks SET goal = 'mine'").unwrap();
    let restore = lab.call(["restore", "copy.db"]).start();
    std::thread::sleep(std::time::Duration::from_millis(300));
    other.execute_batch("UPDATE tasks SET goal = 'mine again'").unwrap();
    drop(other);
    restore.ended().exits(0);
    assert_eq!(lab.status("t1")["status"], "pending");
    assert_ne!(lab.status("t1")["goal"], "mine again");
}

#[test]
fn what_is_not_a_sound_backup_changes_nothing() {
    let lab = killed_after_a_backup();
    lab.write("text", "Dear diary,\n".repeat(1000));
    lab.write("empty.db", "");
    let mut torn = fs::read(lab.path("copy.db")).unwrap();
    torn.truncate(8192);
    lab.write("torn.db", torn);
    rusqlite::Connection::open(lab.path("foreign.db")).unwrap().execute_batch("CREATE TABLE a(b)").unwrap();
    let before = lab.tree();
    for (backup, code) in
        [("none.db", 66), ("text", 78), ("empty.db", 78), ("torn.db", 78), ("foreign.db", 78), ("input", 78)]
    {
        lab.agent(["restore", backup]).fails(code).says(backup);
    }
    for own in ["state.db", "./state.db", "state.db-wal", "state.db.t1.lock"] {
        lab.agent(["restore", own]).fails(64).says("of the database");
    }
    for (place, code) in [("text", 78), ("input", 78), ("none/state.db", 73)] {
        lab.agent(["--db", place, "restore", "copy.db"]).fails(code).says(place);
    }
    assert_eq!(lab.tree(), before);
}

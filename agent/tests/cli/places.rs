//! Which database is meant, whatever name leads to it.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use nix::sys::signal::Signal;

use crate::journal::assert_sound;
use crate::lab::Lab;

/// A run through a link to a database that was not there yet locked a name beside the link. A second one, when the file
/// was there, locked a name beside the file, and took over a task that was being run.
#[test]
fn a_link_to_what_is_not_there_yet_gives_a_task_no_second_lock() {
    let lab = Lab::new();
    fs::create_dir(lab.path("data")).unwrap();
    symlink("data/real.db", lab.path("state.db")).unwrap();
    lab.agent(["create", "t1", "plan.json"]).exits(0);
    let call = lab.call(["run", "t1"]).env("AGENT_STEP_DELAY", "60").env("AGENT_CRASH_RECORD", "recording");
    let run = call.start();
    lab.wait_for("recording", "before_effect:0");
    for name in ["state.db", "data/real.db", "./data/../state.db"] {
        lab.agent(["--db", name, "run", "t1"]).fails(3);
    }
    assert!(lab.path("data/real.db.t1.lock").exists() && !lab.path("state.db.t1.lock").exists());
    run.signal(Signal::SIGKILL);
    run.ended().exits(137);
    lab.agent(["run", "t1"]).exits(0);
    assert_sound(&lab, "t1", None);
}

/// A single file that is mounted into a container has its WAL inside, and everybody else's is outside: both wrote, and
/// the database was destroyed.
#[test]
fn a_database_that_is_mounted_by_itself_is_refused() {
    let lab = Lab::with_task();
    lab.write("mounted.db", "");
    let script =
        format!("mount --bind state.db mounted.db || exit 99; {} --db mounted.db run t1", env!("CARGO_BIN_EXE_agent"));
    let before = lab.tree();
    let ran = lab.call_through(&["unshare", "-rm", "sh", "-c"], [&script]).ran();
    if ran.code == 99 || ran.stderr.contains("unshare") {
        eprintln!("SKIPPED: this machine lets nobody mount a file");
        return;
    }
    ran.fails(78).says("mounted.db is mounted by itself");
    assert_eq!(lab.tree(), before);
    lab.agent(["run", "t1"]).exits(0);
}

/// The lock file of a task that another user had run once could not be opened for writing, so nobody else could ever
/// run it again.
#[test]
fn a_lock_file_that_can_only_be_read_can_be_locked() {
    let lab = Lab::with_task();
    fs::create_dir(lab.path("artifacts")).unwrap();
    for name in [".", "artifacts"] {
        fs::set_permissions(lab.path(name), fs::Permissions::from_mode(0o777)).unwrap();
    }
    fs::set_permissions(lab.path("state.db"), fs::Permissions::from_mode(0o666)).unwrap();
    lab.write("state.db.t1.lock", "");
    fs::set_permissions(lab.path("state.db.t1.lock"), fs::Permissions::from_mode(0o444)).unwrap();
    let holder = fs::File::open(lab.path("state.db.t1.lock")).unwrap();
    holder.lock().unwrap();
    lab.call(["run", "t1"]).unprivileged().ran().fails(3);
    fixtures::unlock(holder);
    lab.call(["run", "t1"]).unprivileged().ran().exits(0);
    assert_sound(&lab, "t1", None);
}

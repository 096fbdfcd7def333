//! Disks that are full, folders that are read-only, files that may not be read.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::journal::assert_sound;
use crate::lab::{Call, Lab, names};

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// A lab whose every file anybody may change, for calls by a user whom permissions bind.
fn open_lab(lab: Lab) -> Lab {
    for name in [".", "input", "state.db", "state.db-wal", "state.db-shm", "state.db.t1.lock", "artifacts"] {
        let path = lab.path(name);
        if path.exists() {
            mode(&path, if path.is_dir() { 0o777 } else { 0o666 });
        }
    }
    lab
}

/// A call with a limit on the size of files, `blocks` of 512 bytes: beyond it, writing fails as on a full disk. Such a
/// limit once killed the process with SIGXFSZ, without a word.
fn limited(lab: &Lab, blocks: u32, arguments: &[&str]) -> Call {
    let script = format!("ulimit -f {blocks}; exec {} \"$@\"", env!("CARGO_BIN_EXE_agent"));
    lab.call_through(&["sh", "-c", &script, "sh"], arguments)
}

#[test]
fn a_report_that_does_not_fit_fails_its_step_and_leaves_no_temporary_file() {
    let lab = Lab::new();
    lab.write("input/notes.txt", "x".repeat(3 << 20));
    lab.agent(["create", "t1", "plan.json"]).exits(0);
    lab.call(["run", "t1"]).env("AGENT_CRASH_AT", "after_commit:1").ran().exits(137);
    // Opening and closing moves the WAL into the database, so that only the report is larger than the limit.
    lab.agent(["create", "t2", "plan.json"]).exits(0);
    assert!(!lab.path("state.db-wal").exists());
    limited(&lab, 2048, &["run", "t1"]).ran().exits(2).says(".tmp").says("File too large");
    assert_eq!(lab.artifacts(), Vec::<String>::new());
    assert_eq!(lab.steps("t1")[2], ("failed".to_owned(), 3));

    lab.agent(["retry", "t1"]).exits(0);
    lab.agent(["run", "t1"]).exits(0);
    assert_eq!(lab.report().len(), 3 << 20);
    lab.agent(["verify"]).exits(0);
}

#[test]
fn a_database_that_cannot_grow_ends_the_run_and_loses_nothing() {
    let lab = Lab::new();
    lab.write("input/notes.txt", "x".repeat(1 << 20));
    lab.agent(["create", "t1", "plan.json"]).exits(0);
    // Each such run once left the step running, and the third recovery failed the task without a word of the cause.
    for attempt in 1..5 {
        limited(&lab, 512, &["run", "t1"]).ran().fails(74).says("state.db");
        assert_eq!(lab.steps("t1")[0], ("pending".to_owned(), attempt), "the step's end is not recorded, its cause is");
        let released = lab.journal("t1").pop().unwrap();
        assert_eq!(released["kind"], "step_released");
        assert!(released["reason"].as_str().unwrap().contains("cannot be stored"), "{released}");
    }
    lab.agent(["run", "t1"]).exits(0);
    assert_sound(&lab, "t1", None);
}

/// A database on a disk of its own, which fills up. Where the machine lets a test mount one.
#[test]
fn a_full_disk_under_the_database_is_in_the_journal_and_fails_no_task() {
    let lab = Lab::new();
    lab.write("input/notes.txt", "x".repeat(400_000));
    let agent = env!("CARGO_BIN_EXE_agent");
    fs::create_dir(lab.path("disk")).unwrap();
    let script = format!(
        "mount -t tmpfs -o size=300k none disk || exit 99; {agent} --db disk/state.db create t1 plan.json || exit 98; \
         for n in 1 2 3 4; do {agent} --db disk/state.db run t1; test $? = 74 || exit 97; done; \
         {agent} --db disk/state.db export t1; mount -o remount,size=4m disk; {agent} --db disk/state.db run t1"
    );
    let ran = lab.call_through(&["unshare", "-rm", "sh", "-c"], [&script]).ran();
    if ran.code == 99 || ran.stderr.contains("unshare") {
        eprintln!("SKIPPED: this machine lets nobody mount a small disk");
        return;
    }
    let ran = ran.exits(0);
    assert_eq!(ran.stdout.matches("step_released").count(), 4, "{ran:?}");
    assert!(ran.stdout.contains("full"), "{ran:?}");
}

/// SQLite says only that it cannot open a file; the user was told that it cannot be created.
#[test]
fn running_out_of_descriptors_is_said_to_be_that() {
    let lab = Lab::with_task();
    let mut done = false;
    for descriptors in 4..20 {
        let script = format!("ulimit -n {descriptors}; exec {} \"$@\"", env!("CARGO_BIN_EXE_agent"));
        for arguments in [&["create", "new", "plan.json"][..], &["run", "t1"]] {
            let ran = lab.call_through(&["sh", "-c", &script, "sh"], arguments).ran();
            if [74, 66, 2].contains(&ran.code) {
                assert!(ran.stderr.contains("Too many open files"), "{descriptors} {ran:?}");
            } else {
                assert!([0, 73].contains(&ran.code), "{descriptors} {ran:?}");
                assert!(ran.code == 0 || ran.stderr.contains("already"), "{descriptors} {ran:?}");
                done = true;
            }
        }
        if lab.agent(["status", "t1"]).json()["status"] == "failed" {
            lab.agent(["retry", "t1"]).exits(0);
        }
    }
    assert!(done && lab.status("t1")["status"] == "done");
}

#[test]
fn a_database_that_cannot_be_made_for_lack_of_room_is_74_and_may_be_made_later() {
    let lab = Lab::new();
    limited(&lab, 8, &["create", "t1", "plan.json"]).ran().fails(74).says("state.db");
    lab.agent(["create", "t1", "plan.json"]).exits(0);
    lab.agent(["run", "t1"]).exits(0);
    assert_sound(&lab, "t1", None);
}

/// A real full disk, where the machine lets a test mount one.
#[test]
fn on_a_full_disk_nothing_half_written_stays() {
    let lab = Lab::new();
    lab.write("input/notes.txt", "x".repeat(200_000));
    lab.agent(["create", "t1", "plan.json"]).exits(0);
    fs::create_dir(lab.path("artifacts")).unwrap();
    let script = format!(
        "mount -t tmpfs -o size=64k none artifacts || exit 99; {} run t1; code=$?; ls -A artifacts > left; exit $code",
        env!("CARGO_BIN_EXE_agent")
    );
    let ran = lab.call_through(&["unshare", "-rm", "sh", "-c"], [&script]).ran();
    if ran.code == 99 || ran.stderr.contains("unshare") {
        eprintln!("SKIPPED: this machine lets nobody mount a small disk");
        return;
    }
    ran.exits(2).says("No space left on device");
    assert_eq!(lab.sandbox.read("left"), "");
    lab.agent(["retry", "t1"]).exits(0);
    lab.agent(["run", "t1"]).exits(0);
    assert_eq!(lab.artifacts(), ["t1-2.md"]);
}

#[test]
fn a_read_only_artifacts_folder_is_named() {
    let lab = Lab::with_task();
    fs::create_dir(lab.path("artifacts")).unwrap();
    let lab = open_lab(lab);
    mode(&lab.path("artifacts"), 0o555);
    lab.call(["run", "t1"]).unprivileged().ran().exits(2).says("artifacts").says("Permission denied");
    assert_eq!(lab.artifacts(), Vec::<String>::new());
}

/// It was found out when every note had been counted, and then no command helped.
#[test]
fn a_folder_that_may_not_be_written_is_no_place_for_a_report() {
    let lab = open_lab(Lab::new());
    fs::create_dir(lab.path("sealed")).unwrap();
    mode(&lab.path("sealed"), 0o555);
    let before = lab.tree();
    for out in ["sealed/report.json", "sealed/deeper/report.json"] {
        let arguments = ["inbox", "--task", "t", "--inbox", "input", "--out", out];
        lab.call(arguments).unprivileged().ran().fails(73).says("Permission denied");
    }
    assert_eq!(lab.tree(), before);
}

#[test]
fn a_note_that_may_not_be_read_is_named() {
    let lab = open_lab(Lab::with_task());
    mode(&lab.path("input/notes.txt"), 0o000);
    lab.call(["run", "t1"]).unprivileged().ran().exits(2).says("input/notes.txt").says("Permission denied");
    mode(&lab.path("plan.json"), 0o000);
    lab.call(["create", "t2", "plan.json"]).unprivileged().ran().fails(66).says("Permission denied");
}

#[test]
fn a_read_only_folder_can_be_read_and_not_written() {
    for lab in [Lab::with_task(), Lab::killed_at("after_effect:1")] {
        let lab = open_lab(lab);
        mode(&lab.path("."), 0o555);
        let before = lab.tree();
        for arguments in [&["status", "t1"][..], &["export", "t1"], &["list"], &["verify"]] {
            lab.call(arguments).unprivileged().ran().exits(0);
        }
        let ran = lab.call(["--db", "new.db", "create", "t1", "plan.json"]).unprivileged().ran();
        ran.fails(73).says("new.db");
        assert_eq!(lab.tree(), before);
        mode(&lab.path("."), 0o755);
    }
}

#[test]
fn a_database_that_may_not_be_written_is_named_and_costs_nothing() {
    let lab = open_lab(Lab::with_task());
    mode(&lab.path("state.db"), 0o444);
    let before = fs::read(lab.path("state.db")).unwrap();
    lab.call(["run", "t1"]).unprivileged().ran().fails(73).says("state.db");
    lab.call(["create", "t2", "plan.json"]).unprivileged().ran().fails(73).says("state.db");
    assert_eq!(fs::read(lab.path("state.db")).unwrap(), before);
    // A WAL made with the file's mode would have kept everybody from writing later.
    assert!(!lab.path("state.db-wal").exists());
    mode(&lab.path("state.db"), 0o000);
    lab.call(["status", "t1"]).unprivileged().ran().fails(66).says("state.db");
    assert!(names(&lab.path("artifacts")).is_empty());
}

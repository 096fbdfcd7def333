//! One runner per task: the others are told, and change nothing.

use std::fs::{self, File};
use std::time::{Duration, Instant};

use fixtures::contract;
use nix::sys::signal::Signal;
use rstest::rstest;

use crate::journal::{assert_sound, recovered};
use crate::lab::{Lab, Started};

/// A run of `t1` that sleeps inside step 0 for as long as a test may need.
fn sleeping(lab: &Lab, seconds: &str) -> Started {
    let call = lab.call(["run", "t1"]).env("AGENT_STEP_DELAY", seconds).env("AGENT_CRASH_RECORD", "recording");
    let started = call.start();
    lab.wait_for("recording", "before_effect:0");
    started
}

/// A refused runner had once "recovered" the running step already, since recovery came before the lock.
#[test]
fn a_second_runner_is_refused_and_changes_nothing() {
    let lab = Lab::with_task();
    let first = sleeping(&lab, "60");
    let (status, journal) = (lab.status("t1"), lab.journal("t1"));
    let bytes = |name: &str| fs::read(lab.path(name)).unwrap();
    let before = (bytes("state.db"), bytes("state.db-wal"));
    for command in ["run", "run"] {
        lab.agent([command, "t1"]).fails(3).says("t1");
    }
    assert_eq!((lab.status("t1"), lab.journal("t1")), (status, journal));
    assert_eq!((bytes("state.db"), bytes("state.db-wal")), before);
    assert_eq!(lab.steps("t1")[0], ("running".to_owned(), 1));

    // The kernel frees the lock with its holder.
    first.signal(Signal::SIGKILL);
    first.ended().exits(137);
    lab.agent(["run", "t1"]).exits(0);
    assert_eq!(recovered(&lab.journal("t1")), [vec![], vec![0]]);
    assert_sound(&lab, "t1", None);
}

/// Agents in other languages take the same lock.
#[test]
fn the_lock_is_a_flock_on_the_file_that_the_contract_names() {
    let lab = Lab::with_task();
    let path = lab.path(&contract::lock_path("state.db", "t1"));
    let holder = File::create(&path).unwrap();
    holder.lock().unwrap();
    let before = lab.tree();
    lab.agent(["run", "t1"]).fails(3);
    assert_eq!(lab.tree(), before);
    fixtures::unlock(holder);
    lab.agent(["run", "t1"]).exits(0);
    assert!(path.exists(), "a lock file that were removed could be locked twice");
}

#[test]
fn the_lock_of_one_task_does_not_hold_up_another() {
    let lab = Lab::with_task();
    lab.agent(["create", "t2", "plan.json"]).exits(0);
    let first = sleeping(&lab, "60");
    lab.agent(["run", "t2"]).exits(0);
    lab.agent(["create", "t3", "plan.json"]).exits(0);
    lab.agent(["verify", "t2"]).exits(0);
    first.signal(Signal::SIGTERM);
    first.ended().exits(143);
}

#[test]
fn reading_beside_a_run_sees_it_at_work() {
    let lab = Lab::with_task();
    let first = sleeping(&lab, "60");
    assert_eq!(lab.steps("t1")[0], ("running".to_owned(), 1));
    assert_eq!(lab.journal("t1").len(), 3);
    lab.agent(["list"]).exits(0);
    lab.agent(["verify"]).exits(0);
    lab.agent(["retry", "t1"]).fails(4);
    first.signal(Signal::SIGINT);
    first.ended().exits(130);
}

/// Runs open and close the database all the time; a reader must cope with either moment.
#[test]
fn reading_while_runs_come_and_go_always_succeeds() {
    let lab = Lab::new();
    lab.write("echo.json", fixtures::echo_plan(3).to_string());
    lab.agent(["create", "t0", "echo.json"]).exits(0);
    std::thread::scope(|scope| {
        let runs = scope.spawn(|| {
            for task in (0..25).map(|n| format!("t{n}")) {
                lab.agent(["create", &task, "echo.json"]);
                lab.agent(["run", &task]).exits(0);
            }
        });
        while !runs.is_finished() {
            lab.agent(["status", "t0"]).exits(0);
            lab.agent(["export", "t0"]).exits(0);
            lab.agent(["verify"]).exits(0);
        }
    });
    lab.agent(["verify"]).exits(0);
}

/// The lock can be lost only by removing its file. The fence in the database then stops the run that lost it.
#[test]
fn a_run_whose_lock_file_was_removed_is_fenced_off() {
    let lab = Lab::with_task();
    let first = sleeping(&lab, "0.5");
    fs::remove_file(lab.path("state.db.t1.lock")).unwrap();
    lab.agent(["run", "t1"]).exits(0);
    let journal = lab.journal("t1");
    first.ended().fails(76).says("`t1` was taken over");
    assert_eq!(lab.journal("t1"), journal, "it wrote nothing after it was taken over");
    assert_sound(&lab, "t1", None);
    assert_eq!(lab.artifacts(), ["t1-2.md"]);
}

/// A run whose database was moved away went on, said that it was done, and left the old state under the new name.
#[rstest]
#[case::moved("mv state.db moved.db", "mv moved.db state.db")]
#[case::removed("rm state.db state.db-wal state.db-shm", "")]
#[case::emptied(": > state.db", "")]
#[case::replaced("cp state.db other.db && mv other.db state.db", ":")]
#[case::put_aside("mv state.db-wal aside", "mv aside state.db-wal")]
fn a_run_whose_database_is_taken_away_stops_and_says_so(#[case] what: &str, #[case] mended: &str) {
    let lab = Lab::with_task();
    let run = sleeping(&lab, "0.3");
    let shell = |script: &str| {
        let done = std::process::Command::new("sh").args(["-c", script]).current_dir(lab.path("")).status().unwrap();
        assert!(done.success());
    };
    shell(what);
    if what.contains("state.db-wal aside") {
        // Another one lies there then, which nobody may take for that of the run.
        lab.write("state.db-wal", "");
        run.ended().fails(78).says("state.db-wal is no longer the file").says("file that was moved");
    } else {
        run.ended().fails(78).says("state.db is no longer the file").says("committed last is in").says("state.db-wal");
    }
    if mended.is_empty() {
        return;
    }
    // What it had committed is there, and nothing that is done meanwhile takes it away.
    if what.starts_with("mv state.db moved.db") {
        lab.agent(["create", "t2", "plan.json"]).fails(78).says("state.db-wal holds what was committed last");
        lab.agent(["status", "t1"]).fails(78).says("state.db-wal");
    }
    shell(mended);
    assert_eq!(lab.steps("t1")[0], ("running".to_owned(), 1));
    lab.agent(["run", "t1"]).exits(0);
    assert_sound(&lab, "t1", None);
}

/// A WAL was removed under a run, which promised thirty more steps; all were lost.
#[test]
fn a_run_whose_wal_is_removed_stops_and_brings_its_commits_into_the_database() {
    let lab = Lab::with_task();
    let run = sleeping(&lab, "0.3");
    fs::remove_file(lab.path("state.db-wal")).unwrap();
    let ran = run.ended().fails(78);
    ran.says("state.db-wal was removed under this run").says("has been brought into");
    assert_eq!(lab.steps("t1")[0], ("running".to_owned(), 1));
    lab.agent(["run", "t1"]).exits(0);
    assert_sound(&lab, "t1", None);
}

/// A WAL was cut to nothing under a run. Its name and its file stayed the same, so the run went on behind what was
/// missing, and after a kill every step that it had promised was undone, with not a word said.
#[rstest]
#[case::while_a_step_is_under_way(true)]
#[case::between_two_steps(false)]
fn a_run_whose_wal_is_cut_stops(#[case] in_a_step: bool) {
    let lab = Lab::with_task();
    let run = match in_a_step {
        true => sleeping(&lab, "0.3"),
        false => {
            let run =
                lab.call(["run", "t1"]).env("AGENT_STEP_DELAY", "0.3").env("AGENT_CRASH_RECORD", "passed").start();
            lab.wait_for("passed", "after_commit:0");
            run
        }
    };
    std::fs::OpenOptions::new().write(true).open(lab.path("state.db-wal")).unwrap().set_len(0).unwrap();
    run.ended().fails(78).says("state.db-wal was cut under this run");
    lab.agent(["run", "t1"]).exits(0);
    lab.agent(["verify"]).exits(0);
}

/// Another program may move the WAL into the database and cut it; nothing is missing then.
#[test]
fn a_checkpoint_of_somebody_else_stops_nobody() {
    let lab = Lab::with_task();
    let run = sleeping(&lab, "0.5");
    let other = rusqlite::Connection::open(lab.path("state.db")).unwrap();
    let busy: i64 = other.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0)).unwrap();
    assert_eq!((busy, fs::metadata(lab.path("state.db-wal")).unwrap().len()), (0, 0));
    run.ended().exits(0);
    assert_sound(&lab, "t1", None);
}

#[test]
fn a_writer_that_holds_the_database_for_a_while_is_waited_out() {
    let lab = Lab::with_task();
    let mut writer = rusqlite::Connection::open(lab.path("state.db")).unwrap();
    let transaction = writer.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate).unwrap();
    let start = Instant::now();
    let run = lab.call(["run", "t1"]).start();
    std::thread::sleep(Duration::from_millis(400));
    transaction.commit().unwrap();
    run.ended().exits(0);
    assert!(start.elapsed() >= Duration::from_millis(400));
    assert_sound(&lab, "t1", None);
}

#[test]
fn a_writer_that_never_ends_is_told_and_costs_nothing() {
    let lab = Lab::with_task();
    let mut writer = rusqlite::Connection::open(lab.path("state.db")).unwrap();
    let transaction = writer.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate).unwrap();
    lab.agent(["run", "t1"]).fails(75).says("state.db");
    drop(transaction);
    lab.agent(["run", "t1"]).exits(0);
}

/// Each makes the database, or waits for another that does.
#[test]
fn tasks_can_be_created_at_once_in_a_database_that_is_not_there_yet() {
    let lab = Lab::new();
    let started: Vec<_> = (0..8).map(|n| lab.call(["create", &format!("t{n}"), "plan.json"]).start()).collect();
    for create in started {
        create.ended().exits(0);
    }
    let list = lab.agent(["list", "--json"]).exits(0).json();
    assert_eq!(list["tasks"].as_array().unwrap().len(), 8);
    lab.agent(["verify"]).exits(0);
}

#[test]
fn of_eight_creations_of_one_task_exactly_one_counts() {
    let lab = Lab::new();
    let started: Vec<_> = (0..8).map(|_| lab.call(["create", "t1", "plan.json"]).start()).collect();
    let mut codes: Vec<i32> = started.into_iter().map(|create| create.ended().code).collect();
    codes.sort_unstable();
    assert_eq!(codes, [0, 73, 73, 73, 73, 73, 73, 73]);
    assert_eq!(lab.journal("t1").len(), 1);
}

#[test]
fn of_eight_runs_at_once_one_does_the_work() {
    let lab = Lab::killed_at("after_effect:2");
    let started: Vec<_> = (0..8).map(|_| lab.call(["run", "t1"]).start()).collect();
    for run in started {
        let code = run.ended().code;
        assert!([0, 3].contains(&code), "{code}");
    }
    assert_eq!(recovered(&lab.journal("t1")), [vec![], vec![2]]);
    assert_eq!(lab.artifacts(), ["t1-2.md"]);
    assert_sound(&lab, "t1", None);
}

#[test]
fn a_lock_file_that_cannot_be_opened_is_named() {
    let lab = Lab::with_task();
    fs::create_dir(lab.path("state.db.t1.lock")).unwrap();
    lab.agent(["run", "t1"]).fails(73).says("state.db.t1.lock");
    assert_eq!(lab.steps("t1")[0], ("pending".to_owned(), 0));
}

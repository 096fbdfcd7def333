//! A log that cannot be written. The log is second: state is never lost over it.

use std::fs;

use rstest::rstest;

use crate::lab::{Lab, REPORT};

#[test]
fn a_full_disk_stops_the_run_before_it_does_more_work() {
    let lab = Lab::new();
    lab.inbox_and(&["--log", "/dev/full"]).exits(74).says("/dev/full").says("nothing committed is lost");
    let steps = &lab.status("t")["steps"];
    assert!(steps.as_array().unwrap().iter().all(|step| step["status"] == "pending"), "{steps}");
    assert!(!lab.path("report.json").exists());
    lab.inbox().exits(0);
    assert_eq!(lab.sandbox.read("report.json"), REPORT);
    lab.assert_sound("t");
}

/// A folder where the log would be, and a file where its folder would be: even root cannot write those.
#[rstest]
#[case("inbox", 73)]
#[case("inbox/a.txt/actions.jsonl", 74)]
fn a_log_that_cannot_be_opened_stops_a_new_task_before_it_is_stored(#[case] log: &str, #[case] code: i32) {
    let lab = Lab::new();
    let before = lab.sandbox.tree();
    lab.inbox_and(&["--log", log]).exits(code).says("action log");
    assert_eq!(lab.sandbox.tree(), before);
}

/// Lines went into a pipe that nobody read, and the next run could not read them back.
#[test]
fn a_pipe_or_a_socket_cannot_be_a_log() {
    let lab = Lab::new();
    nix::unistd::mkfifo(&lab.path("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(lab.path("socket")).unwrap();
    lab.inbox_and(&["--log", "pipe"]).exits(73).says("it is a named pipe, not a file");
    lab.inbox_and(&["--log", "socket"]).exits(73).says("it is a socket, not a file");
    assert!(!lab.path("state.db").exists());
}

#[rstest]
#[case("/dev/full")]
#[case("inbox")]
fn with_best_effort_the_task_goes_on_and_says_so_once(#[case] log: &str) {
    let lab = Lab::new();
    let ran = lab.inbox_and(&["--log", log, "--log-best-effort"]).exits(0).says("warning");
    assert_eq!(ran.stderr.matches("warning").count(), 1, "{}", ran.stderr);
    assert_eq!(lab.sandbox.read("report.json"), REPORT);
    lab.inbox().exits(0).says("already done");
    lab.assert_sound("t");
}

#[test]
fn a_log_that_fails_in_the_middle_leaves_the_rest_of_the_task_for_the_next_run() {
    let lab = Lab::killed_at("before_effect:1");
    let log = fs::read(lab.path("actions.jsonl")).unwrap();
    lab.inbox_and(&["--log", "/dev/full"]).exits(74);
    assert_eq!(lab.status("t")["status"], "running");
    assert_eq!(fs::read(lab.path("actions.jsonl")).unwrap(), log);
    lab.inbox().exits(0);
    lab.assert_sound("t");
}

#[test]
fn a_log_in_a_folder_that_is_not_there_yet_gets_its_folder() {
    let lab = Lab::new();
    lab.inbox_and(&["--log", "logs/today/actions.jsonl"]).exits(0);
    let lines = crate::agreement::read(&fs::read(lab.path("logs/today/actions.jsonl")).unwrap(), "t");
    crate::agreement::agree(&lab.journal("t"), &lines).unwrap();
}

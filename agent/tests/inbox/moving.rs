//! An inbox whose folders move, or are looked at from elsewhere.

use std::fs;
use std::os::unix::fs::symlink;

use crate::lab::{Lab, REPORT, run};

#[test]
fn an_inbox_is_ended_from_any_folder() {
    let lab = Lab::killed_at("before_effect:1");
    fs::create_dir_all(lab.path("elsewhere/inbox")).unwrap();
    lab.sandbox.write("elsewhere/inbox/b.txt", "not this one");
    let within = |arguments: &[&str]| {
        let mut command = lab.command(arguments);
        command.current_dir(lab.path("elsewhere"));
        run(command)
    };
    // What is given on the command line starts where the caller stands.
    let inbox = ["--db", "../state.db", "inbox", "--task", "t", "--inbox"];
    within(&[&inbox[..], &["inbox", "--log", "../actions.jsonl"]].concat()).exits(64).says("is about the inbox");
    within(&["--db", "../state.db", "run", "t", "--log", "../actions.jsonl"]).exits(0);
    assert_eq!(lab.sandbox.read("report.json"), REPORT);
    within(&["--db", "../state.db", "verify"]).exits(0);
    within(&[&inbox[..], &["../inbox", "--out", "../report.json", "--log", "../actions.jsonl"]].concat()).exits(0);
    lab.assert_sound("t");
}

#[test]
fn an_inbox_and_a_report_that_have_moved_are_found_again() {
    let lab = Lab::killed_at("before_effect:1");
    fs::rename(lab.path("inbox"), lab.path("archive")).unwrap();
    // Each note used up its attempts once, and the task had failed before anybody knew.
    for _ in 0..4 {
        lab.agent(["run", "t"]).exits(66).says("agent rebind t --inbox");
    }
    lab.agent(["rebind", "t", "--inbox", "archive", "--out", "new/report.json"]).exits(0).says("agent run");
    lab.agent(["inbox", "--task", "t", "--inbox", "inbox"]).exits(64).says("archive");
    lab.agent(["inbox", "--task", "t", "--inbox", "archive", "--out", "new/report.json"]).exits(0);
    assert_eq!(lab.sandbox.read("new/report.json"), REPORT);
    assert!(!lab.path("report.json").exists());
    assert!(lab.events("t").iter().any(|(event, ..)| event == "task_rebound"));
    lab.assert_sound("t");
}

#[test]
fn what_cannot_be_is_not_recorded() {
    let lab = Lab::killed_at("before_effect:1");
    symlink("nowhere", lab.path("dangling")).unwrap();
    let before = lab.sandbox.tree();
    for (option, value, code) in [
        ("--inbox", "missing", 66),
        ("--out", "state.db", 64),
        ("--out", "inbox", 64),
        ("--out", "inbox/z.txt", 64),
        ("--out", "dangling", 73),
        ("--home", "missing", 66),
    ] {
        lab.agent(["rebind", "t", option, value]).exits(code);
    }
    lab.agent(["rebind", "u", "--home", "."]).exits(1);
    assert_eq!(lab.sandbox.tree(), before);
}

/// It was found out when all the work was done, and then no command helped.
#[test]
fn a_report_that_cannot_be_written_is_found_out_before_the_first_step() {
    let lab = Lab::new();
    symlink("nowhere", lab.path("dangling")).unwrap();
    let before = lab.sandbox.tree();
    lab.inbox_and(&["--out", "dangling/report.json"]).exits(73).says("dangling");
    assert_eq!(lab.sandbox.tree(), before);

    fs::create_dir(lab.path("reports")).unwrap();
    let mut command = lab.command(["inbox", "--task", "t", "--inbox", "inbox", "--out", "reports/r.json"]);
    command.env("AGENT_CRASH_AT", "before_effect:0");
    run(command).exits(137);
    fs::remove_dir(lab.path("reports")).unwrap();
    symlink("nowhere", lab.path("reports")).unwrap();
    let before = lab.sandbox.tree();
    lab.agent(["run", "t"]).exits(73).says("reports");
    assert_eq!(lab.sandbox.tree(), before);
    lab.agent(["rebind", "t", "--out", "r.json"]).exits(0);
    lab.agent(["run", "t"]).exits(0);
    assert_eq!(lab.sandbox.read("r.json"), REPORT);
    lab.agent(["verify"]).exits(0);
}

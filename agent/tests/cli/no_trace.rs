//! Commands that only read create no file and change none, whatever state they find the database in.

use std::fs;

use rstest::rstest;

use crate::lab::Lab;

const READING: [&[&str]; 9] = [
    &["status", "t1"],
    &["export", "t1"],
    &["list"],
    &["list", "--json"],
    &["verify"],
    &["verify", "t1", "--json"],
    &["tools"],
    &["tools", "--json"],
    &["completions", "bash"],
];

fn database(kind: &str) -> Lab {
    match kind {
        "none" => Lab::new(),
        "pending" => Lab::with_task(),
        "done" => {
            let lab = Lab::with_task();
            lab.agent(["run", "t1"]).exits(0);
            lab
        }
        "failed" => Lab::failed(),
        "killed" => Lab::killed_at("after_effect:2"),
        // Somebody copied database and WAL, and not the index that belongs to them.
        "killed, without its -shm" => {
            let lab = Lab::killed_at("after_effect:2");
            fs::remove_file(lab.path("state.db-shm")).unwrap();
            lab
        }
        "empty file" => {
            let lab = Lab::new();
            lab.write("state.db", "");
            lab
        }
        golden => Lab::golden(golden),
    }
}

#[rstest]
fn reading_changes_no_byte_and_makes_no_file(
    #[values(
        "none",
        "empty file",
        "pending",
        "done",
        "failed",
        "killed",
        "killed, without its -shm",
        "v1-pending",
        "v1-killed-after-effect-2",
        "v1-failed"
    )]
    kind: &str,
) {
    let lab = database(kind);
    let before = lab.tree();
    let there = !["none", "empty file"].contains(&kind);
    for arguments in READING {
        let ran = lab.agent(arguments);
        assert_eq!(lab.tree(), before, "{arguments:?}");
        match arguments[0] {
            "status" | "export" if !there => drop(ran.fails(1)),
            "verify" if arguments.len() > 1 && !there => drop(ran.fails(1)),
            "list" | "verify" if kind == "none" => drop(ran.fails(66)),
            _ => assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{arguments:?}"),
        }
    }
}

#[rstest]
#[case("pending", "pending", 1)]
#[case("done", "done", 9)]
#[case("killed", "running", 7)]
#[case("killed, without its -shm", "running", 7)]
#[case("v1-killed-after-effect-2", "running", 7)]
#[case("v1-done", "done", 9)]
fn what_is_read_is_right(#[case] kind: &str, #[case] status: &str, #[case] events: usize) {
    let lab = database(kind);
    assert_eq!(lab.status("t1")["status"], status);
    assert_eq!(lab.journal("t1").len(), events);
    let list = lab.agent(["list", "--json"]).exits(0).json();
    let row = list["tasks"].as_array().unwrap().iter().find(|row| row["task"] == "t1").unwrap().clone();
    assert_eq!(row["status"], status);
    let table = lab.agent(["list"]).exits(0).stdout;
    assert!(table.lines().any(|line| line.contains("t1") && line.contains(status)), "{table}");
}

/// Where the index of a WAL was missing the whole database was copied to the temporary folder, and stayed there when
/// the reader was interrupted.
#[test]
fn nothing_is_copied_to_read_a_wal_without_its_index() {
    let lab = database("killed, without its -shm");
    let read = lab.call(["status", "t1"]).env("TMPDIR", "/nowhere/at/all").ran().exits(0).json();
    assert_eq!(read["status"], "running");
}

#[test]
fn status_and_export_have_the_fields_of_the_contract() {
    use fixtures::contract;
    let lab = Lab::failed();
    let status = lab.status("t1");
    let keys = |value: &serde_json::Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    let mut expected = contract::STATUS_FIELDS.to_vec();
    // What a plan file adds.
    expected.extend(["language", "plan_sha256"]);
    expected.sort_unstable();
    assert_eq!(keys(&status), expected);
    let mut expected = contract::STATUS_STEP_FIELDS;
    expected.sort_unstable();
    assert_eq!(keys(&status["steps"][0]), expected);
    let text = lab.agent(["export", "t1"]).exits(0).stdout;
    for (line, event) in text.lines().zip(lab.journal("t1")) {
        assert!(line.starts_with("{\"seq\":"), "the common fields come first: {line}");
        let kind = event["kind"].as_str().unwrap();
        let (_, own) = contract::EVENT_FIELDS.iter().find(|(known, _)| *known == kind).unwrap();
        for field in contract::EXPORT_FIELDS.iter().chain(*own) {
            assert!(event.get(*field).is_some(), "{field} is not in {line}");
        }
        assert_eq!(event["step"].is_null(), contract::EVENT_KINDS_WITHOUT_STEP.contains(&kind), "{line}");
    }
}

/// It once left a lock file behind.
#[test]
fn a_run_of_an_unknown_task_leaves_nothing() {
    for kind in ["none", "empty file", "pending", "killed", "v1-failed"] {
        let lab = database(kind);
        let before = lab.tree();
        lab.agent(["run", "t2"]).fails(1);
        assert_eq!(lab.tree(), before, "{kind}");
    }
}

#[rstest]
#[case("done", 0)]
#[case("failed", 2)]
#[case("v1-done", 0)]
#[case("v1-failed", 2)]
fn a_run_of_a_task_that_is_over_journals_nothing(#[case] kind: &str, #[case] code: i32) {
    let lab = database(kind);
    let before = lab.tree();
    lab.agent(["run", "t1"]).exits(code).says("already");
    assert_eq!(lab.tree(), before);
}

//! The audit against databases that somebody has changed by hand: what a sound one says, and what each kind of damage
//! is called.

#![cfg(feature = "sqlite")]
#![expect(clippy::unwrap_used, reason = "a helper that cannot go on fails its test")]

mod changes;
mod lab;

use rstest::rstest;
use rusqlite::Connection;
use serde_json::Map;
use std::sync::Arc;
use store::audit::{Finding, audit};
use store::machine::Command;
use store::model::{Plan, PlannedStep, Terms};
use store::sqlite::{SqliteReader, SqliteStore};
use store::{Crash, ErrorKind, SystemClock};

use crate::lab::{Lab, id, session, start};

#[test]
fn a_sound_database_has_no_findings() {
    let lab = Lab::new();
    assert_eq!(lab.findings(None), []);
    for task in ["t", "failed", "other"] {
        assert_eq!(lab.findings(Some(task)), []);
    }
    let error = audit(&mut SqliteReader::open(&lab.path()).unwrap(), Some(&id("unknown"))).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoTask);
}

/// The journal is as the table above says, so that the rows below are those that they mean.
#[test]
fn the_lab_is_as_it_is_described() {
    let lab = Lab::new();
    let conn = Connection::open(lab.path()).unwrap();
    let mut query = conn.prepare("SELECT kind, step_idx FROM events WHERE task_id = 't' ORDER BY seq").unwrap();
    let rows: Vec<(String, Option<u32>)> =
        query.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap().map(Result::unwrap).collect();
    let rows: Vec<(&str, Option<u32>)> = rows.iter().map(|(kind, step)| (kind.as_str(), *step)).collect();
    let expected = [
        ("task_created", None),
        ("run_started", None),
        ("step_started", Some(0)),
        ("step_finished", Some(0)),
        ("step_started", Some(1)),
        ("step_error", Some(1)),
        ("step_started", Some(1)),
        ("step_recovered", Some(1)),
        ("run_started", None),
        ("step_started", Some(1)),
        ("step_finished", Some(1)),
        ("step_started", Some(2)),
    ];
    assert_eq!(rows, expected);
}

/// A change of one column of one row is one finding, not a list of what follows from it.
#[rstest]
#[case("UPDATE steps SET status = 'pending' WHERE task_id = 't' AND idx = 2")]
#[case("UPDATE steps SET attempts = attempts + 1 WHERE task_id = 't' AND idx = 1")]
#[case("UPDATE steps SET forgiven = 1 WHERE task_id = 't' AND idx = 1")]
#[case("UPDATE steps SET output = '{}' WHERE task_id = 't' AND idx = 3")]
#[case("UPDATE steps SET output = 'x' WHERE task_id = 't' AND idx = 0")]
#[case("UPDATE steps SET output = NULL WHERE task_id = 't' AND idx = 0")]
#[case("UPDATE tasks SET status = 'pending' WHERE id = 't'")]
#[case("DELETE FROM steps WHERE task_id = 't' AND idx = 3")]
#[case("INSERT INTO steps(task_id, idx, tool, input) VALUES ('t', 4, 'echo', '{}')")]
#[case("UPDATE events SET data = '{\"recovered\":[]}' WHERE seq = 11")]
#[case("INSERT INTO events SELECT 1000, ts, task_id, run_id, kind, step_idx, data FROM events WHERE seq = 14")]
#[case("DELETE FROM events WHERE task_id = 't'")]
fn a_single_fault_is_a_single_finding(#[case] sql: &str) {
    let lab = Lab::new();
    lab.change(sql);
    let found = lab.findings(None);
    assert_eq!(found.len(), 1, "{found:#?}");
}

/// Whatever event is lost, doubled or swapped with the next: it does not go unnoticed, and its task is named.
#[test]
fn no_event_can_be_lost_doubled_or_swapped() {
    for seq in [1].into_iter().chain(4..=14) {
        let lost = format!("DELETE FROM events WHERE seq = {seq}");
        let doubled = format!(
            "UPDATE events SET seq = -seq WHERE seq > {seq};
             INSERT INTO events SELECT {seq} + 1, ts, task_id, run_id, kind, step_idx, data FROM events WHERE seq = {seq};
             UPDATE events SET seq = 1 - seq WHERE seq < 0"
        );
        let next = if seq == 1 { 4 } else { seq + 1 };
        let swapped = format!(
            "UPDATE events SET seq = -1 WHERE seq = {seq}; UPDATE events SET seq = {seq} WHERE seq = {next};
             UPDATE events SET seq = {next} WHERE seq = -1"
        );
        let mut changes = vec![("lost", lost), ("doubled", doubled)];
        // The last of this task has nothing after it to be swapped with.
        changes.extend((seq < 14).then_some(("swapped", swapped)));
        for (what, sql) in changes {
            let lab = Lab::new();
            lab.change(&sql);
            let found = lab.findings(None);
            // A run that began twice, and had nothing to recover, changed nothing.
            let harmless = (seq, what) == (4, "doubled");
            assert_eq!(found.is_empty(), harmless, "row {seq} {what}: {found:#?}");
            assert!(found.iter().all(|found| found.task == Some(id("t"))), "row {seq} {what}: {found:#?}");
        }
    }
}

#[rstest]
#[case::less("UPDATE events SET data = '{\"forgiven\":0}' WHERE kind = 'task_retried'", "it counts 0, 1 is due")]
#[case::more("UPDATE events SET data = '{\"forgiven\":2}' WHERE kind = 'task_retried'", "it counts 2, 1 is due")]
#[case::gone("DELETE FROM events WHERE kind = 'task_retried'", "0 attempts forgiven in the journal, 1 in the table")]
#[case::in_the_table(
    "UPDATE steps SET forgiven = 2 WHERE task_id = 'failed' AND idx = 0",
    "1 attempts forgiven in the journal, 2 in the table"
)]
fn a_change_of_what_is_forgiven_is_found(#[case] sql: &str, #[case] says: &str) {
    let lab = Lab::new();
    lab.change(sql);
    let found = lab.findings(None);
    assert!(found.iter().all(|found| found.task == Some(id("failed"))), "{found:#?}");
    let named = |found: &Finding| found.step == Some(0) && found.what.contains(says);
    assert!(found.iter().any(named), "{found:#?}");
}

#[test]
fn a_step_row_that_is_missing_in_the_middle_is_named() {
    let lab = Lab::new();
    lab.change("DELETE FROM steps WHERE task_id = 't' AND idx = 1");
    let found = lab.findings(None);
    assert!(found.iter().any(|found| found.what == "step 1 is missing from the table"), "{found:#?}");
    assert!(found.iter().all(|found| found.task == Some(id("t"))), "{found:#?}");
    assert_eq!(found.len(), 2, "the one that is missing, and the count: {found:#?}");
}

#[test]
fn events_and_steps_of_no_task_are_found() {
    let lab = Lab::new();
    lab.change(
        "INSERT INTO events(ts, task_id, run_id, kind, data) VALUES (1, 'ghost', 'r', 'task_created', '{\"steps\":1}')",
    );
    let found = lab.findings(None);
    assert_eq!(found.len(), 1, "{found:#?}");
    assert_eq!((found[0].task.clone(), found[0].step), (Some(id("ghost")), None));
    assert_eq!(lab.findings(Some("t")), []);

    let lab = Lab::new();
    lab.change("DELETE FROM tasks WHERE id = 't'");
    let found = lab.findings(None);
    assert_eq!(found.len(), 1, "{found:#?}");
    assert_eq!(found[0].task, Some(id("t")));
}

#[test]
fn kinds_and_fields_of_later_versions_are_tolerated() {
    let lab = Lab::new();
    lab.change(
        "INSERT INTO events(ts, task_id, run_id, kind, step_idx, data) VALUES (9, 't', 'r', 'step_danced', 2, '{\"x\":1}');
         INSERT INTO events(ts, task_id, run_id, kind, data) VALUES (9, 't', 'r', 'task_watched', NULL);
         UPDATE events SET data = '{\"recovered\":[1],\"host\":\"h\"}' WHERE seq = 11",
    );
    assert_eq!(lab.findings(None), []);
}

/// What cannot be read at all stops the audit of the rows, and is said.
#[rstest]
#[case(
    "UPDATE steps SET status = 'dancing' WHERE task_id = 't' AND idx = 1",
    "task `t`, step 1: `dancing` is not a status"
)]
#[case("UPDATE tasks SET status = 'dancing' WHERE id = 't'", "task `t`: `dancing` is not a status")]
#[case("UPDATE steps SET input = '{' WHERE task_id = 't' AND idx = 1", "task `t`, step 1: its input is not JSON")]
#[case("UPDATE events SET data = '{' WHERE seq = 5", "journal row 5: its data is not JSON")]
#[case("UPDATE events SET task_id = NULL WHERE seq = 5", "damaged or out of order")]
#[case(
    "UPDATE steps SET wait = 'time' WHERE task_id = 't' AND idx = 3",
    "step 3: its wait `time` and its time do not go together"
)]
#[case(
    "UPDATE steps SET due = 7 WHERE task_id = 't' AND idx = 3",
    "step 3: its wait `none` and its time do not go together"
)]
#[case("UPDATE steps SET wait = 'godot' WHERE task_id = 't' AND idx = 3", "its wait `godot`")]
#[case("UPDATE steps SET effect = 'once' WHERE task_id = 't' AND idx = 1", "step 1: has a class without a digest")]
#[case("UPDATE steps SET effect = 'x', input_sha256 = 'y' WHERE task_id = 't' AND idx = 1", "`y` is not a SHA-256")]
#[case(
    "UPDATE steps SET settings = '[]' WHERE task_id = 't' AND idx = 1",
    "step 1: its settings column is a list, not an object"
)]
#[case("UPDATE steps SET checkpoint = '{' WHERE task_id = 't' AND idx = 1", "step 1: its checkpoint is not JSON")]
#[case("UPDATE tasks SET inputs = '{' WHERE id = 't'", "task `t`: its inputs column is not JSON")]
#[case("UPDATE steps SET attempts = -1 WHERE task_id = 't' AND idx = 1", "task `t`, step 1")]
fn a_row_that_does_not_decode_is_a_finding(#[case] sql: &str, #[case] says: &str) {
    let lab = Lab::new();
    lab.change(sql);
    let found = lab.findings(None);
    assert!(found.iter().any(|found| found.what.contains(says)), "{found:#?}");
}

#[test]
fn every_step_and_every_event_counts_however_long_the_task_is() {
    let lab = Lab::new();
    let mut store = SqliteStore::open(&lab.path(), Crash::off()).unwrap();
    let step = PlannedStep::new("echo".to_owned(), Map::new());
    let plan = Plan { goal: "long".to_owned(), steps: vec![step; 700] };
    store::create(&mut store, &SystemClock, &id("long"), Arc::new(plan), None).unwrap();
    let mut run = session(&mut store, &id("long"));
    run.apply(&Command::Begin(Terms::limit(1))).unwrap();
    for idx in 0..700 {
        run.apply(&start(idx, 1)).unwrap();
        run.finish(idx, "echo", Map::new()).unwrap();
    }
    run.apply(&Command::Complete).unwrap();
    drop(run);
    drop(store);
    assert_eq!(lab.findings(None), []);
    for step in [0, 63, 64, 255, 256, 511, 512, 699] {
        lab.change(&format!("UPDATE steps SET attempts = 7 WHERE task_id = 'long' AND idx = {step}"));
        let found = lab.findings(Some("long"));
        assert_eq!(found.iter().map(|found| found.step).collect::<Vec<_>>(), [Some(step)]);
        lab.change(&format!("UPDATE steps SET attempts = 1 WHERE task_id = 'long' AND idx = {step}"));
    }
}

//! The audit finds what does not add up, names it, and changes nothing.

use std::fs;

use rstest::rstest;
use serde_json::Value;

use crate::lab::Lab;

fn done() -> Lab {
    let lab = Lab::with_task();
    lab.agent(["run", "t1"]).exits(0);
    lab
}

/// The findings of `verify --json`, whose exit code must say the same.
fn findings(lab: &Lab) -> Vec<Value> {
    let before = lab.tree();
    let ran = lab.agent(["verify", "--json"]);
    assert_eq!(lab.tree(), before);
    let report = ran.json();
    assert_eq!(report["schema"], 1);
    let found = report["findings"].as_array().unwrap().clone();
    let readable = found.iter().all(|finding| !finding["task"].is_null());
    assert_eq!(report["tasks"], u64::from(readable), "{report}");
    assert_eq!(report["ok"], found.is_empty());
    assert_eq!(ran.code, if found.is_empty() { 0 } else { 5 });
    assert_eq!(lab.agent(["verify"]).code, ran.code, "for people as for programs");
    found
}

#[test]
fn a_sound_database_has_no_findings() {
    for lab in [Lab::with_task(), done(), Lab::killed_at("after_effect:2"), Lab::failed()] {
        assert_eq!(findings(&lab), Vec::<Value>::new());
        assert!(lab.agent(["verify"]).exits(0).stdout.contains("1 task"));
    }
}

#[test]
fn a_report_that_was_changed_or_deleted_is_named() {
    let lab = done();
    fs::write(lab.path("artifacts/t1-2.md"), "another").unwrap();
    let found = findings(&lab);
    assert_eq!((&found[0]["task"], &found[0]["step"]), (&Value::from("t1"), &Value::from(2)));
    assert!(found[0]["what"].as_str().unwrap().contains("artifacts/t1-2.md"), "{found:?}");
    fs::remove_file(lab.path("artifacts/t1-2.md")).unwrap();
    let found = findings(&lab);
    assert!(found[0]["what"].as_str().unwrap().contains("artifacts/t1-2.md is missing"), "{found:?}");
    assert_eq!(found.len(), 1);
    let text = lab.agent(["verify", "t1"]).exits(5).stdout;
    assert!(text.starts_with("task `t1`, step 2: "), "{text}");
}

#[rstest]
#[case::status_of_the_task("UPDATE tasks SET status = 'running'", "the journal says that the task is done")]
#[case::status_of_a_step("UPDATE steps SET status = 'pending' WHERE idx = 2", "done")]
#[case::attempts("UPDATE steps SET attempts = 2 WHERE idx = 1", "2 attempts in the table")]
#[case::output_gone("UPDATE steps SET output = NULL WHERE idx = 1", "output")]
#[case::output_not_json("UPDATE steps SET output = '{' WHERE idx = 1", "not JSON")]
#[case::output_of_another_kind("UPDATE steps SET output = '{}' WHERE idx = 1", "no `")]
#[case::step_gone("DELETE FROM steps WHERE idx = 2", "3 steps")]
#[case::event_gone("DELETE FROM events WHERE kind = 'step_finished' AND step_idx = 1", "step 1")]
#[case::event_twice(
    "INSERT INTO events SELECT 99, ts, task_id, run_id, kind, step_idx, data FROM events WHERE seq = 3",
    "99"
)]
#[case::events_swapped("UPDATE events SET seq = 100 WHERE kind = 'step_started' AND step_idx = 0", "step")]
#[case::event_not_json("UPDATE events SET data = '{' WHERE seq = 3", "JSON")]
#[case::event_maimed("UPDATE events SET data = '{}' WHERE kind = 'step_started' AND step_idx = 0", "attempt")]
#[case::journal_of_nobody(
    "INSERT INTO events SELECT 99, ts, 'ghost', run_id, kind, step_idx, data FROM events WHERE seq = 1",
    "tables do not have it"
)]
fn what_was_changed_by_hand_is_found(#[case] sql: &str, #[case] says: &str) {
    let lab = done();
    assert_eq!(findings(&lab), Vec::<Value>::new());
    lab.sql(sql);
    let found = findings(&lab);
    let all: Vec<&str> = found.iter().map(|finding| finding["what"].as_str().unwrap()).collect();
    assert!(all.iter().any(|what| what.contains(says)), "{says:?} is not in {all:?}");
    assert!(all.iter().all(|what| !what.contains('\n')));
}

#[test]
fn a_damaged_page_is_found_and_no_command_makes_it_worse() {
    let lab = done();
    let mut bytes = fs::read(lab.path("state.db")).unwrap();
    for byte in &mut bytes[4096..] {
        *byte = 0x5a;
    }
    fs::write(lab.path("state.db"), &bytes).unwrap();
    let before = lab.tree();
    let ran = lab.agent(["verify"]);
    assert!([5, 78].contains(&ran.code), "{ran:?}");
    for arguments in [&["run", "t1"][..], &["status", "t1"], &["create", "t2", "plan.json"], &["list"]] {
        lab.agent(arguments).fails(78).says("state.db");
    }
    assert_eq!(lab.tree(), before);
}

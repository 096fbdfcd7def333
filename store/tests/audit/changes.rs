//! One change by hand after the other: what it is called.

use rstest::rstest;
use store::audit::Finding;

use crate::lab::{Lab, id};

/// One finding, of that step, that says so; and the other tasks stay sound.
#[rstest]
// The tables are changed.
#[case::a_done_step_is_pending(
    "UPDATE steps SET status = 'pending', output = NULL WHERE task_id = 't' AND idx = 0",
    Some(0),
    "the journal says done, the table says pending"
)]
#[case::a_running_step_is_pending(
    "UPDATE steps SET status = 'pending' WHERE task_id = 't' AND idx = 2",
    Some(2),
    "the journal says running, the table says pending"
)]
#[case::a_pending_step_is_done(
    "UPDATE steps SET status = 'done', output = '{}' WHERE task_id = 't' AND idx = 3",
    Some(3),
    "the journal says pending, the table says done"
)]
#[case::an_attempt_more(
    "UPDATE steps SET attempts = attempts + 1 WHERE task_id = 't' AND idx = 1",
    Some(1),
    "started 3 times in the journal, 4 attempts in the table"
)]
#[case::an_attempt_less(
    "UPDATE steps SET attempts = attempts - 1 WHERE task_id = 't' AND idx = 2",
    Some(2),
    "started 1 times in the journal, 0 attempts in the table"
)]
#[case::attempts_of_a_step_that_never_ran(
    "UPDATE steps SET attempts = 1 WHERE task_id = 't' AND idx = 3",
    Some(3),
    "started 0 times in the journal, 1 attempts in the table"
)]
#[case::a_forgiven_attempt(
    "UPDATE steps SET forgiven = 1 WHERE task_id = 't' AND idx = 1",
    Some(1),
    "0 attempts forgiven in the journal, 1 in the table"
)]
#[case::an_earlier_outcome(
    "UPDATE steps SET unknown = 1 WHERE task_id = 't' AND idx = 2",
    Some(2),
    "waits for nothing, intends nothing, earlier outcome known, waits for nothing, intends nothing, earlier outcome unknown \
     in the table"
)]
#[case::a_class(
    "UPDATE steps SET effect = 'once', input_sha256 = printf('%064d', 0) WHERE task_id = 't' AND idx = 0",
    Some(0),
    "intends once 0000"
)]
#[case::a_wait("UPDATE steps SET wait = 'time', due = 7 WHERE task_id = 't' AND idx = 3", Some(3), "waits until 7,")]
#[case::an_output_before_the_end(
    "UPDATE steps SET output = '{}' WHERE task_id = 't' AND idx = 3",
    Some(3),
    "pending and yet with an output"
)]
#[case::an_output_of_a_running_step(
    "UPDATE steps SET output = '{}' WHERE task_id = 't' AND idx = 2",
    Some(2),
    "running and yet with an output"
)]
#[case::an_output_that_is_no_json(
    "UPDATE steps SET output = '{\"value\":' WHERE task_id = 't' AND idx = 1",
    Some(1),
    "its output is not JSON"
)]
#[case::an_output_that_is_no_object(
    "UPDATE steps SET output = '[1]' WHERE task_id = 't' AND idx = 1",
    Some(1),
    "its output is a list, not an object"
)]
#[case::a_task_that_is_pending(
    "UPDATE tasks SET status = 'pending' WHERE id = 't'",
    None,
    "the journal says that the task is running, the table that it is pending"
)]
#[case::a_task_that_is_done(
    "UPDATE tasks SET status = 'done' WHERE id = 't'",
    None,
    "the journal says that the task is running, the table that it is done"
)]
#[case::the_last_step_is_gone(
    "DELETE FROM steps WHERE task_id = 't' AND idx = 3",
    None,
    "it was created with 4 steps, the table has 3"
)]
#[case::all_steps_are_gone(
    "DELETE FROM steps WHERE task_id = 't'",
    None,
    "it was created with 4 steps, the table has 0"
)]
#[case::a_step_too_many(
    "INSERT INTO steps(task_id, idx, tool, input) VALUES ('t', 4, 'echo', '{}')",
    None,
    "it was created with 4 steps, the table has 5"
)]
// The journal is changed.
#[case::a_run_that_names_no_recovery(
    "UPDATE events SET data = '{\"recovered\":[]}' WHERE seq = 11",
    None,
    "journal row 11 (run_started): it names [] as recovered, the journal has [1]"
)]
#[case::a_run_that_names_another_recovery(
    "UPDATE events SET data = '{\"recovered\":[2]}' WHERE seq = 11",
    None,
    "it names [2] as recovered, the journal has [1]"
)]
#[case::a_run_that_names_a_recovery_that_was_not(
    "UPDATE events SET data = '{\"recovered\":[0]}' WHERE seq = 4",
    None,
    "it names [0] as recovered, the journal has []"
)]
#[case::an_event_of_a_run_that_never_began(
    "UPDATE events SET run_id = 'r' WHERE seq = 9",
    Some(1),
    "journal row 9 (step_started): it is of run r, which has not begun or is over"
)]
#[case::an_event_of_a_run_that_is_over(
    "UPDATE events SET run_id = (SELECT run_id FROM events WHERE seq = 4) WHERE seq = 14",
    Some(2),
    "which has not begun or is over"
)]
#[case::a_recovery_at_the_end(
    "DELETE FROM events WHERE seq > 10 AND task_id = 't'",
    Some(1),
    "it was recovered, and no run_started says so"
)]
#[case::a_recovery_that_no_run_announces(
    "DELETE FROM events WHERE seq = 11",
    Some(1),
    "it was recovered, and no run_started says so"
)]
#[case::a_finish_stands_twice(
    "INSERT INTO events SELECT 1000, ts, task_id, run_id, kind, step_idx, data FROM events WHERE seq = 13",
    Some(1),
    "journal row 1000 (step_finished): it is about step 1 while step 2 is next"
)]
#[case::a_start_stands_twice(
    "INSERT INTO events SELECT 1000, ts, task_id, run_id, kind, step_idx, data FROM events WHERE seq = 14",
    Some(2),
    "journal row 1000 (step_started): step 2 was running"
)]
#[case::a_creation_stands_twice(
    "INSERT INTO events SELECT 1000, ts, task_id, run_id, kind, step_idx, data FROM events WHERE seq = 1",
    None,
    "journal row 1000 (task_created): the task is created a second time"
)]
#[case::an_event_of_a_step_that_is_not_there(
    "INSERT INTO events VALUES (1000, 9, 't', 'r', 'step_error', 9, '{\"error\":\"no\"}')",
    Some(9),
    "it is about step 9 while step 2 is next"
)]
#[case::an_end_that_was_not(
    "INSERT INTO events VALUES (1000, 9, 't', 'r', 'task_done', NULL, '{}')",
    None,
    "step 2 was not done"
)]
#[case::a_failure_that_was_not(
    "INSERT INTO events VALUES (1000, 9, 't', 'r', 'task_failed', 2, '{\"reason\":\"x\"}')",
    Some(2),
    "step 2 was running"
)]
#[case::a_count_that_is_off(
    "UPDATE events SET data = '{\"attempt\":2,\"tool\":\"echo\"}' WHERE seq = 5",
    Some(0),
    "journal row 5 (step_started): it counts 2, 1 is due"
)]
#[case::an_event_without_its_field(
    "UPDATE events SET data = '{}' WHERE seq = 8",
    Some(1),
    "journal row 8 (step_error): has no text `error`"
)]
#[case::an_event_without_its_step(
    "UPDATE events SET step_idx = NULL WHERE seq = 8",
    None,
    "journal row 8 (step_error): names no step"
)]
fn a_change_is_found(#[case] sql: &str, #[case] step: Option<u32>, #[case] says: &str) {
    let lab = Lab::new();
    lab.change(sql);
    let found = lab.findings(None);
    let named: Vec<&Finding> = found.iter().filter(|found| found.step == step && found.what.contains(says)).collect();
    assert_eq!(named.len(), 1, "{found:#?}");
    assert!(found.iter().all(|found| found.task == Some(id("t"))), "{found:#?}");
    assert_eq!(found, lab.findings(Some("t")), "it does not matter whether all tasks are audited or one");
    assert_eq!(lab.findings(Some("failed")), []);
}

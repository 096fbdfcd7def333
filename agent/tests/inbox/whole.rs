//! A log is read whole at each start: nothing that was written down about it is believed.

use std::fs;

use crate::lab::{Lab, run};

/// Notes enough for a log of more than 256 KiB, as much as was once remembered.
const NOTES: usize = 1200;

/// Rotation by copying and truncating emptied the log, others made it grow again, and what was remembered of its length
/// still held: 1,370 lines stayed missing for good.
#[test]
fn a_log_that_was_cut_and_grew_again_gets_back_what_it_lacks() {
    let lab = Lab::new();
    for note in 0..NOTES {
        lab.sandbox.write(format!("inbox/note-{note:04}.txt"), "some words");
    }
    lab.inbox_with([("AGENT_CRASH_AT", format!("before_effect:{}", NOTES - 1).as_str())]).exits(137);
    let whole = fs::read_to_string(lab.path("actions.jsonl")).unwrap();
    let tail: String = whole.lines().skip(700).map(|line| format!("{line}\n")).collect();
    let others = "{\"event\":\"step_done\",\"task\":\"other\",\"idx\":0}\n".repeat((whole.len() - tail.len()) / 44);
    fs::write(lab.path("actions.jsonl"), others + &tail).unwrap();
    let mut command = lab.command(["inbox", "--task", "t", "--inbox", "inbox"]);
    command.env("AGENT_CRASH_AT", "log.reconciled");
    run(command).exits(137);
    assert_eq!(lab.log("t").len(), whole.lines().count());
    lab.inbox().exits(0);
    lab.agent(["verify"]).exits(0);
}

#[test]
fn a_new_task_does_not_read_a_log_at_all() {
    let lab = Lab::new();
    let foreign = "{\"event\":\"task_created\",\"task\":\"t\",\"ts\":1}\n".repeat(10_000);
    lab.sandbox.write("actions.jsonl", &foreign);
    lab.inbox().exits(0);
    let created = lab.events("t").iter().filter(|(event, ..)| event == "task_created").count();
    assert_eq!(created, 10_001, "a line that stands there already cannot be about a task that was not there");
}

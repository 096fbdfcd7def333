//! A long log is not read from its start, as long as it is the log that it was.

use std::fs::{self, OpenOptions};
use std::io::Write;

use rusqlite::Connection;

use crate::lab::{Lab, run};

/// Notes enough for a log that is longer than what is always read whole.
const NOTES: usize = 1200;

/// A long task, killed at its last note but one.
fn long() -> Lab {
    let lab = Lab::new();
    for note in 0..NOTES {
        lab.sandbox.write(format!("inbox/note-{note:04}.txt"), "some words");
    }
    lab.inbox_with([("AGENT_CRASH_AT", format!("before_effect:{NOTES}").as_str())]).exits(137);
    lab
}

/// The kept position: the number of events, and where they end.
fn position(lab: &Lab) -> (i64, u64) {
    let database = Connection::open(lab.path("state.db")).unwrap();
    database
        .query_row("SELECT seq, offset FROM log_positions WHERE task_id = 't'", [], |row| {
            Ok((row.get(0)?, row.get::<_, i64>(1)? as u64))
        })
        .unwrap()
}

#[test]
fn what_stands_before_the_position_is_not_read_and_a_log_that_differs_there_is_read_whole() {
    let lab = long();
    let (seq, offset) = position(&lab);
    let whole = fs::read(lab.path("actions.jsonl")).unwrap();
    assert!(seq > 1000 && offset > 256 << 10 && offset < whole.len() as u64, "{seq} {offset} {}", whole.len());
    assert_eq!(whole[offset as usize - 1], b'\n');
    let second = whole.iter().position(|&byte| byte == b'\n').unwrap() + 1;
    let created = |lab: &Lab| lab.events("t").iter().filter(|(event, ..)| event == "task_created").count();
    let start = |content: &[u8]| {
        fs::write(lab.path("actions.jsonl"), content).unwrap();
        let mut command = lab.command(["inbox", "--task", "t", "--inbox", "inbox"]);
        command.env("AGENT_CRASH_AT", "log.reconciled");
        run(command).exits(137);
    };

    // The first line is made unreadable in place: nobody looks, so nobody misses it.
    let mut blotted = whole.clone();
    blotted[..second - 1].fill(b'x');
    start(&blotted);
    assert_eq!(created(&lab), 0);
    assert_eq!(fs::read(lab.path("actions.jsonl")).unwrap(), blotted);

    // The first line is taken out: what stands before the offset is no longer what stood there.
    start(&whole[second..]);
    assert_eq!(created(&lab), 1);
    assert_eq!(lab.log("t").last().unwrap().event.0, "task_created");

    // The log is cut before the offset, cut to nothing, and replaced by another.
    start(&whole[..offset as usize - 1000]);
    lab.inbox().exits(0);
    lab.assert_sound("t");
    let done = lab.log("t").len();
    fs::write(lab.path("actions.jsonl"), "x\n".repeat(300_000)).unwrap();
    lab.inbox().exits(0);
    assert_eq!(lab.log("t").len(), done + 1);
    lab.assert_sound("t");
}

#[test]
fn a_new_task_does_not_read_a_log_at_all() {
    let lab = Lab::new();
    let foreign = "{\"event\":\"task_created\",\"task\":\"t\",\"ts\":1}\n".repeat(10_000);
    lab.sandbox.write("actions.jsonl", &foreign);
    lab.inbox().exits(0);
    let created = lab.events("t").iter().filter(|(event, ..)| event == "task_created").count();
    assert_eq!(created, 10_001, "a line that stands there already cannot be about a task that was not there");
    assert_eq!(position(&lab).1, fs::metadata(lab.path("actions.jsonl")).unwrap().len());
}

#[test]
fn a_position_that_makes_no_sense_costs_a_reading_and_nothing_else() {
    let lab = long();
    let lines = lab.log("t").len();
    for (column, value) in [("offset", "-1"), ("offset", "9000000000"), ("offset", "offset - 1"), ("digest", "''")] {
        let database = Connection::open(lab.path("state.db")).unwrap();
        database.execute(&format!("UPDATE log_positions SET {column} = {value}"), []).unwrap();
        drop(database);
        lab.inbox_with([("AGENT_CRASH_AT", "log.reconciled")]).exits(137);
        assert_eq!(lab.log("t").len(), lines, "{column} = {value}");
    }
    lab.inbox().exits(0);
    lab.assert_sound("t");
}

#[test]
fn a_finished_task_does_not_read_what_others_have_written_since() {
    let lab = long();
    lab.inbox().exits(0);
    let (seq, offset) = position(&lab);
    assert_eq!(seq, lab.journal("t").last().unwrap()["seq"].as_i64().unwrap());
    assert_eq!(offset, fs::metadata(lab.path("actions.jsonl")).unwrap().len());
    let mut log = OpenOptions::new().append(true).open(lab.path("actions.jsonl")).unwrap();
    log.write_all("{\"event\":\"step_done\",\"task\":\"other\",\"idx\":0}\n".repeat(20_000).as_bytes()).unwrap();
    lab.inbox_with([("AGENT_CRASH_RECORD", "recording")]).exits(0);
    assert!(!lab.sandbox.read("recording").contains("log.scanned"));
    assert_eq!(lab.events("t").last().unwrap().0, "already_done");
}

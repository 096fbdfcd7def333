//! Logs made by hand: honest ones, and each way in which one can be wrong.

use serde_json::Value;

use crate::agent::process::Ended;
use crate::testing::{Story, breaks, holds};

const NAME: &str = "action_log";

/// One more run of the finished task, which leaves these lines.
fn again(story: &mut Story, lines: &[&str]) {
    let mut run = story.evidence.runs[0].clone();
    run.after = Some(story.last().clone());
    run.outcome.ended = Ended::Exited(0);
    run.kill = None;
    story.evidence.runs.push(run);
    let last = story.evidence.runs.len() - 1;
    story.bend_log(last, |log| log.extend(lines.iter().map(|line| (*line).to_owned())));
}

/// Changes one field of the `nth` line after run number `run`, and in every later look.
fn field(story: &mut Story, nth: usize, name: &str, to: &Value) {
    for run in 0..story.evidence.runs.len() {
        story.bend_log(run, |log| {
            if let Some(text) = log.get_mut(nth) {
                let mut line: Value = serde_json::from_str(text).expect("JSON");
                line[name] = to.clone();
                *text = line.to_string();
            }
        });
    }
}

/// The line at `at` is lost after the kill, and comes back in the resume.
fn lost_by_the_kill(point: &str) -> Story {
    let mut story = Story::inbox_killed_at(point);
    let mut lost = 0;
    story.bend_log(0, |log| {
        log.pop();
        lost = log.len();
    });
    story.bend_log(1, |log| {
        let mut line: Value = serde_json::from_str(&log[lost]).expect("JSON");
        line["reconciled"] = true.into();
        log[lost] = line.to_string();
    });
    story
}

const ALREADY: &str = r#"{"event":"already_done","task":"t1","ts":9.0}"#;

#[test]
fn an_honest_log_is_accepted_after_any_kill() {
    holds(NAME, &Story::killed_at("after_effect:1"));
    holds(NAME, &Story::inbox());
    for point in ["before_effect:0", "after_effect:1", "after_commit:2", "report.published"] {
        holds(NAME, &Story::inbox_killed_at(point));
        holds(NAME, &lost_by_the_kill(point));
    }
}

#[test]
fn a_finished_task_that_runs_again_says_already_done_once() {
    let mut story = Story::inbox();
    again(&mut story, &[ALREADY]);
    holds(NAME, &story);
    again(&mut story, &[]);
    breaks(NAME, &story, "0 new lines say already_done, must be 1");
    let mut story = Story::inbox();
    again(&mut story, &[ALREADY, ALREADY]);
    breaks(NAME, &story, "2 new lines say already_done");
    let mut story = Story::inbox_killed_at("after_effect:1");
    story.bend_log(1, |log| log.push(ALREADY.to_owned()));
    breaks(NAME, &story, "1 new lines say already_done, must be 0");
}

#[test]
fn a_line_that_is_lost_doubled_or_moved_is_rejected() {
    let lines = Story::inbox_killed_at("after_effect:1").evidence.last().log.clone().expect("a log");
    let count = lines.iter().filter(|byte| **byte == b'\n').count();
    assert_eq!(count, 10, "{}", String::from_utf8_lossy(&lines));
    for at in 0..count {
        // Without the kill's look, which would see each of these earlier.
        let story = || {
            let mut story = Story::inbox_killed_at("after_effect:1");
            story.evidence.runs[0].after = None;
            story
        };
        let mut lost = story();
        lost.bend_log(1, |log| drop(log.remove(at)));
        breaks(NAME, &lost, "log");
        let mut twice = story();
        twice.bend_log(1, |log| log.insert(at, log[at].clone()));
        breaks(NAME, &twice, "log");
        let mut moved = story();
        moved.bend_log(1, |log| log.swap(at, (at + 1) % count));
        breaks(NAME, &moved, "log");
    }
}

#[test]
fn the_last_line_may_be_lost_by_a_kill_and_by_nothing_else() {
    let mut story = Story::inbox();
    story.bend_log(0, |log| drop(log.pop()));
    breaks(NAME, &story, "lacks task_done, although a run came to its end");

    let mut story = Story::inbox_killed_at("after_effect:1");
    story.bend_log(0, |log| log.truncate(log.len() - 2));
    breaks(NAME, &story, "lacks step_done:0, step_started:1, and the task went on");
}

#[test]
fn a_line_that_comes_back_unmarked_and_a_mark_without_a_loss_are_rejected() {
    let mut story = lost_by_the_kill("after_commit:0");
    field(&mut story, 2, "reconciled", &false.into());
    breaks(NAME, &story, "step_done:0 was journaled by an earlier run and is not marked");

    let mut story = Story::inbox_killed_at("after_commit:0");
    field(&mut story, 4, "reconciled", &true.into());
    breaks(NAME, &story, "step_started:1 is marked as reconciled, and no crash has lost it");
}

#[test]
fn a_changed_log_and_a_continued_torn_line_are_rejected() {
    let mut story = Story::inbox_killed_at("after_effect:1");
    story.bend_log(1, |log| log[0].push(' '));
    breaks(NAME, &story, "was changed or removed");

    let mut story = lost_by_the_kill("after_effect:1");
    let torn = |story: &mut Story, end: &[u8]| {
        let cut = story.after(0).log.as_ref().expect("a log").len();
        story.after(0).log.as_mut().expect("a log").extend(b"{\"event\":\"step_st");
        let log = story.after(1).log.as_mut().expect("a log");
        let rest = log.split_off(cut);
        log.extend(b"{\"event\":\"step_st");
        log.extend(end);
        log.extend(rest);
    };
    torn(&mut story, b"\n");
    holds(NAME, &story);
    let mut story = lost_by_the_kill("after_effect:1");
    torn(&mut story, b"");
    breaks(NAME, &story, "sticks to the torn last line");
}

#[test]
fn foreign_lines_that_were_there_are_accepted_and_new_ones_without_a_kill_are_not() {
    let mut story = Story::inbox_killed_at("after_effect:1");
    let mut found = story.after(0).log.clone().expect("a log");
    found.extend(b"5\nnull\nnot JSON\n\xff\n");
    story.after(0).damaged_log = Some(found.clone());
    breaks(NAME, &story, "was changed or removed");
    let left = story.after(0).log.as_ref().expect("a log").len();
    let rest = story.after(1).log.as_mut().expect("a log").split_off(left);
    found.extend(rest);
    story.after(1).log = Some(found);
    holds(NAME, &story);
    story.after(1).log.as_mut().expect("a log").extend(b"{\"event\":\"ta{\"event\":\"task_done\"}\n");
    breaks(NAME, &story, "1 new lines are not JSON objects, after 0 kills and errors");
    // A full disk may have torn it.
    story.evidence.runs[1].outcome.ended = Ended::Exited(74);
    holds(NAME, &story);
}

#[test]
fn a_log_that_the_lab_has_removed_must_be_rebuilt_whole_and_marked() {
    let mut story = Story::inbox_killed_at("after_commit:0");
    story.after(0).damaged_log = Some(Vec::new());
    breaks(NAME, &story, "task_created was journaled by an earlier run and is not marked");
    for nth in 0..3 {
        story.bend_log(1, |log| log[nth].insert_str(1, "\"reconciled\":true,"));
    }
    holds(NAME, &story);
    story.bend_log(1, |log| drop(log.remove(0)));
    breaks(NAME, &story, "event 1 of the log is step_started:0, the journal has task_created");
}

#[test]
fn wrong_fields_are_rejected() {
    for (nth, name, to, why) in [
        (1, "name", "other.txt".into(), "must be \"abend.txt\""),
        (1, "name", Value::Null, "must be \"abend.txt\""),
        (0, "steps", 2.into(), "must be 3"),
        (3, "seq", 1.into(), "says `seq` 1"),
        (3, "run", "other".into(), "says `run`"),
        (2, "ts", Value::Null, "has no time"),
        (2, "idx", 1.into(), "event 3 of the log is step_done:1, the journal has step_done:0"),
    ] {
        let mut story = Story::inbox();
        field(&mut story, nth, name, &to);
        breaks(NAME, &story, why);
    }
}

#[test]
fn a_line_of_a_task_that_nobody_ran_is_rejected() {
    let mut story = Story::inbox();
    again(&mut story, &[]);
    story.evidence.runs[1].task = "t2".to_owned();
    holds(NAME, &story);
    story.bend_log(1, |log| log.push(ALREADY.to_owned()));
    breaks(NAME, &story, "no run wrote them");
}

//! Text is UTF-8, and comes out as it went in.

use crate::journal::assert_sound;
use crate::lab::Lab;

#[test]
fn export_prints_text_as_it_is() {
    let lab = Lab::new();
    let plan = r#"{"goal":"Grüße 🗼","steps":[{"tool":"fetch","input":{"path":"メモ/naïve.txt"}}]}"#;
    lab.write("plan.json", plan);
    lab.agent(["create", "t1", "plan.json"]).exits(0);
    lab.agent(["run", "t1"]).exits(2);
    let text = lab.agent(["export", "t1"]).exits(0).stdout;
    assert!(text.contains("メモ/naïve.txt") && !text.contains("\\u"), "{text}");
    let text = lab.agent(["status", "t1"]).exits(0).stdout;
    assert!(text.contains("Grüße 🗼"), "{text}");
    assert!(lab.agent(["list"]).exits(0).stdout.contains("Grüße 🗼"));
}

#[test]
fn the_report_is_the_first_lines_of_the_notes() {
    let lab = Lab::with_task();
    lab.agent(["run", "t1"]).exits(0);
    let notes = lab.sandbox.read("input/notes.txt");
    let lines: Vec<&str> = notes.lines().map(str::trim).filter(|line| !line.is_empty()).take(3).collect();
    assert_eq!(lab.report(), lines.join("\n"));
}

#[test]
fn bytes_that_are_not_utf_8_are_a_step_error_with_file_and_offset() {
    let lab = Lab::with_task();
    lab.write("input/notes.txt", b"Gr\xfc\xdfe");
    lab.agent(["run", "t1"]).exits(2).says("input/notes.txt").says("offset 2");
    let journal = lab.journal("t1");
    let error = journal.iter().find(|event| event["kind"] == "step_error").unwrap()["error"].as_str().unwrap();
    assert!(error.contains("input/notes.txt") && error.contains("offset 2"), "{error}");
    assert_sound(&lab, "t1", None);
}

#[test]
fn a_note_without_text_gives_an_empty_report() {
    let lab = Lab::with_task();
    lab.write("input/notes.txt", "\n \n");
    lab.agent(["run", "t1"]).exits(0);
    assert_eq!(lab.report(), "");
    assert_sound(&lab, "t1", None);
}

/// What a server says may have line breaks and have no end; the journal gets one bounded line.
#[test]
fn an_error_is_journaled_as_one_line_of_bounded_length() {
    let lab = Lab::new();
    let path = "a\\r\\nb\\u001b[31m/".to_owned() + &"é".repeat(5000);
    lab.write("plan.json", format!(r#"{{"goal":"g","steps":[{{"tool":"fetch","input":{{"path":"{path}"}}}}]}}"#));
    lab.agent(["create", "t1", "plan.json"]).exits(0);
    let ran = lab.agent(["run", "t1"]).exits(2);
    assert!(!ran.stderr.trim_end().contains(char::is_control), "{ran:?}");
    let journal = lab.journal("t1");
    let error = journal.iter().find(|event| event["kind"] == "step_error").unwrap()["error"].as_str().unwrap();
    assert!(error.starts_with("cannot read a b [31m/é") && error.ends_with('…') && error.len() <= 4100, "{error}");
}

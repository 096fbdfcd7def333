//! The lines of the log: which there are, what they carry, and what becomes of those that are not ours.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::Write;

use rstest::rstest;
use serde_json::Value;

use crate::lab::Lab;

fn objects(lab: &Lab) -> Vec<Value> {
    lab.sandbox.read("actions.jsonl").lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn an_undisturbed_run_has_a_line_for_every_event_and_none_is_reconciled() {
    let lab = Lab::done();
    let shown: Vec<String> = lab
        .events("t")
        .into_iter()
        .map(|(event, step, name)| match (step, name) {
            (Some(step), Some(name)) => format!("{event} {step} {name}"),
            _ => event,
        })
        .collect();
    let due = [
        "task_created",
        "step_started 0 a.txt",
        "step_done 0 a.txt",
        "step_started 1 b.txt",
        "step_done 1 b.txt",
        "step_started 2 ü.txt",
        "step_done 2 ü.txt",
        "task_done",
    ];
    assert_eq!(shown, due);
    assert!(lab.log("t").iter().all(|line| !line.reconciled));
    assert!(lab.sandbox.read("actions.jsonl").contains("ü.txt"), "UTF-8 as it is, not escaped");
    assert_eq!(objects(&lab)[0]["steps"], 3);
    lab.assert_sound("t");
}

#[test]
fn a_finished_task_appends_that_it_was_done_and_nothing_else() {
    let lab = Lab::done();
    for times in 1..4 {
        lab.inbox().exits(0).says("already done");
        let log = lab.events("t");
        assert_eq!(log.len(), 8 + times);
        assert_eq!(log[8..].iter().filter(|(event, ..)| event == "already_done").count(), times);
    }
    lab.assert_sound("t");
}

#[test]
fn a_resumption_names_the_step_that_it_found_under_way() {
    let lab = Lab::killed_at("before_effect:1");
    lab.inbox().exits(0);
    let resumed: Vec<Value> = objects(&lab).into_iter().filter(|line| line["event"] == "task_resumed").collect();
    assert_eq!(resumed.len(), 1);
    assert_eq!(resumed[0]["recovered"], serde_json::json!([1]));
}

#[test]
fn a_log_that_was_lost_whole_is_rebuilt_in_the_order_of_the_journal() {
    let lab = Lab::killed_at("before_effect:1");
    lab.remove("actions.jsonl");
    lab.inbox().exits(0);
    lab.assert_sound("t");
    let marked: Vec<bool> = lab.log("t").iter().map(|line| line.reconciled).collect();
    assert_eq!(marked.iter().position(|marked| !marked), Some(4), "what this run did is not marked: {marked:?}");

    lab.remove("actions.jsonl");
    lab.inbox().exits(0);
    lab.assert_sound("t");
    let log = lab.log("t");
    assert!(log[..log.len() - 1].iter().all(|line| line.reconciled));
}

#[test]
fn any_one_line_that_is_taken_out_comes_back_once() {
    let lab = Lab::killed_at("before_effect:1");
    lab.inbox().exits(0);
    let whole = lab.sandbox.read("actions.jsonl");
    let lines: Vec<&str> = whole.split_inclusive('\n').collect();
    for at in 0..lines.len() {
        let lacking: String =
            lines.iter().enumerate().filter(|(other, _)| *other != at).map(|(_, line)| *line).collect();
        lab.sandbox.write("actions.jsonl", &lacking);
        lab.inbox().exits(0);
        let found = lab.sandbox.read("actions.jsonl");
        let more: Vec<Value> = found[lacking.len()..].lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(more.len(), 2, "{more:?}");
        let mut line: Value = serde_json::from_str(lines[at]).unwrap();
        line["reconciled"] = true.into();
        assert_eq!([&more[0], &more[1]["event"]], [&line, &"already_done".into()]);
    }
}

/// Each is put before, between and after the lines of a run that was killed.
#[rstest]
#[case::values(b"5\nnull\n\"step_done\"\n[]\n{}\n")]
#[case::list(b"[\"task_done\",\"t\",null,\"r\",1]\n")]
#[case::other_program(b"{\"level\":\"info\",\"task\":7,\"msg\":\"rotated\"}\n127.0.0.1 - - GET /\n\n\r\n")]
#[case::other_task(b"{\"event\":\"task_done\",\"task\":\"other\",\"ts\":1,\"run\":\"r\",\"seq\":9}\n")]
#[case::not_utf8(b"\xff\xfe\x00\n\xc3\n")]
#[case::half_a_line(b"{\"event\":\"step_done\",\"task\":\"t\",\"idx\":1,\"na\n")]
#[case::huge(&[b'x'; 200_000])]
fn lines_that_are_not_ours_are_skipped_and_kept(#[case] foreign: &[u8]) {
    let lab = Lab::new();
    let append = |bytes: &[u8]| {
        let log = OpenOptions::new().create(true).append(true).open(lab.path("actions.jsonl"));
        log.unwrap().write_all(bytes).unwrap();
    };
    append(foreign);
    lab.inbox_with([("AGENT_CRASH_AT", "before_effect:1")]).exits(137);
    append(foreign);
    lab.inbox().exits(0);
    append(foreign);
    lab.inbox().exits(0).says("already done");
    lab.assert_sound("t");
    let found = fs::read(lab.path("actions.jsonl")).unwrap();
    let kept = found.windows(foreign.len()).filter(|window| window == &foreign).count();
    assert_eq!(kept, 3);
}

#[test]
fn a_tear_at_any_byte_of_the_last_line_is_sealed_and_the_line_comes_back() {
    let whole = Lab::killed_at("log.appended:2#1");
    let text = fs::read(whole.path("actions.jsonl")).unwrap();
    assert!(text.ends_with(b"}\n"));
    let last = text[..text.len() - 1].iter().rposition(|&byte| byte == b'\n').unwrap() + 1;
    let inside = text[last..].iter().position(|&byte| byte == 0xc3).unwrap();
    // Within the character of the note's name, at both ends of the line, and here and there.
    for cut in [1, inside + 1, text.len() - last - 2, text.len() - last - 1, 20, 77] {
        let torn = &text[..last + cut];
        whole.sandbox.write("actions.jsonl", torn);
        let lab = copy(&whole);
        lab.inbox().exits(0);
        let found = fs::read(lab.path("actions.jsonl")).unwrap();
        assert_eq!(&found[..torn.len()], torn, "cut at {cut}: what was there stays");
        assert_eq!(found[torn.len()], b'\n', "cut at {cut}");
        lab.assert_sound("t");
        let started = lab.events("t").iter().filter(|(e, step, _)| e == "step_started" && *step == Some(2)).count();
        assert_eq!(started, 2, "cut at {cut}");
    }
}

fn copy(from: &Lab) -> Lab {
    let lab = Lab { sandbox: fixtures::Sandbox::new() };
    for (name, what) in from.sandbox.tree() {
        if what.starts_with(|c: char| c.is_ascii_digit()) {
            lab.sandbox.write(&name, fs::read(from.path(&name)).unwrap());
        }
    }
    lab
}

#[test]
fn a_line_of_an_older_agent_that_does_not_say_which_event_it_is_stands_for_the_first_that_fits() {
    let lab = Lab::killed_at("after_commit:1");
    let log = [
        r#"{"event": "task_created", "task": "t", "steps": 3, "ts": 1}"#,
        r#"{"event": "step_started", "task": "t", "idx": 0, "name": "a.txt", "ts": 2}"#,
        r#"{"event": "step_done", "task": "t", "idx": 0, "name": "a.txt", "ts": 3}"#,
        r#"{"event": "step_started", "task": "t", "idx": 1, "name": "b.txt", "ts": 4}"#,
    ];
    lab.sandbox.write("actions.jsonl", log.join("\n"));
    lab.inbox().exits(0);
    let mut count: BTreeMap<_, usize> = BTreeMap::new();
    for (event, step, _) in lab.events("t") {
        *count.entry((event, step)).or_default() += 1;
    }
    assert!(count.values().all(|&times| times == 1), "{count:?}");
    let reconciled: Vec<_> = lab.log("t").into_iter().filter(|line| line.reconciled).map(|line| line.event).collect();
    assert_eq!(reconciled, [("step_done".to_owned(), Some(1), Some("b.txt".to_owned()))]);
}

#[test]
fn a_database_that_was_made_anew_is_not_taken_for_the_one_that_the_log_speaks_of() {
    let lab = Lab::done();
    for name in ["state.db", "report.json"] {
        lab.remove(name);
    }
    lab.inbox().exits(0);
    let created = lab.events("t").iter().filter(|(event, ..)| event == "task_created").count();
    assert_eq!(created, 2, "the same task and the same numbers, another run");
}

/// Another program journaled events with fields that are called like those of every line, and an error of more than 64
/// KiB. Each run took them for events that the log lacks, and wrote them once more; `export` printed names twice.
#[test]
fn events_of_another_program_get_one_line_each_whatever_is_in_them() {
    let lab = Lab::done();
    let taken =
        r#"{"error":"no","seq":1,"event":"x","task":"x","ts":0,"run":"x","idx":"x","kind":1,"step":2,"data":3}"#;
    let long = serde_json::json!({ "error": "é".repeat(50_000) }).to_string();
    let conn = rusqlite::Connection::open(lab.path("state.db")).unwrap();
    for data in [taken, &long] {
        let sql = "INSERT INTO events(ts, task_id, run_id, kind, step_idx, data) VALUES (1.5, 't', 'other', 'step_error', 0, ?1)";
        conn.execute(sql, [data]).unwrap();
    }
    drop(conn);
    for times in 1..4 {
        lab.inbox().exits(0).says("already done");
        assert_eq!(lab.log("t").len(), 8 + 2 + times);
    }
    let errors: Vec<Value> = objects(&lab).into_iter().filter(|line| line["event"] == "step_error").collect();
    assert_eq!((&errors[0]["error"], &errors[0]["data"]["seq"]), (&"no".into(), &1.into()));
    assert_eq!((&errors[1]["cut"], errors[1]["error"].as_str().unwrap().ends_with('…')), (&true.into(), true));

    let output = lab.command(["export", "t"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let line = text.lines().find(|line| line.contains("\"no\"")).unwrap();
    let due = r#""run":"other","kind":"step_error","step":0,"error":"no","event":"x","idx":"x","task":"x","data":{"#;
    assert!(
        line.contains(due) && line.ends_with(r#""data":{"data":3,"kind":1,"run":"x","seq":1,"step":2,"ts":0}}"#),
        "{line}"
    );
}

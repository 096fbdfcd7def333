//! The plan, the report, and what may stand in their way.

use std::fs;
use std::os::unix::fs::symlink;

use rstest::rstest;
use serde_json::json;

use crate::lab::{Lab, REPORT};

#[test]
fn every_note_is_counted_and_the_report_has_them_in_order() {
    let lab = Lab::done();
    assert_eq!(lab.sandbox.read("report.json"), REPORT);
    let report: serde_json::Value = serde_json::from_str(REPORT).unwrap();
    assert_eq!(report[1], json!({"file": "b.txt", "words": 4, "sha256": "6c9e7dd529e3"}));
    let status = lab.status("t");
    assert_eq!(status["status"], "done");
    assert_eq!(status["steps"].as_array().unwrap().len(), 3, "the report is not a step");
    lab.assert_sound("t");
}

#[test]
fn a_note_that_comes_later_does_not_shift_the_plan() {
    let lab = Lab::killed_at("after_commit:0");
    lab.sandbox.write("inbox/0.txt", "too early");
    lab.sandbox.write("inbox/aa.txt", "in between");
    lab.inbox().exits(0);
    assert_eq!(lab.sandbox.read("report.json"), REPORT);
    lab.assert_sound("t");
}

#[test]
fn an_inbox_that_is_missing_is_an_error_and_leaves_no_trace() {
    let lab = Lab::new();
    let before = lab.sandbox.tree();
    lab.agent(["inbox", "--task", "t", "--inbox", "inbux"]).exits(66).says("inbux");
    lab.agent(["inbox", "--task", "t", "--inbox", "inbox/a.txt"]).exits(66).says("a.txt");
    assert_eq!(lab.sandbox.tree(), before);
}

#[test]
fn an_empty_inbox_is_said_to_be_empty_and_its_report_is_an_empty_list() {
    let lab = Lab::new();
    fs::create_dir(lab.path("empty")).unwrap();
    lab.agent(["inbox", "--task", "t", "--inbox", "empty"]).exits(0).says("empty");
    assert_eq!(lab.sandbox.read("report.json"), "[]\n");
    assert_eq!(lab.status("t")["status"], "done");
    lab.assert_sound("t");
    lab.agent(["inbox", "--task", "t", "--inbox", "empty"]).exits(0).says("already done");
    assert_eq!(lab.events("t").last().unwrap().0, "already_done");
}

#[rstest]
#[case::vanished(None, "b.txt: No such file")]
#[case::not_utf8(Some(&b"Gr\xfc\xdfe"[..]), "b.txt is not UTF-8")]
fn a_note_that_cannot_be_counted_fails_its_step_and_the_task_can_be_retried(
    #[case] content: Option<&[u8]>,
    #[case] says: &str,
) {
    let lab = Lab::killed_at("before_effect:0");
    let note = fs::read(lab.path("inbox/b.txt")).unwrap();
    match content {
        Some(content) => lab.sandbox.write("inbox/b.txt", content),
        None => lab.remove("inbox/b.txt"),
    }
    lab.inbox().exits(2).says(says);
    assert_eq!(
        lab.status("t")["steps"][1],
        json!({"idx": 1, "tool": "count_words", "status": "failed", "attempts": 3})
    );
    assert!(!lab.path("report.json").exists());
    let shown = |event: &str| lab.events("t").iter().filter(|(shown, ..)| shown == event).count();
    assert_eq!([shown("step_error"), shown("task_failed"), shown("task_done")], [3, 1, 0]);

    let lines = lab.log("t").len();
    lab.inbox().exits(2).says("already failed");
    assert_eq!(lab.log("t").len(), lines, "a task that has failed does nothing, and so logs nothing");

    lab.sandbox.write("inbox/b.txt", note);
    lab.agent(["retry", "t"]).exits(0);
    lab.inbox().exits(0);
    assert_eq!(lab.sandbox.read("report.json"), REPORT);
    assert_eq!([shown("task_retried"), shown("task_done")], [1, 1]);
    lab.assert_sound("t");
}

#[rstest]
#[case::inbox(&["--inbox", "other"], "is about the inbox inbox, not other")]
#[case::out(&["--inbox", "inbox", "--out", "other.json"], "has its report at report.json, not other.json")]
#[case::default_out(&["--inbox", "inbox", "--out", "inbox/report.json"], "has its report at")]
fn a_task_keeps_its_inbox_and_its_report(#[case] arguments: &[&str], #[case] says: &str) {
    let lab = Lab::killed_at("before_effect:1");
    fs::create_dir(lab.path("other")).unwrap();
    let before = lab.sandbox.tree();
    lab.agent(["inbox", "--task", "t"].iter().chain(arguments)).exits(64).says(says);
    assert_eq!(lab.sandbox.tree(), before);
}

#[test]
fn another_spelling_of_the_same_place_is_the_same_place() {
    let lab = Lab::killed_at("before_effect:1");
    let out = lab.path("report.json");
    let arguments = ["inbox", "--task", "t", "--inbox", "./inbox/../inbox/", "--out", out.to_str().unwrap()];
    lab.agent(arguments).exits(0);
    assert_eq!(lab.sandbox.read("report.json"), REPORT);
}

#[test]
fn a_task_of_another_kind_is_not_taken_for_an_inbox() {
    let lab = Lab::new();
    lab.agent(["create", "t", "plan.json"]).exits(0);
    let before = lab.sandbox.tree();
    lab.inbox().exits(64).says("agent run");
    assert_eq!(lab.sandbox.tree(), before);
}

#[rstest]
#[case::db(&["--out", "./state.db"], "--out")]
#[case::log(&["--out", "actions.jsonl"], "is the report of the task")]
#[case::log_by_a_link(&["--out", "here/actions.jsonl"], "is the report of the task")]
#[case::log_is_a_note(&["--log", "inbox/b.txt"], "would be a note")]
#[case::log_is_a_new_note(&["--log", "here/inbox/z.txt"], "would be a note")]
#[case::wal_by_a_link(&["--out", "here/state.db-wal"], "file of the database")]
#[case::log_db_by_a_link(&["--log", "here/state.db"], "file of the database")]
#[case::own_lock(&["--log", "state.db.t.lock"], "lock of the database")]
#[case::lock_of_another(&["--out", "here/state.db.other.lock"], "lock of the database")]
#[case::log_db(&["--log", "inbox/../state.db"], "--log")]
#[case::wal(&["--out", "state.db-wal"], "file of the database")]
#[case::note(&["--out", "./inbox/b.txt"], "is a note")]
#[case::folder(&["--out", "inbox"], "is a folder")]
#[case::no_file(&["--out", ".."], "names no file")]
#[case::temporary(&["--out", ".t-report.17.tmp"], "temporary")]
#[case::delay(&["--delay", "-1"], "0 to 86400")]
#[case::no_delay(&["--delay", "soon"], "0 to 86400")]
fn what_makes_no_sense_is_refused_before_anything_happens(#[case] more: &[&str], #[case] says: &str) {
    let lab = Lab::new();
    symlink(".", lab.path("here")).unwrap();
    let before = lab.sandbox.tree();
    lab.inbox_and(more).exits(64).says(says);
    assert_eq!(lab.sandbox.tree(), before);
}

/// The report was written over the log that `agent run` had been given, and the log was gone.
#[test]
fn a_run_takes_no_log_that_its_report_would_replace() {
    let lab = Lab::killed_at("before_effect:1");
    symlink(".", lab.path("here")).unwrap();
    let before = lab.sandbox.tree();
    for log in ["report.json", "here/report.json", "inbox/a.txt"] {
        lab.agent(["run", "t", "--log", log]).exits(64).says("--log");
        assert_eq!(lab.sandbox.tree(), before, "{log}");
    }
    lab.inbox().exits(0);
    lab.assert_sound("t");
}

/// It was found out when every note had been counted, and the task was bound to that place.
#[test]
fn a_place_where_no_report_can_stand_is_refused_before_anything_is_stored() {
    let lab = Lab::new();
    symlink("elsewhere", lab.path("link.json")).unwrap();
    let long = "x".repeat(256);
    let before = lab.sandbox.tree();
    for out in ["link.json", "/dev/null", "inbox/a.txt/r.json", &long] {
        lab.inbox_and(&["--out", out]).exits(73).says("the report");
        assert_eq!(lab.sandbox.tree(), before, "{out}");
    }
}

#[rstest]
#[case("a.json", "a.txt")]
#[case("a.tmp", "a")]
#[case(".t-report.tmp", ".a-report.1.tmp")]
#[case("new/folder/r.json", "new/folder/r.json.tmp")]
fn reports_of_any_names_do_not_get_in_each_others_way(#[case] one: &str, #[case] other: &str) {
    let lab = Lab::new();
    lab.inbox_and(&["--out", one]).exits(0);
    let arguments = ["inbox", "--task", "u", "--inbox", "inbox", "--out", other];
    lab.agent(arguments).exits(0);
    for out in [one, other] {
        assert_eq!(lab.sandbox.read(out), REPORT, "{out}");
    }
    lab.inbox_and(&["--out", one]).exits(0).says_nothing_of("missing");
    lab.agent(arguments).exits(0).says_nothing_of("missing");
}

#[test]
fn a_file_that_stands_in_the_reports_place_is_replaced_and_a_link_is_left_alone() {
    let lab = Lab::new();
    lab.sandbox.write("report.json", "an old report of another task");
    lab.inbox().exits(0);
    assert_eq!(lab.sandbox.read("report.json"), REPORT);

    let lab = Lab::killed_at("before_effect:1");
    symlink("elsewhere", lab.path("report.json")).unwrap();
    lab.agent(["run", "t"]).exits(73).says("link");
    assert_eq!(lab.status("t")["status"], "running", "without its report the task is not done");
    lab.remove("report.json");
    lab.inbox().exits(0);
    assert_eq!(lab.sandbox.read("report.json"), REPORT);
    lab.assert_sound("t");
}

#[rstest]
fn a_report_that_is_gone_or_changed_comes_back_from_the_results(
    #[values(None, Some(""), Some("[]\n"))] instead: Option<&str>,
    #[values(&["inbox", "--task", "t", "--inbox", "inbox"], &["run", "t"])] by: &[&str],
) {
    let lab = Lab::done();
    fs::remove_dir_all(lab.path("inbox")).unwrap();
    match instead {
        Some(text) => lab.sandbox.write("report.json", text),
        None => lab.remove("report.json"),
    }
    lab.agent(["verify"]).exits(5);
    lab.agent(by).exits(0).says("there again");
    assert_eq!(lab.sandbox.read("report.json"), REPORT);
    lab.agent(by).exits(0).says_nothing_of("there again");
    lab.agent(["verify"]).exits(0);
}

#[test]
fn plain_run_ends_an_inbox_task_in_the_same_way() {
    let lab = Lab::killed_at("before_effect:1");
    lab.agent(["run", "t"]).exits(0);
    assert_eq!(lab.sandbox.read("report.json"), REPORT);
    lab.inbox().exits(0).says("already done");
    lab.assert_sound("t");
}

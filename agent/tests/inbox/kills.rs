//! A kill at every crash point that an inbox passes, on every way that it may take.

use std::collections::BTreeSet;
use std::fs;

use rstest::rstest;

use crate::agreement::counts;
use crate::lab::{Lab, REPORT};

/// Where a run begins: each of these passes points that the others do not.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Start {
    /// Nothing is there.
    Fresh,
    /// The task is created, and its first run died before it began.
    Created,
    /// A step is under way.
    Resumed,
    /// The same, and the log ends in half a line.
    Torn,
    /// The same, and the log is gone.
    Lost,
    /// The report is there, the task is not done.
    Reported,
    /// All is done but the last line of the log.
    Unlogged,
    /// All is done; report and log are gone.
    Bare,
}

impl Start {
    /// The lab, and how many kills while the task ran it took to get there.
    fn lab(self) -> (Lab, usize) {
        match self {
            Self::Fresh => (Lab::new(), 0),
            Self::Created => (Lab::killed_at("commit.done"), 1),
            Self::Resumed => (Lab::killed_at("after_effect:1"), 1),
            Self::Torn => {
                let lab = Lab::killed_at("after_effect:1");
                let log = fs::read(lab.path("actions.jsonl")).unwrap();
                fs::write(lab.path("actions.jsonl"), &log[..log.len() - 40]).unwrap();
                (lab, 1)
            }
            Self::Lost => {
                let lab = Lab::killed_at("after_effect:1");
                lab.remove("actions.jsonl");
                (lab, 1)
            }
            Self::Reported => (Lab::killed_at("report.published"), 1),
            Self::Unlogged => (Lab::killed_at("commit.done#3"), 1),
            Self::Bare => {
                let lab = Lab::done();
                lab.remove("report.json");
                lab.remove("actions.jsonl");
                (lab, 0)
            }
        }
    }

    /// The points that a run from here passes, in order.
    fn points(self) -> Vec<String> {
        let (lab, _) = self.lab();
        lab.inbox_with([("AGENT_CRASH_RECORD", "recording")]).exits(0);
        let text = lab.sandbox.read("recording");
        text.lines().map(str::to_owned).collect()
    }
}

#[rstest]
#[case(Start::Fresh)]
#[case(Start::Created)]
#[case(Start::Resumed)]
#[case(Start::Torn)]
#[case(Start::Lost)]
#[case(Start::Reported)]
#[case(Start::Unlogged)]
#[case(Start::Bare)]
fn after_a_kill_at_any_point_log_journal_and_report_are_those_of_an_undisturbed_run(#[case] start: Start) {
    let points = start.points();
    assert!(points.len() >= 5, "{points:?}");
    for point in points {
        let (lab, kills) = start.lab();
        lab.inbox_with([("AGENT_CRASH_AT", point.as_str())]).exits(137);
        let report = fs::read(lab.path("report.json")).ok();
        assert!(report.is_none_or(|report| report == REPORT.as_bytes()), "{start:?}, {point}: a partial report");
        lab.inbox().exits(0);
        assert_eq!(lab.sandbox.read("report.json"), REPORT, "{start:?}, {point}");
        lab.assert_sound("t");
        counts(&lab.log("t"), 3, kills + 1).unwrap_or_else(|why| panic!("{start:?}, {point}: {why}"));

        let lines = lab.events("t");
        lab.inbox().exits(0);
        let more = lab.events("t").split_off(lines.len());
        assert_eq!(
            more,
            [("already_done".to_owned(), None, None)],
            "{start:?}, {point}: reconciling twice adds nothing"
        );
    }
}

#[test]
fn no_declared_point_of_the_log_and_the_report_is_missed_by_these_kills() {
    let lab = Lab::new();
    let output = lab.command(["tools", "--json"]).output().unwrap();
    let inventory: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let declared = inventory["further_crash_points"].as_array().unwrap().iter();
    let declared: BTreeSet<String> = declared.map(|point| point["site"].as_str().unwrap().to_owned()).collect();
    assert!(declared.len() >= 10, "{declared:?}");
    let starts = [Start::Fresh, Start::Resumed, Start::Torn, Start::Lost, Start::Reported, Start::Bare];
    let passed: BTreeSet<String> = starts.into_iter().flat_map(Start::points).collect();
    let sites: BTreeSet<String> = passed.iter().map(|p| p.split([':', '#']).next().unwrap().to_owned()).collect();
    let missed: Vec<_> = declared.difference(&sites).collect();
    assert!(missed.is_empty(), "{missed:?}");
    let undeclared: Vec<_> =
        sites.difference(&declared).filter(|s| s.starts_with("log.") || s.starts_with("report.")).collect();
    assert!(undeclared.is_empty(), "{undeclared:?}");
}

#[rstest]
#[case::between_commit_and_line("log.before_append:1#2", "step_done", Some(1))]
#[case::of_the_first_line("log.before_append", "task_created", None)]
#[case::of_the_last_line("commit.done#4", "task_done", None)]
#[case::of_a_resumption("commit.done:0", "task_resumed", None)]
fn a_line_that_a_kill_has_lost_is_in_the_log_after_the_next_start_and_marked(
    #[case] point: &str,
    #[case] event: &str,
    #[case] step: Option<u64>,
) {
    let lab = if event == "task_resumed" { Lab::killed_at("before_effect:0") } else { Lab::new() };
    lab.inbox_with([("AGENT_CRASH_AT", point)]).exits(137);
    let is_it = |line: &crate::agreement::Line| (line.event.0.as_str(), line.event.1) == (event, step);
    assert!(!lab.log("t").iter().any(is_it), "it is lost");
    lab.inbox().exits(0);
    let found: Vec<bool> = lab.log("t").iter().filter(|line| is_it(line)).map(|line| line.reconciled).collect();
    let due: &[bool] = if event == "task_resumed" { &[true, false] } else { &[true] };
    assert_eq!(found, due);
    lab.assert_sound("t");
}

#[rstest]
#[case(&["run", "t"], "log.appended:0", "--log")]
#[case(&["run", "t"], "log.sealed", "--log")]
#[case(&["run", "t"], "report.written", "inbox")]
#[case(&["run", "t", "--log", "l"], "report.written", "inbox")]
#[case(&["run", "t", "--log", "l"], "log.appended:3", "the plan has 3 steps")]
#[case(&["run", "t", "--log", "l"], "log.sealed:0", "outside the steps")]
#[case(&["run", "t", "--log", "l"], "log.slip", "no such crash point")]
#[case(&["inbox", "--task", "u", "--inbox", "inbox"], "log.appended:3", "the plan has 3 steps")]
#[case(&["inbox", "--task", "u", "--inbox", "inbox"], "write_artifact.linked:0", "step 0 calls count_words")]
#[case(&["create", "u", "plan.json"], "log.appended:0", "--log")]
fn a_point_that_cannot_be_passed_is_refused(#[case] arguments: &[&str], #[case] point: &str, #[case] says: &str) {
    let lab = Lab::new();
    lab.agent(["create", "t", "plan.json"]).exits(0);
    let before = lab.sandbox.tree();
    let mut command = lab.command(arguments);
    command.env("AGENT_CRASH_AT", point);
    crate::lab::run(command).exits(64).says(says);
    assert_eq!(lab.sandbox.tree(), before);
}

//! The inbox case: this workspace's agent passes, a copy of it with one bug in its log or its report is caught, and an
//! agent without the command is left alone.

use std::path::PathBuf;
use std::process::Command;
use std::sync::LazyLock;

use predicates::prelude::PredicateBooleanExt as _;
use predicates::str::contains;
use rstest::rstest;
use tempfile::TempDir;

use crate::support::{chaos, honest};

/// This workspace's agent as its sources stand now, where cargo says that it lies. An example is selected with it as
/// when all tests are built, or cargo would build the agent once more with features of its own.
static AGENT: LazyLock<PathBuf> = LazyLock::new(|| {
    let selection = ["--workspace", "--bin", "agent", "--example", "floor"];
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--quiet", "--message-format=json"]).args(selection);
    let built = cargo.output().expect("cargo");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let messages = built.stdout.split(|&byte| byte == b'\n');
    let mut messages = messages.filter_map(|line| serde_json::from_slice::<serde_json::Value>(line).ok());
    let agent = messages.find(|it| it["target"]["name"] == "agent" && it["executable"].is_string());
    PathBuf::from(agent.expect("an agent")["executable"].as_str().expect("a path"))
});

/// The agent in a script that does something before and after each call of `inbox`. It records nothing, so that only
/// the contract's points are found, which is quick.
struct Wrapped(TempDir);

impl Wrapped {
    fn new(before: &str, after: &str) -> Self {
        let dir = TempDir::new().expect("dir");
        let agent = AGENT.display();
        let script = format!(
            "unset AGENT_CRASH_RECORD\n\
             resumed=; [ -e actions.jsonl ] && resumed=1\n\
             {before}\n\
             '{agent}' \"$@\"; code=$?\n\
             case \"$*\" in *--help*|*tools*) exit $code;; esac\n\
             {after}\n\
             [ $code -gt 128 ] && kill -$((code - 128)) $$\n\
             exit $code\n"
        );
        std::fs::write(dir.path().join("agent.sh"), script).expect("write");
        Self(dir)
    }

    fn command(&self) -> String {
        format!("sh '{}'", self.0.path().join("agent.sh").display())
    }
}

fn replay(agent: &str, subject: &str) -> assert_cmd::Command {
    chaos(&["replay", subject, "--agent", agent, "--plan", "inbox", "--seed", "7"])
}

#[rstest]
#[case::last_line_dropped(
    "",
    "[ $resumed ] && sed -i '$d' actions.jsonl",
    "points/inbox/after_effect:1",
    "action_log",
    "the log lacks task_done"
)]
#[case::step_done_twice(
    "",
    "[ $resumed ] && grep step_done actions.jsonl | tail -n 1 >> actions.jsonl",
    "points/inbox/after_effect:1",
    "action_log",
    "event 11 of the log is step_done:2, the journal has nothing more"
)]
#[case::resumed_unsaid(
    "",
    "sed -i /task_resumed/d actions.jsonl",
    "points/inbox/before_effect:0",
    "action_log",
    "the journal has task_resumed"
)]
#[case::mark_forgotten(
    "",
    "sed -i 's/\"reconciled\":true/\"reconciled\":false/' actions.jsonl",
    "log.before_append:1#2",
    "action_log",
    "step_done:1 was journaled by an earlier run and is not marked"
)]
#[case::lost_log_not_rebuilt(
    "new=; [ -e state.db ] && [ ! -e actions.jsonl ] && new=1",
    "[ $new ] && sed -i /reconciled/d actions.jsonl",
    "log/inbox/lost, before_effect:1",
    "action_log",
    "the journal has task_created"
)]
#[case::torn_line_removed(
    "[ $resumed ] && [ -n \"$(tail -c 1 actions.jsonl)\" ] && sed -i '$d' actions.jsonl",
    "",
    "log/inbox/torn, before_effect:2",
    "action_log",
    "something sticks to the torn last line"
)]
#[case::foreign_lines_removed(
    "[ $resumed ] && sed -i /event/!d actions.jsonl",
    "",
    "log/inbox/foreign, before_effect:1",
    "action_log",
    "what stood in the log was changed or removed"
)]
#[case::silent_when_done(
    "",
    "sed -i /already_done/d actions.jsonl",
    "rerun/inbox/done",
    "action_log",
    "0 new lines say already_done, must be 1"
)]
#[case::partial_report_at_the_kill(
    "",
    "[ $code -eq 137 ] && printf '[\\n{\"file\":\"ab' > report.json",
    "points/inbox/after_commit:2",
    "report_whole",
    "not whole JSON (13 bytes)"
)]
#[case::report_before_its_time(
    "",
    "[ $code -eq 137 ] && echo '[]' > report.json",
    "points/inbox/after_commit:0",
    "report_whole",
    "its steps [1, 2] are not done"
)]
#[case::report_not_put_back(
    "",
    "tail -n 1 actions.jsonl | grep -q already_done && rm -f report.json",
    "log/inbox/report and log gone, finished",
    "report_whole",
    "t1 is done and `report.json` is not there"
)]
fn a_bug_in_log_or_report_is_caught(
    #[case] before: &str,
    #[case] after: &str,
    #[case] scenario: &str,
    #[case] property: &str,
    #[case] why: &str,
) {
    let agent = Wrapped::new(before, after);
    replay(&agent.command(), scenario).assert().code(1).stdout(contains(property).and(contains(why)));
}

#[test]
fn a_report_that_is_wrong_without_any_crash_fails_the_baseline() {
    let agent = Wrapped::new("", "sed -i 's/\"words\":8/\"words\":9/' report.json; :");
    replay(&agent.command(), "after_effect:1").assert().code(1).stdout(contains("`words` 9, must be 8"));
}

#[rstest]
#[case("points/inbox/after_effect:1")]
#[case("log.before_append:1#2, log.reconciled")]
#[case("log/inbox/torn, before_effect:2")]
#[case("log/inbox/lost, after_commit:2")]
#[case("log/inbox/foreign, finished")]
#[case("log/inbox/report and log gone, finished")]
#[case("rerun/inbox/done")]
fn the_same_agent_without_a_bug_passes(#[case] scenario: &str) {
    replay(&Wrapped::new("", "").command(), scenario).assert().code(0);
}

#[test]
fn the_points_of_log_and_report_are_found_by_recording_also_those_of_mending() {
    let agent = AGENT.display().to_string();
    let args = ["list", "--agent", &agent, "--plan", "inbox", "--method", "points,log,control"];
    let listed = chaos(&args).assert().code(0);
    let all = contains("points/inbox/log.before_append:1#2")
        .and(contains("points/inbox/report.renamed"))
        .and(contains("log/inbox/torn, before_effect:2, log.sealed"));
    listed.stdout(all.and(contains("not applicable to inbox, because its steps have no effect of their own")));
}

#[test]
fn an_agent_without_the_command_does_not_get_the_case() {
    let agent = honest();
    let args = ["list", "--agent", &agent, "--method", "points,log"];
    chaos(&args)
        .assert()
        .code(0)
        .stdout(contains("/inbox/").not().and(contains("not applicable to report, because it has no action log")));
    replay(&agent, "after_effect:1").assert().code(64).stderr(contains("the agent has no command `inbox`"));
}

#[test]
fn a_file_called_inbox_is_meant_where_it_is_written_as_a_path() {
    let dir = TempDir::new().expect("dir");
    std::fs::write(dir.path().join("inbox"), r#"{"goal": "g", "steps": [{"tool": "nap", "input": {}}]}"#)
        .expect("write");
    let agent = honest();
    let list = |plan: &str| {
        let mut lab = chaos(&["list", "--agent", &agent, "--method", "points", "--plan", plan]);
        lab.current_dir(dir.path()).assert()
    };
    list("./inbox").code(0).stdout(contains("points/inbox/after_effect:0").and(contains("after_effect:1").not()));
    list("inbox").code(64).stderr(contains("no command `inbox`"));
    let inputs = ["list", "--agent", &agent, "--plan", "inbox", "--inputs", "."];
    chaos(&inputs).assert().code(64).stderr(contains("brings its own inputs"));
}

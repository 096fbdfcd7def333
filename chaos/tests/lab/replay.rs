//! Replaying one scenario or one schedule.

use predicates::prelude::PredicateBooleanExt as _;
use predicates::str::contains;

use crate::support::{Broken, chaos, honest};

fn replay(subject: &str) -> assert_cmd::Command {
    chaos(&["replay", subject, "--agent", &honest(), "--seed", "7"])
}

#[test]
fn a_bare_schedule_of_mixed_kills_is_played_and_told() {
    replay("after_effect:2, before_effect:2, term@2")
        .assert()
        .code(0)
        .stdout(contains("run 1 of t1 (after_effect:2): signal 9 (SIGKILL)"))
        .stdout(contains("step_recovered:2"))
        .stdout(contains("run 4 of t1: exit 0"));
}

#[test]
fn a_kill_that_is_unreachable_by_design_is_said_to_be() {
    replay("after_commit:1, before_effect:0").assert().code(0).stdout(contains("unreachable by design"));
}

/// Kills that never came were told as "held, killed by the schedule": the ninth hit of a point that is passed once, a
/// system call that the step does not make, a step that the plan does not have, a delay longer than the run.
#[test]
fn a_kill_that_does_not_come_is_not_reached() {
    for subject in ["after_effect:2#9", "write_artifact:2/linkat#99", "term@9", "before_effect:7", "+20000ms"] {
        replay(subject).assert().code(1).stdout(contains(format!("`{subject}` did not come")));
    }
    replay("after_commit:2, after_effect:1, before_effect:1#2")
        .assert()
        .code(1)
        .stdout(contains("`before_effect:1#2` did not come: the task was over before"));
}

#[test]
fn a_scenario_is_found_by_its_id() {
    replay("points/report/after_commit:2").assert().code(0).stdout(contains("held points/report"));
}

#[test]
fn a_slip_of_the_pen_is_shown_at_its_place() {
    replay("after_effect:two").assert().code(64).stderr(contains("after_effect:two\n").and(contains("^")));
    replay("prayer/report/x").assert().code(64).stderr(contains("no method `prayer`"));
    replay("points/mine/x").assert().code(64).stderr(contains("no plan `mine`"));
}

#[test]
fn a_plan_and_a_script_of_ones_own_are_found_from_where_one_stands() {
    let dir = tempfile::tempdir().expect("dir");
    std::fs::create_dir(dir.path().join("docs")).expect("dir");
    std::fs::write(dir.path().join("docs/a.txt"), "one\ntwo\n").expect("write");
    let plan = r#"{"goal": "g", "steps": [{"tool": "fetch", "input": {"path": "docs/a.txt"}}]}"#;
    std::fs::write(dir.path().join("mine.json"), plan).expect("write");
    let agent = honest();
    let args = ["replay", "points/mine/after_effect:0", "--agent", &agent, "--plan", "mine.json"];
    chaos(&args).current_dir(dir.path()).assert().code(0).stdout(contains("held points/mine/after_effect:0"));
}

#[test]
fn where_the_baseline_fails_the_replay_says_that_and_no_more() {
    let agent = Broken::new("agent.py", "task.journal(\"task_done\")", "raise Stop(70, 'no')");
    chaos(&["replay", "after_effect:1", "--agent", &agent.command()])
        .assert()
        .code(2)
        .stdout(contains("baseline/report/clean"));
}

/// A delay hits another place each time, so that nobody could look twice at what it had shown.
#[test]
fn a_kill_after_a_delay_is_told_by_the_call_at_which_it_fell() {
    let replay = chaos(&["replay", "+1ms", "--agent", &honest()]).assert().code(0);
    let told = String::from_utf8_lossy(&replay.get_output().stdout).into_owned();
    let call = told.split("the kill fell after ").nth(1).and_then(|rest| rest.split(',').next()).expect("a call");
    chaos(&["replay", call, "--agent", &honest()]).assert().code(0).stdout(contains("SIGKILL"));
}

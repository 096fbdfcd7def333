//! Every exit code of the lab, each with a case that must end in it.

use predicates::prelude::PredicateBooleanExt as _;
use predicates::str::contains;

use crate::support::{Broken, chaos, honest, run};

#[test]
fn an_honest_agent_ends_in_0() {
    run(&honest(), "points,rerun,control").assert().code(0).stdout(contains("Held").and(contains("seed 7")));
}

#[test]
fn a_violated_property_ends_in_1_with_its_replay_command() {
    let agent = Broken::new("agent.py", "task.journal(\"step_recovered\", idx)", "pass");
    run(&agent.command(), "points")
        .assert()
        .code(1)
        .stdout(contains("violated recovery_explicit"))
        .stdout(contains("again: chaos replay 'points/report/before_effect:0' --seed 7 --agent "));
}

#[test]
fn a_kill_that_misses_ends_in_1_and_is_called_not_reached() {
    let agent = Broken::new("agent.py", "os.kill(os.getpid(), signal.SIGKILL)", "pass");
    run(&agent.command(), "points")
        .assert()
        .code(1)
        .stdout(contains("not reached exit_code").and(contains("the kill missed")));
}

#[test]
fn a_plan_that_fails_without_a_crash_ends_in_2() {
    let agent = Broken::new("agent.py", "task.journal(\"task_done\")", "raise Stop(70, 'no')");
    run(&agent.command(), "points")
        .assert()
        .code(2)
        .stdout(contains("baseline/report/clean").and(contains("points/").not()));
}

#[test]
fn an_agent_that_hangs_ends_in_2_and_hangs_nobody_else() {
    let agent = Broken::new("agent.py", "    settings = read_settings()", "    time.sleep(60)");
    chaos(&["run", "--agent", &agent.command(), "--deadline", "200ms"])
        .timeout(std::time::Duration::from_secs(20))
        .assert()
        .code(2)
        .stdout(contains("hung"));
}

#[test]
fn an_empty_selection_ends_in_4() {
    run(&honest(), "rerun").args(["--shard", "400/400"]).assert().code(4).stdout(contains("nothing was selected"));
}

#[test]
fn a_budget_that_is_too_small_ends_in_4() {
    run(&honest(), "points").args(["--budget", "1ms"]).assert().code(4).stdout(contains("the budget ended"));
}

#[test]
fn a_control_that_stays_green_ends_in_5() {
    let agent = Broken::new(
        "agent.py",
        "unsafe_effects=value(\"AGENT_UNSAFE_EFFECTS\", \"0\", \"[01]\", \"1 or 0\") == \"1\"",
        "unsafe_effects=False",
    );
    run(&agent.command(), "points,control").assert().code(5).stdout(contains("the control stays green"));
}

#[test]
fn a_command_line_without_sense_ends_in_64() {
    for (args, word) in [
        (vec!["run", "--method", "prayer"], "there are baseline, points"),
        (vec!["run", "--agent", "/no/such/agent"], "/no/such/agent"),
        (vec!["run", "--agent", "python3 'x"], "missing closing quote"),
        (vec!["run", "--shard", "3/2"], "i/n"),
        (vec!["run", "--budget", "soon"], "90s"),
        (vec!["run", "--plan", "/no/such/plan", "--agent", "true"], "/no/such/plan"),
        (vec!["report", "/no/such/folder"], "report.json"),
        (vec!["prayer"], "unrecognized"),
    ] {
        chaos(&args).assert().code(64).stderr(contains(word));
    }
}

#[test]
fn a_lab_that_cannot_work_ends_in_70() {
    run(&honest(), "points").args(["--dir", "/proc"]).assert().code(70).stderr(contains("/proc"));
}

#[test]
fn an_inventory_that_cannot_be_read_ends_in_70() {
    run("echo {}", "points").assert().code(70).stderr(contains("tools --json"));
}

#[test]
fn help_names_every_method_and_every_exit_code() {
    chaos(&["--help"]).assert().code(0).stdout(contains("neighbours").and(contains("70  the lab itself failed")));
}

#[test]
fn the_report_of_a_run_is_kept_and_shown_again() {
    let out = tempfile::tempdir().expect("dir");
    let path = out.path().to_str().expect("a path");
    let ran = run(&honest(), "rerun").args(["--out", path, "--json"]).assert().code(0);
    let shown = chaos(&["report", path, "--json"]).assert().code(0);
    let read = |bytes: &[u8]| serde_json::from_slice::<serde_json::Value>(bytes).expect("JSON");
    let report = read(&ran.get_output().stdout);
    assert_eq!(report, read(&shown.get_output().stdout));
    assert_eq!(report["outcome"], "held");
    assert_eq!(report["scenarios"][0]["id"], "baseline/report/clean");
}

#[test]
fn shards_together_play_everything_once() {
    let listed = |shard: &str| {
        let agent = honest();
        let args = ["list", "--agent", &agent, "--method", "points,rerun", "--shard", shard];
        let output = chaos(&args).assert().code(0).get_output().stdout.clone();
        let text = String::from_utf8(output).expect("text");
        let ids = text.lines().filter(|line| line.starts_with("  "));
        ids.map(str::to_owned).collect::<Vec<_>>()
    };
    let mut parts = listed("1/2");
    parts.extend(listed("2/2"));
    let mut whole = listed("1/1");
    assert_eq!(whole.len(), 13);
    parts.sort();
    whole.sort();
    assert_eq!(parts, whole);
}

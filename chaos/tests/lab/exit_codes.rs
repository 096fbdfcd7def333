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

/// What was left out is told, and is neither passed nor failed.
#[test]
fn a_quick_run_says_how_many_scenarios_there_are() {
    let run = run(&honest(), "baseline,points").arg("--quick").assert().code(0);
    run.stdout(contains("every property held in").and(contains("scenarios of").and(contains("that there are"))));
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
fn a_folder_that_takes_no_scenarios_ends_in_64() {
    run(&honest(), "points").args(["--dir", "/proc"]).assert().code(64).stderr(contains("--dir /proc"));
    run(&honest(), "points").args(["--dir", "/no/such/folder"]).assert().code(64).stderr(contains("--dir /no/such"));
}

#[test]
fn an_inventory_that_cannot_be_read_ends_in_2() {
    run("echo {}", "points").assert().code(2).stderr(contains("tools --json"));
}

/// A missing script, an agent that does nothing and a plan with an unknown tool were told as ten findings each, or as
/// a failure of the lab.
#[test]
fn an_agent_that_fails_by_itself_is_one_finding_in_one_line_and_ends_in_2() {
    let folder = tempfile::tempdir().expect("dir");
    let plan = folder.path().join("plan.json");
    std::fs::write(&plan, r#"{"goal": "g", "steps": [{"tool": "launch_rocket", "input": {}}]}"#).expect("written");
    let plan = ["--plan", plan.to_str().expect("a path")];
    for (agent, more, word) in [
        ("python3 /no/such/agent.py", &[][..], "can't open file"),
        ("true", &[], "no task is stored (there is no database)"),
        (&honest(), &plan, "launch_rocket"),
    ] {
        let told = run(agent, "points").args(more).arg("--json").assert().code(2);
        let report: serde_json::Value = serde_json::from_slice(&told.get_output().stdout).expect("JSON");
        let scenarios = report["scenarios"].as_array().expect("a list");
        let findings: Vec<_> = scenarios.iter().flat_map(|it| it["findings"].as_array().expect("a list")).collect();
        assert_eq!(findings.len(), 1, "{agent}: {findings:?}");
        let why = findings[0]["why"].as_str().expect("text");
        assert!(why.contains(word) && !why.contains('\n'), "{agent}: {why}");
    }
}

#[test]
fn a_clean_run_that_shows_a_bug_ends_in_1() {
    let agent = Broken::new("agent.py", "task.journal(\"task_done\")", "pass");
    run(&agent.command(), "points").assert().code(1).stdout(contains("the clean run shows it already"));
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

/// Whoever waited saw nothing until the end, and a lab that was killed left nothing.
#[test]
fn failures_are_told_as_they_happen_and_a_killed_lab_leaves_the_report_of_what_it_had() {
    let agent = Broken::new("agent.py", "task.journal(\"step_recovered\", idx)", "pass");
    let out = tempfile::tempdir().expect("dir");
    let args = ["run", "--agent", &agent.command(), "--method", "points,random,fuzz", "--jobs", "1", "--out"];
    let mut command = std::process::Command::new(assert_cmd::cargo::cargo_bin("chaos"));
    command.args(args).arg(out.path()).stderr(std::process::Stdio::piped()).stdout(std::process::Stdio::null());
    let mut lab = command.spawn().expect("a lab");
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(lab.stderr.take().expect("a pipe")));
    let begun = lines.by_ref().map_while(Result::ok).find(|line| line.contains("method 2 of 4: points"));
    assert!(begun.expect("a line a method").contains("failed so far"));
    lab.kill().expect("killed");
    lab.wait().expect("ended");
    let path = out.path().to_str().expect("a path");
    let shown = chaos(&["report", path]).assert().code(1);
    shown.stdout(contains("violated recovery_explicit").and(contains("the lab was ended before")));
}

#[test]
fn the_first_failure_ends_a_run_that_fails_fast() {
    let agent = Broken::new("agent.py", "task.journal(\"step_recovered\", idx)", "pass");
    let command = agent.command();
    let args = ["run", "--agent", &command, "--method", "points,random", "--jobs", "1", "--fail-fast", "--json"];
    let told = chaos(&args).assert().code(1);
    let report: serde_json::Value = serde_json::from_slice(&told.get_output().stdout).expect("JSON");
    let failed = report["scenarios"].as_array().expect("a list").iter().filter(|it| it["verdict"] != "holds");
    assert_eq!(failed.count(), 1);
    assert!(report["cut_short"].as_str().expect("a reason").contains("the first failure ended the run"));
}

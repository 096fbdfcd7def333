//! Programs that steps start, with real kills.

use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::json;

use crate::lab::{Lab, wait_until};

/// A task whose only step runs this script.
fn with_program(script: &str) -> Lab {
    let lab = Lab::new();
    let plan = json!({ "goal": "g", "steps": [
        { "tool": "exec", "input": { "command": ["/bin/sh", "-c", script],
            "check": ["/bin/sh", "-c", "echo '{\"effect\": \"absent\"}'"] } }
    ]});
    lab.write("plan.json", plan.to_string());
    lab.agent(["create", "t", "plan.json"]).exits(0);
    lab
}

/// A killed agent's child lived on and wrote again.
#[test]
fn a_killed_agents_program_never_acts_once_the_next_run_has_begun() {
    for leaves in ["", "setsid sh -c 'sleep 1; touch late' > /dev/null 2>&1 3>&- < /dev/null &"] {
        let script =
            format!("[ -e begun ] && exec echo '{{}}'; touch begun; {leaves} sleep 1; touch late; echo '{{}}'");
        let lab = with_program(&script);
        let first = lab.call(["run", "t"]).start();
        wait_until(|| lab.path("begun").exists());
        first.signal(Signal::SIGKILL);
        first.ended();
        lab.agent(["run", "t"]).exits(0);
        std::thread::sleep(Duration::from_millis(1300));
        assert!(!lab.path("late").exists(), "{leaves}");
        assert_eq!(lab.steps("t"), [("done".to_owned(), 2)]);
        assert!(std::fs::read_dir(lab.path("state.db.attempts")).unwrap().next().is_none(), "nothing is left");
    }
}

#[test]
fn what_an_attempt_said_on_standard_error_is_shown() {
    let lab = with_program("printf 'one\\033[1m\\ntwo' >&2; echo '{}'");
    assert_eq!(lab.agent(["stderr", "t", "0"]).exits(0).stdout, "");
    lab.agent(["run", "t"]).exits(0);
    assert_eq!(lab.agent(["stderr", "t", "0"]).exits(0).stdout, "--- attempt 1\none\\u{1b}[1m\ntwo\n");
    lab.agent(["stderr", "t", "1"]).exits(64).says("no step `1`");
    lab.agent(["stderr", "x", "0"]).exits(1);
}

#[test]
fn a_program_that_fails_for_good_fails_its_task_with_what_it_said() {
    let lab = with_program("echo 'no such user' >&2; exit 3");
    lab.agent(["run", "t"]).exits(2);
    let journal = lab.journal("t");
    let failed = journal.iter().find(|event| event["kind"] == "task_failed").unwrap();
    assert_eq!(failed["reason"], "permanent");
    let error = journal.iter().find(|event| event["kind"] == "step_error").unwrap();
    assert_eq!(error["error"], "the program ended with exit code 3: no such user");
}

#[test]
fn a_keeper_is_not_started_by_hand() {
    Lab::new().agent(["keeper"]).exits(64).says("started by the agent itself");
}

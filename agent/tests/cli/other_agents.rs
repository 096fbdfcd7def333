//! Databases and locks are shared with agents in other languages: here the example in Python, of schema version 1.

use std::process::Command;

use fixtures::python_agent;
use rstest::rstest;

use crate::journal::{assert_sound, recovered};
use crate::lab::{Call, Lab, wait_until};

/// A call of the Python agent.
fn python<const N: usize>(lab: &Lab, arguments: [&str; N]) -> Call {
    let wanted = "import sys; sys.exit(sys.version_info < (3, 11))";
    let found = Command::new("python3").args(["-c", wanted]).status().is_ok_and(|status| status.success());
    assert!(found, "this test needs Python 3.11: apt-get install python3");
    lab.call_through(&["python3", python_agent().to_str().unwrap()], arguments)
}

/// Unlike the golden databases these come with the WAL of the killed process, which holds all there is.
#[rstest]
fn a_task_that_was_killed_under_another_agent_is_resumed(
    #[values(
        "before_effect:0",
        "after_effect:1",
        "after_commit:1",
        "before_effect:2",
        "after_effect:2",
        "after_commit:2"
    )]
    point: &str,
) {
    let lab = Lab::new();
    python(&lab, ["create", "t1", "plan.json"]).ran().exits(0);
    python(&lab, ["run", "t1"]).env("AGENT_CRASH_AT", point).ran().exits(137);
    let before = lab.journal("t1");
    let step: u64 = point.split_once(':').unwrap().1.parse().unwrap();
    let due = if point.starts_with("after_commit") { vec![] } else { vec![step] };
    lab.agent(["run", "t1"]).exits(0);
    let journal = lab.journal("t1");
    assert_eq!(journal[..before.len()], before);
    assert_eq!(recovered(&journal), [vec![], due]);
    assert_eq!(lab.artifacts(), ["t1-2.md"]);
    assert_sound(&lab, "t1", None);
    lab.agent(["verify"]).exits(0);
}

/// The old agent also goes on undisturbed: what a newer schema adds is not in its way.
#[test]
fn an_old_agent_at_work_keeps_a_new_one_out() {
    let lab = Lab::new();
    python(&lab, ["create", "t1", "plan.json"]).ran().exits(0);
    let theirs = python(&lab, ["run", "t1"]).env("AGENT_STEP_DELAY", "0.4").start();
    wait_until(|| lab.steps("t1")[0].0 == "running");
    let journal = lab.journal("t1");
    lab.agent(["run", "t1"]).fails(3);
    assert_eq!(lab.journal("t1"), journal);
    theirs.ended().exits(0);
    assert_eq!(recovered(&lab.journal("t1")), [Vec::<u64>::new()]);
    assert_eq!(lab.status("t1")["status"], "done");
}

//! The nine kills of the contract, and one at every other crash point that a run passes.

use std::collections::BTreeSet;
use std::fs;

use fixtures::contract;
use rstest::rstest;

use crate::journal::{assert_sound, count, recovered};
use crate::lab::Lab;

/// The report of a run that nothing disturbs.
fn undisturbed() -> String {
    let lab = Lab::with_task();
    lab.agent(["run", "t1"]).exits(0);
    lab.report()
}

/// The points that a run of `t1` passes, as it records them.
fn points_of_a_run(lab: &Lab) -> Vec<String> {
    lab.call(["run", "t1"]).env("AGENT_CRASH_RECORD", "recording").ran().exits(0);
    let text = lab.sandbox.read("recording");
    fs::remove_file(lab.path("recording")).unwrap();
    text.lines().map(str::to_owned).collect()
}

#[rstest]
fn a_killed_task_resumes_to_the_same_end(
    #[values("before_effect", "after_effect", "after_commit")] site: &str,
    #[values(0, 1, 2)] step: usize,
) {
    let lab = Lab::with_task();
    let ran = lab.call(["run", "t1"]).env("AGENT_CRASH_AT", format!("{site}:{step}")).ran().exits(137);
    assert_eq!(ran.signal, Some(9));
    let inside = site != "after_commit";
    let finished = if inside { step } else { step + 1 };

    // State is preserved: what was committed is there, the step under way is marked, the rest is untouched.
    let steps = lab.steps("t1");
    for (index, (status, attempts)) in steps.iter().enumerate() {
        let expected = match index {
            _ if index < finished => ("done", 1),
            _ if index == step => ("running", 1),
            _ => ("pending", 0),
        };
        assert_eq!((status.as_str(), *attempts), expected, "step {index}");
    }
    assert_sound(&lab, "t1", inside.then_some(step as u64));

    lab.agent(["run", "t1"]).exits(0).says("done");
    let journal = lab.journal("t1");
    let due: Vec<u64> = if inside { vec![step as u64] } else { Vec::new() };
    assert_eq!(recovered(&journal), [Vec::new(), due], "recovery is explicit, and only where it is due");
    for index in 0..3 {
        let attempts = if inside && index == step { 2 } else { 1 };
        assert_eq!(count(&journal, &format!("step_started:{index}")), attempts, "a finished step does not run again");
    }
    assert_eq!(count(&journal, "task_done"), 1);
    assert_sound(&lab, "t1", None);
    assert_eq!(lab.artifacts(), [contract::artifact_name("t1", 2)]);
    assert_eq!(lab.report(), undisturbed());
}

/// The same for each further point: this run's own recording says which there are.
#[test]
fn a_kill_at_any_point_of_a_run_is_survived() {
    let points = points_of_a_run(&Lab::with_task());
    for site in ["recover.swept", "run.started", "commit.written:1#2", "write_artifact.linked:2", "complete.done"] {
        assert!(points.iter().any(|point| point == site), "{site} is not in {points:?}");
    }
    let report = undisturbed();
    for point in points {
        let lab = Lab::killed_at(&point);
        end(&lab, &point, &report);
    }
}

/// A resumed run has points of its own: it sweeps, recovers and deduplicates.
#[test]
fn a_kill_at_any_point_of_a_resumed_run_is_survived() {
    let first = "write_artifact.linked:2";
    let points = points_of_a_run(&Lab::killed_at(first));
    assert!(points.iter().any(|point| point == "write_artifact.deduplicated:2"), "{points:?}");
    let report = undisturbed();
    for point in points {
        let lab = Lab::killed_at(first);
        lab.call(["run", "t1"]).env("AGENT_CRASH_AT", &point).ran().exits(137);
        end(&lab, &point, &report);
    }
}

fn end(lab: &Lab, point: &str, report: &str) {
    let running = lab.steps("t1").iter().position(|(status, _)| status == "running").map(|step| step as u64);
    let over = lab.status("t1")["status"] == "done";
    assert_sound(lab, "t1", running);
    lab.agent(["run", "t1"]).exits(0);
    let journal = lab.journal("t1");
    let last = recovered(&journal).pop().unwrap();
    if !over {
        assert_eq!(last, Vec::from_iter(running), "{point}");
    }
    assert_sound(lab, "t1", None);
    assert_eq!(lab.artifacts(), ["t1-2.md"], "{point}: no temporary file stays");
    assert_eq!(lab.report(), report, "{point}");
}

#[test]
fn a_creation_that_is_killed_has_happened_or_not() {
    for (point, happened) in [("commit.written", false), ("commit.done", true)] {
        let lab = Lab::new();
        lab.call(["create", "t1", "plan.json"]).env("AGENT_CRASH_AT", point).ran().exits(137);
        lab.agent(["verify"]).exits(0);
        lab.agent(["status", "t1"]).exits(if happened { 0 } else { 1 });
        lab.agent(["create", "t1", "plan.json"]).exits(if happened { 73 } else { 0 });
        lab.agent(["run", "t1"]).exits(0);
        assert_sound(&lab, "t1", None);
    }
}

/// A recording is a line for each passage, the same from run to run, and the point that kills is in it.
#[test]
fn a_recording_names_every_point_that_was_passed() {
    let points = points_of_a_run(&Lab::with_task());
    assert_eq!(points, points_of_a_run(&Lab::with_task()));
    assert_eq!(points.iter().collect::<BTreeSet<_>>().len(), points.len());
    for site in contract::CRASH_SITES {
        for step in 0..3 {
            assert!(points.contains(&format!("{site}:{step}")));
        }
    }
    let lab = Lab::with_task();
    let call = lab.call(["run", "t1"]).env("AGENT_CRASH_RECORD", "recording").env("AGENT_CRASH_AT", "after_effect:1");
    call.ran().exits(137);
    let text = lab.sandbox.read("recording");
    assert_eq!(text.lines().last(), Some("after_effect:1"));
    assert!(points.iter().zip(text.lines()).all(|(one, other)| one == other));
}

/// What the harness must catch: without protection the effect stands twice.
#[test]
fn an_unsafe_effect_is_seen_twice_and_verify_says_so() {
    let lab = Lab::with_task();
    let call = lab.call(["run", "t1"]).env("AGENT_UNSAFE_EFFECTS", "1").env("AGENT_CRASH_AT", "after_effect:2");
    call.ran().exits(137);
    lab.call(["run", "t1"]).env("AGENT_UNSAFE_EFFECTS", "1").ran().exits(0);
    assert_eq!(lab.artifacts(), [contract::UNSAFE_LOG]);
    let log = lab.sandbox.read("artifacts/report.log");
    assert_eq!(log.lines().filter(|line| *line == contract::UNSAFE_LOG_SEPARATOR).count(), 2);
    lab.agent(["verify"]).exits(5);
}

#[test]
fn a_key_of_its_own_for_every_attempt_protects_nothing() {
    let lab = Lab::with_task();
    let call = lab.call(["run", "t1"]).env("AGENT_UNSAFE_KEYS", "1").env("AGENT_CRASH_AT", "after_effect:2");
    call.ran().exits(137);
    lab.call(["run", "t1"]).env("AGENT_UNSAFE_KEYS", "1").ran().exits(0);
    assert_eq!(lab.artifacts(), ["t1-2-attempt1.md", "t1-2-attempt2.md"]);
}

/// Recovery of one task once touched the steps of another.
#[test]
fn recovery_is_of_one_task_only() {
    let lab = Lab::killed_at("before_effect:1");
    lab.agent(["create", "t2", "plan.json"]).exits(0);
    lab.call(["run", "t2"]).env("AGENT_CRASH_AT", "after_effect:0").ran().exits(137);
    let other = (lab.status("t2"), lab.journal("t2"));
    lab.agent(["run", "t1"]).exits(0);
    assert_eq!((lab.status("t2"), lab.journal("t2")), other);
    lab.agent(["run", "t2"]).exits(0);
    lab.agent(["verify"]).exits(0);
}

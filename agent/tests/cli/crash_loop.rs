//! Crashes that repeat: attempts used up, the way out, and recovery that is itself killed.

use crate::journal::{assert_sound, count, kinds, recovered};
use crate::lab::Lab;

/// Three kills after the report was published once left the task failed for good.
#[test]
fn a_crash_loop_fails_the_task_and_a_retry_finishes_it_with_one_report() {
    let lab = Lab::failed();
    let report = lab.report();
    assert_eq!(lab.status("t1")["status"], "failed");
    assert_eq!(lab.steps("t1")[2], ("failed".to_owned(), 3));
    let failed = lab.journal("t1").pop().unwrap();
    assert_eq!(failed["reason"], "max_attempts");
    let known = failed["known"].as_array().unwrap();
    assert_eq!(known.len(), 3, "{failed}");
    for (attempt, known) in (1..).zip(known) {
        let known = known.as_str().unwrap();
        assert!(known.starts_with(&format!("attempt {attempt} (run ")) && known.contains("ended with its process"));
    }
    lab.agent(["verify"]).exits(0);
    lab.agent(["run", "t1"]).exits(2).says("retry").says("ended with its process");

    lab.agent(["retry", "t1"]).exits(0).says("step 2");
    assert_eq!(lab.status("t1")["status"], "pending");
    assert_eq!(lab.journal("t1").last().unwrap()["forgiven"], 3);
    lab.agent(["run", "t1"]).exits(0);
    assert_eq!(lab.artifacts(), ["t1-2.md"]);
    assert_eq!(lab.report(), report);
    let output: String = lab.query("SELECT output FROM steps WHERE task_id = 't1' AND idx = 2");
    assert!(output.contains(r#""deduplicated":true"#), "{output}");
    assert_eq!(lab.steps("t1")[2], ("done".to_owned(), 4), "attempts are counted on");
    let journal = lab.journal("t1");
    assert_eq!((count(&journal, "task_failed:2"), count(&journal, "task_retried:2")), (1, 1));
    lab.agent(["verify"]).exits(0);
}

#[test]
fn a_fresh_budget_is_as_large_as_the_first_and_can_be_used_up_again() {
    let lab = Lab::failed();
    lab.agent(["retry", "t1"]).exits(0);
    for _ in 0..3 {
        lab.call(["run", "t1"]).env("AGENT_CRASH_AT", "before_effect:2").ran().exits(137);
    }
    lab.agent(["run", "t1"]).exits(2);
    lab.agent(["retry", "t1"]).exits(0);
    lab.agent(["run", "t1"]).exits(0);
    assert_eq!(lab.steps("t1")[2], ("done".to_owned(), 7));
    lab.agent(["verify"]).exits(0);
}

#[test]
fn only_a_failed_task_can_be_retried() {
    let killed = Lab::killed_at("after_effect:2");
    let done = Lab::with_task();
    done.agent(["run", "t1"]).exits(0);
    for (lab, status) in [(Lab::with_task(), "pending"), (killed, "running"), (done, "done")] {
        let before = lab.tree();
        lab.agent(["retry", "t1"]).fails(4).says(status);
        assert_eq!(lab.tree(), before);
    }
}

#[test]
fn of_eight_retries_at_once_exactly_one_counts() {
    let lab = Lab::failed();
    let started: Vec<_> = (0..8).map(|_| lab.call(["retry", "t1"]).start()).collect();
    let mut codes: Vec<i32> = started.into_iter().map(|retry| retry.ended().code).collect();
    codes.sort_unstable();
    assert_eq!(codes[0], 0);
    assert!(codes[1..].iter().all(|code| [3, 4].contains(code)), "the losers are told so: {codes:?}");
    assert_eq!(count(&lab.journal("t1"), "task_retried:2"), 1);
    lab.agent(["run", "t1"]).exits(0);
    lab.agent(["verify"]).exits(0);
}

#[test]
fn a_retry_that_is_killed_has_happened_or_not() {
    for (point, happened) in [("commit.written:2", false), ("commit.done:2", true)] {
        let lab = Lab::failed();
        lab.call(["retry", "t1"]).env("AGENT_CRASH_AT", point).ran().exits(137);
        lab.agent(["verify"]).exits(0);
        assert_eq!(lab.status("t1")["status"], if happened { "pending" } else { "failed" });
        lab.agent(["retry", "t1"]).exits(if happened { 4 } else { 0 });
        lab.agent(["run", "t1"]).exits(0);
    }
}

/// Equal durable state gives equal recovery: killed before it commits, it is decided again in the same way.
#[test]
fn recovery_that_is_killed_recovers_the_same_steps_until_it_has_committed_once() {
    let lab = Lab::killed_at("after_effect:1");
    let before = lab.journal("t1");
    for point in ["recover.swept", "commit.written:1", "recover.swept"] {
        lab.call(["run", "t1"]).env("AGENT_CRASH_AT", point).ran().exits(137);
        assert_eq!(lab.journal("t1"), before, "{point} is before the commit");
    }
    lab.call(["run", "t1"]).env("AGENT_CRASH_AT", "run.started").ran().exits(137);
    lab.call(["run", "t1"]).env("AGENT_CRASH_AT", "run.started").ran().exits(137);
    assert_eq!(recovered(&lab.journal("t1")), [vec![], vec![1], vec![]]);
    lab.agent(["run", "t1"]).exits(0);
    assert_eq!(recovered(&lab.journal("t1")), [vec![], vec![1], vec![], vec![]]);
    assert_eq!(lab.steps("t1")[1], ("done".to_owned(), 2), "recovering costs no attempt");
    assert_sound(&lab, "t1", None);
}

#[test]
fn a_tool_that_fails_is_tried_as_often_as_allowed_and_no_more() {
    let lab = Lab::with_task();
    std::fs::remove_file(lab.path("input/notes.txt")).unwrap();
    lab.agent(["run", "t1"]).exits(2).says("input/notes.txt").says("No such file");
    let journal = lab.journal("t1");
    let attempt = ["step_started:0", "step_error:0"];
    let expected = [&["task_created", "run_started"][..], &attempt, &attempt, &attempt, &["task_failed:0"]].concat();
    assert_eq!(kinds(&journal), expected);
    assert!(journal[3]["error"].as_str().unwrap().contains("input/notes.txt"));
    assert_sound(&lab, "t1", None);
    // It said only that the attempts were used up, and left it to the journal to say why.
    lab.agent(["run", "t1"]).exits(2).says("already failed").says("No such file");

    // Once the cause is mended there is a way on.
    lab.write("input/notes.txt", "back\n");
    lab.agent(["retry", "t1"]).exits(0);
    lab.agent(["run", "t1"]).exits(0);
    assert_eq!(lab.report(), "back");
}

//! Effects that nobody can find out about, and times to wait for, with real processes.

use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use rstest::rstest;
use serde_json::{Value, json};

use crate::journal::kinds;
use crate::lab::{Lab, wait_until};

/// A task whose only step runs this script, and says nothing of a key or a check: it is done once.
fn mail(script: &str) -> Lab {
    let lab = Lab::new();
    let step = json!({ "tool": "exec", "input": { "command": ["/bin/sh", "-c", script] } });
    lab.write("plan.json", json!({ "goal": "send it", "steps": [step] }).to_string());
    lab.agent(["create", "a b", "plan.json"]).exits(0);
    lab
}

/// What a person is told to do, with their own word in the place of the choice.
fn command_from(listed: &Value, word: &str) -> Vec<String> {
    let command = listed["command"].as_str().unwrap();
    assert_eq!(command, "agent resolve 'a b' 0 (--happened [JSON] | --absent | --abandon) --why TEXT");
    ["resolve", "a b", "0", word, "--why", "seen"].map(str::to_owned).to_vec()
}

#[test]
fn a_killed_mail_is_in_doubt_until_a_person_says_what_happened() {
    let lab = mail("echo sent >> sent; echo '{\"id\": 1}'");
    lab.call(["run", "a b"]).env("AGENT_CRASH_AT", "after_effect:0").ran().exits(137);
    assert_eq!(lab.steps("a b"), [("running".to_owned(), 1)]);
    let ran = lab.agent(["run", "a b"]).exits(6).says("in doubt at step 0");
    assert!(ran.stderr.contains("agent resolve 'a b' 0"), "{ran:?}");
    let before = lab.tree();
    lab.agent(["run", "a b"]).exits(6);
    assert_eq!(lab.tree(), before, "a run that waits for a person leaves no trace");
    assert_eq!(lab.status("a b")["status"], "in_doubt");

    let waiting = lab.agent(["list", "--waiting", "--json"]).exits(0).json();
    let listed = &waiting["waiting"][0];
    assert_eq!((&listed["task"], &listed["kind"]), (&json!("a b"), &json!("doubt")));
    assert!(lab.agent(["list", "--waiting"]).exits(0).stdout.contains("agent resolve"));
    lab.agent(command_from(listed, "--absent")).exits(0);
    lab.agent(command_from(listed, "--happened")).fails(4).says("has not had its effect and will not: seen");
    lab.agent(["run", "a b"]).exits(0);
    assert_eq!(std::fs::read_to_string(lab.path("sent")).unwrap(), "sent\nsent\n", "as it was said");
    lab.agent(["verify"]).exits(0);
    assert_eq!(lab.agent(["list", "--waiting", "--json"]).exits(0).json()["waiting"], json!([]));
}

/// Each person is a process of their own: those of one process would share its locks.
#[rstest]
#[case(2)]
#[case(16)]
fn of_many_who_answer_at_once_one_is_heard(#[case] people: usize) {
    let lab = Lab::new();
    let step = json!({ "tool": "approval", "input": { "show": "Send it?" } });
    lab.write("plan.json", json!({ "goal": "ask", "steps": [step] }).to_string());
    lab.agent(["create", "t", "plan.json"]).exits(0);
    lab.agent(["run", "t"]).exits(6).says("agent approve t 0");
    let answer = |number: usize| match number % 2 {
        0 => lab.call(["approve", "t", "0", "--answer", &number.to_string()]).start(),
        _ => lab.call(["reject", "t", "0", "--why", "not me"]).start(),
    };
    let asked: Vec<_> = (0..people).map(answer).collect();
    let heard: Vec<_> = asked.into_iter().map(|person| person.ended()).collect();
    let (first, late): (Vec<_>, Vec<_>) = heard.into_iter().partition(|ran| ran.code == 0);
    assert_eq!(first.len(), 1, "{first:?}");
    for late in late {
        late.fails(4).says("step 0");
    }
    assert_eq!(kinds(&lab.journal("t")).iter().filter(|kind| *kind == "answer_given:0").count(), 1);
    lab.agent(["verify"]).exits(0);
}

/// What a stop cuts off has happened or not, and is not an error: the next run decides by the class.
#[test]
fn a_stop_in_the_middle_of_a_mail_is_in_doubt_too() {
    let lab = mail("touch begun; trap 'exit 1' TERM; while true; do sleep 0.05; done");
    let run = lab.call(["run", "a b", "--grace", "1"]).start();
    wait_until(|| lab.path("begun").exists());
    run.signal(Signal::SIGTERM);
    run.ended().exits(143);
    assert_eq!(lab.steps("a b"), [("running".to_owned(), 1)]);
    lab.agent(["run", "a b"]).exits(6);
    assert_eq!(kinds(&lab.journal("a b")), ["task_created", "run_started", "step_started:0", "step_in_doubt:0"]);
}

#[test]
fn a_run_that_waits_says_until_when_and_ends_with_a_signal() {
    let lab = mail("exit 75");
    lab.agent(["run", "a b", "--no-wait"]).exits(7).says("waits until");
    let before = lab.journal("a b");
    let until = lab.status("a b")["steps"][0]["until"].as_f64().unwrap();
    assert_eq!(before.last().unwrap()["retry_at"].as_f64(), Some(until));
    // Time enough for the signal, whatever the machine has to do.
    lab.sql("UPDATE steps SET due = due + 600");
    let run = lab.call(["run", "a b"]).start();
    std::thread::sleep(Duration::from_millis(300));
    let start = Instant::now();
    run.signal(Signal::SIGINT);
    let ran = run.ended().exits(130).says("waiting until");
    assert!(start.elapsed() < Duration::from_secs(3), "{ran:?}");
    assert_eq!(lab.journal("a b"), before);
}

#[test]
fn a_task_can_be_cancelled_and_is_over_then() {
    let lab = mail("exit 75");
    lab.agent(["run", "a b", "--no-wait"]).exits(7);
    lab.agent(["cancel", "a b", "--why", "no use"]).exits(0);
    assert_eq!(lab.status("a b")["status"], "cancelled");
    lab.agent(["run", "a b"]).exits(8);
    lab.agent(["cancel", "a b"]).fails(4).says("cancelled already");
    lab.agent(["cancel", "nobody"]).fails(1);
    lab.agent(["verify"]).exits(0);
}

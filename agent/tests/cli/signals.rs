//! SIGTERM and SIGINT stop a run between two commits; the next run goes on.

use std::io::Write as _;
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use rstest::rstest;

use crate::journal::{assert_sound, count, kinds, recovered};
use crate::lab::{Lab, Started};

/// Stops the run that is about to wait before the effect of a step.
fn stopped_before_effect(lab: &Lab, step: u32, signal: Signal, code: i32) {
    let recording = format!("recording-{}", count(&lab.journal("t1"), "run_started"));
    let call = lab.call(["run", "t1"]).env("AGENT_STEP_DELAY", "60").env("AGENT_CRASH_RECORD", &recording);
    let run = call.start();
    lab.wait_for(&recording, &format!("before_effect:{step}"));
    let start = Instant::now();
    run.signal(signal);
    let ran = run.ended().exits(code).says("stopped by a signal");
    assert_eq!(ran.signal, None, "it is an exit code, not a death");
    assert!(start.elapsed() < Duration::from_secs(5));
}

/// A run that asks a model which takes its time, with the connection to it.
fn asking(lab: &Lab, arguments: &[&str]) -> (Started, TcpStream) {
    let model = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", model.local_addr().unwrap());
    let run = lab.call(arguments).env("AGENT_LLM", "ollama").env("OLLAMA_URL", url).start();
    let (connection, _) = model.accept().unwrap();
    (run, connection)
}

#[rstest]
#[case(Signal::SIGTERM, 143)]
#[case(Signal::SIGINT, 130)]
fn a_signal_stops_the_run_and_gives_the_attempt_back(#[case] signal: Signal, #[case] code: i32) {
    let lab = Lab::with_task();
    stopped_before_effect(&lab, 0, signal, code);
    assert_eq!(lab.steps("t1")[0], ("pending".to_owned(), 1));
    assert_sound(&lab, "t1", None);

    lab.agent(["run", "t1"]).exits(0);
    let journal = lab.journal("t1");
    assert_eq!(recovered(&journal), [Vec::<u64>::new(), Vec::new()]);
    assert_eq!((count(&journal, "step_started:0"), count(&journal, "step_released:0")), (2, 1));
    assert_sound(&lab, "t1", None);
}

/// Three polite stops, as three deploys make them, failed a task, each right after saying that `run` goes on with it.
#[test]
fn any_number_of_polite_stops_fails_no_task() {
    let lab = Lab::killed_at("after_commit:1");
    for _ in 0..4 {
        stopped_before_effect(&lab, 2, Signal::SIGTERM, 143);
    }
    assert_eq!(lab.steps("t1")[2], ("pending".to_owned(), 4));
    // Real crashes are counted as ever: two are survived, and a third would fail the task.
    for _ in 0..2 {
        lab.call(["run", "t1"]).env("AGENT_CRASH_AT", "before_effect:2").ran().exits(137);
    }
    lab.agent(["run", "t1"]).exits(0);
    assert_eq!(lab.steps("t1")[2], ("done".to_owned(), 7));
    assert_sound(&lab, "t1", None);
}

/// A model that took its time kept the process from ending for 300 seconds.
#[test]
fn a_call_without_effect_is_given_up_at_once() {
    let lab = Lab::with_task();
    let (run, connection) = asking(&lab, &["run", "t1"]);
    let start = Instant::now();
    run.signal(Signal::SIGTERM);
    let ran = run.ended().exits(143).says("stopped by a signal");
    assert_eq!(ran.signal, None);
    assert!(start.elapsed() < Duration::from_secs(5));
    drop(connection);
    assert_eq!(lab.steps("t1")[1], ("pending".to_owned(), 1));
    let journal = lab.journal("t1");
    assert_eq!(kinds(&journal).last().unwrap(), "step_released:1");
    assert!(journal.last().unwrap()["reason"].as_str().unwrap().contains("stop"));
    lab.agent(["run", "t1"]).exits(0);
    assert_eq!(recovered(&lab.journal("t1")), [Vec::<u64>::new(), Vec::new()]);
    assert_sound(&lab, "t1", None);
}

/// What a model has said when the stop comes is not thrown away.
#[test]
fn an_answer_that_is_there_is_taken_before_the_run_stops() {
    let lab = Lab::with_task();
    let (run, mut connection) = asking(&lab, &["run", "t1"]);
    let body = r#"{"response":"kurz"}"#;
    write!(connection, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()).unwrap();
    run.signal(Signal::SIGTERM);
    let ran = run.ended();
    assert!([0, 143].contains(&ran.code), "{ran:?}");
    lab.agent(["run", "t1"]).exits(0);
    assert_sound(&lab, "t1", None);
}

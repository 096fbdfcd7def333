//! SIGTERM and SIGINT stop a run between two commits; the next run goes on.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use rstest::rstest;

use crate::journal::{assert_sound, count, recovered};
use crate::lab::Lab;

#[rstest]
#[case(Signal::SIGTERM, 143)]
#[case(Signal::SIGINT, 130)]
fn a_signal_stops_the_run_and_the_next_one_recovers(#[case] signal: Signal, #[case] code: i32) {
    let lab = Lab::with_task();
    let call = lab.call(["run", "t1"]).env("AGENT_STEP_DELAY", "60").env("AGENT_CRASH_RECORD", "recording");
    let run = call.start();
    lab.wait_for("recording", "before_effect:0");
    let start = Instant::now();
    run.signal(signal);
    let ran = run.ended().exits(code).says("stopped by a signal");
    assert_eq!(ran.signal, None, "it is an exit code, not a death");
    assert!(start.elapsed() < Duration::from_secs(5));
    assert_eq!(lab.steps("t1")[0], ("running".to_owned(), 1));
    assert_sound(&lab, "t1", Some(0));

    lab.agent(["run", "t1"]).exits(0);
    let journal = lab.journal("t1");
    assert_eq!(recovered(&journal), [vec![], vec![0]]);
    assert_eq!(count(&journal, "step_started:0"), 2);
    assert_sound(&lab, "t1", None);
}

/// A tool that hangs cannot be stopped between two commits. Whoever insists gets what a kill gives.
#[test]
fn a_second_signal_ends_the_run_at_once() {
    let lab = Lab::with_task();
    let model = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", model.local_addr().unwrap());
    let call = lab.call(["run", "t1"]).env("AGENT_LLM", "ollama").env("OLLAMA_URL", url);
    let run = call.start();
    let (_connection, _) = model.accept().unwrap();
    assert_eq!(run.insist(Signal::SIGTERM).exits(143).signal, Some(15));

    lab.agent(["run", "t1"]).exits(0);
    assert_eq!(recovered(&lab.journal("t1")), [vec![], vec![1]]);
    assert_sound(&lab, "t1", None);
}

/// Stopping is no failure: it costs an attempt like any crash, and no more.
#[test]
fn a_step_that_is_under_way_is_finished_before_the_run_stops() {
    let lab = Lab::with_task();
    let model = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", model.local_addr().unwrap());
    let call = lab.call(["run", "t1"]).env("AGENT_LLM", "ollama").env("OLLAMA_URL", url);
    let run = call.start();
    let (mut connection, _) = model.accept().unwrap();
    run.signal(Signal::SIGTERM);
    let body = r#"{"response":"kurz"}"#;
    use std::io::Write as _;
    write!(connection, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()).unwrap();
    run.ended().exits(143);
    assert_eq!(lab.steps("t1")[1], ("done".to_owned(), 1), "what the tool gave is not thrown away");
    lab.agent(["run", "t1"]).exits(0);
    assert_eq!(lab.report(), "kurz\n");
    assert_eq!(recovered(&lab.journal("t1")), [Vec::<u64>::new(), Vec::new()]);
    assert_sound(&lab, "t1", None);
}

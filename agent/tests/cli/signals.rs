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

/// Once the head of an answer had come, nothing but the whole answer ended the wait: "interrupted" is what readers of a
/// body try again after. Three deploys failed the task.
#[test]
fn an_answer_that_never_ends_is_given_up_at_once() {
    let lab = Lab::with_task();
    let (run, mut connection) = asking(&lab, &["run", "t1"]);
    write!(connection, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{{").unwrap();
    std::thread::sleep(Duration::from_millis(300));
    let start = Instant::now();
    run.signal(Signal::SIGTERM);
    run.ended().exits(143).says("stopped by a signal");
    assert!(start.elapsed() < Duration::from_secs(5));
    drop(connection);
    assert_eq!(kinds(&lab.journal("t1")).last().unwrap(), "step_released:1");
    lab.agent(["run", "t1"]).exits(0);
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

/// A run that waits for the lock of its action log, which somebody else holds and does not give back.
fn waiting(lab: &Lab, starter: &[&str], arguments: &[&str]) -> (Started, std::fs::File) {
    let log = std::fs::File::create(lab.path("log")).unwrap();
    log.lock().unwrap();
    let starter = [starter, &[env!("CARGO_BIN_EXE_agent")]].concat();
    let arguments = ["run", "t1", "--log", "log"].iter().chain(arguments);
    let run = lab.call_through(&starter, arguments).env("AGENT_CRASH_RECORD", "recording").start();
    lab.wait_for("recording", "log.opened");
    (run, log)
}

/// Whoever insists gets what a kill gives.
#[test]
fn a_second_signal_ends_the_run_at_once() {
    let lab = Lab::with_task();
    let (run, _log) = waiting(&lab, &[], &[]);
    assert_eq!(run.insist(Signal::SIGTERM).exits(143).signal, Some(15));
    lab.agent(["run", "t1"]).exits(0);
    assert_sound(&lab, "t1", None);
}

#[rstest]
#[case(Signal::SIGTERM, 143)]
#[case(Signal::SIGINT, 130)]
fn what_does_not_come_to_its_end_has_the_grace_and_no_more(#[case] signal: Signal, #[case] code: i32) {
    let lab = Lab::with_task();
    let (run, _log) = waiting(&lab, &[], &["--grace", "1"]);
    let start = Instant::now();
    run.signal(signal);
    assert_eq!(run.ended().exits(code).signal, None);
    let took = start.elapsed();
    assert!(took > Duration::from_millis(500) && took < Duration::from_secs(8), "{took:?}");
    lab.agent(["run", "t1"]).exits(0);
    assert_sound(&lab, "t1", None);
}

/// As the first process of a container, which no signal ends whose handler is the default one, a second SIGTERM ended
/// in a segmentation fault, and a crash point in an endless wait.
#[test]
fn the_first_process_of_a_container_ends_by_exit_code() {
    const CONTAINER: [&str; 6] = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--"];
    let lab = Lab::with_task();
    let probe = std::process::Command::new(CONTAINER[0]).args(&CONTAINER[1..]).arg("true").output();
    if !probe.is_ok_and(|probe| probe.status.success()) {
        eprintln!("SKIPPED: this machine lets nobody make a container");
        return;
    }
    let killed = lab.call_through(&CONTAINER, [env!("CARGO_BIN_EXE_agent"), "run", "t1"]);
    killed.env("AGENT_CRASH_AT", "after_effect:1").ran().exits(137);

    let (run, _log) = waiting(&lab, &CONTAINER, &[]);
    // The agent is the child of what made the container.
    let first = run.child();
    let send = || nix::sys::signal::kill(first, Signal::SIGTERM);
    send().unwrap();
    std::thread::sleep(Duration::from_millis(100));
    send().unwrap();
    assert_eq!(run.ended().exits(143).signal, None);
    lab.agent(["run", "t1"]).exits(0);
    assert_sound(&lab, "t1", None);
}

/// The signal came while `task_done` was committed: "stopped, `run` goes on with it" for a task that was done.
#[test]
fn a_stop_that_comes_when_the_task_is_over_has_stopped_nothing() {
    let lab = Lab::killed_at("after_commit:2");
    // Each sync takes a second, so that there is time to send a signal into the last one.
    let strace = ["strace", "-o", "/dev/null", "-e", "inject=fdatasync,fsync:delay_enter=1000000"];
    let starter = [&strace[..], &[env!("CARGO_BIN_EXE_agent")]].concat();
    let run = lab.call_through(&starter, ["run", "t1"]).env("AGENT_CRASH_RECORD", "recording").start();
    lab.wait_for("recording", "commit.written#2");
    nix::sys::signal::kill(run.child(), Signal::SIGTERM).unwrap();
    let ran = run.ended().exits(0).says("task `t1` is done");
    assert!(!ran.stderr.contains("stopped"), "{ran:?}");
    assert_sound(&lab, "t1", None);
}

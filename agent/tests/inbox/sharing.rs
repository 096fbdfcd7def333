//! Several processes: on one task, and on one log.

use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::lab::{Lab, REPORT};

#[test]
fn of_two_processes_on_one_task_one_is_turned_away_and_logs_nothing() {
    let lab = Lab::new();
    let mut first = lab.command(["inbox", "--task", "t", "--inbox", "inbox", "--delay", "0.4"]);
    let mut first = first.stderr(Stdio::null()).spawn().unwrap();
    let start = Instant::now();
    while lab.events("t").len() < 2 {
        assert!(start.elapsed() < Duration::from_secs(20));
        std::thread::sleep(Duration::from_millis(5));
    }
    lab.inbox().exits(3).says("another process");
    assert!(first.try_wait().unwrap().is_none(), "the first was still at work");
    assert!(first.wait().unwrap().success());
    assert_eq!(lab.sandbox.read("report.json"), REPORT);
    assert_eq!(lab.log("t").len(), 8);
    assert!(lab.log("t").iter().all(|line| !line.reconciled));
    lab.assert_sound("t");
}

#[test]
fn processes_that_begin_one_task_at_the_same_time_do_its_steps_once() {
    for _ in 0..8 {
        let lab = Lab::new();
        let start = || {
            let mut command = lab.command(["inbox", "--task", "t", "--inbox", "inbox", "--delay", "0.02"]);
            command.stderr(Stdio::null()).spawn().unwrap()
        };
        let mut agents: Vec<_> = (0..4).map(|_| start()).collect();
        let codes: Vec<_> = agents.iter_mut().map(|agent| agent.wait().unwrap().code().unwrap()).collect();
        assert!(codes.contains(&0) && codes.iter().all(|code| [0, 3].contains(code)), "{codes:?}");
        let log = lab.events("t");
        for step in 0..3 {
            assert_eq!(log.iter().filter(|(event, s, _)| event == "step_done" && *s == Some(step)).count(), 1);
        }
        lab.assert_sound("t");
    }
}

#[test]
fn tasks_that_share_a_log_do_not_mix_their_lines_even_while_some_are_killed() {
    let lab = Lab::new();
    for note in 0..40 {
        lab.sandbox.write(format!("inbox/{note}.txt"), "word ".repeat(note));
    }
    let tasks: Vec<String> = (0..6).map(|task| format!("task-{task}")).collect();
    let spawn = |task: &String, kill: Option<String>| {
        let mut command = lab.command(["inbox", "--inbox", "inbox", "--task", task, "--out", &format!("{task}.json")]);
        command.envs(kill.map(|point| ("AGENT_CRASH_AT", point)));
        command.stderr(Stdio::null()).spawn().unwrap()
    };
    for round in 0..4 {
        let kill = |at: usize| (round < 3).then(|| format!("log.before_append:{}", round * 10 + at));
        let mut agents: Vec<_> = tasks.iter().enumerate().map(|(at, task)| spawn(task, kill(at))).collect();
        for agent in &mut agents {
            assert_eq!(agent.wait().unwrap().success(), round == 3);
        }
    }
    let text = lab.sandbox.read("actions.jsonl");
    for line in text.lines() {
        serde_json::from_str::<Value>(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    }
    for task in &tasks {
        lab.assert_sound(task);
    }
}

#[test]
fn the_delay_is_slept_in_every_step() {
    let lab = Lab::new();
    let start = Instant::now();
    lab.inbox_and(&["--delay", "0.15"]).exits(0);
    assert!(start.elapsed() >= Duration::from_millis(450));
    let start = Instant::now();
    let lab = Lab::new();
    let mut command = lab.command(["inbox", "--task", "t", "--inbox", "inbox", "--delay", "0"]);
    command.env("AGENT_STEP_DELAY", "9");
    crate::lab::run(command).exits(0);
    assert!(start.elapsed() < Duration::from_secs(9), "the option counts, not the variable");
}

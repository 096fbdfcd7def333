//! Help, version, wrong usage, completions, the table of exit codes, and standard output that cannot be written.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use fixtures::contract;
use rstest::rstest;

use crate::lab::Lab;

#[rstest]
#[case(&["--help"])]
#[case(&["-h"])]
#[case(&["help"])]
#[case(&["help", "run"])]
#[case(&["run", "--help"])]
fn help_goes_to_standard_output_and_is_no_error(#[case] arguments: &[&str]) {
    let ran = Lab::new().agent(arguments).exits(0);
    assert!(ran.stdout.contains("Usage: agent") && ran.stderr.is_empty(), "{ran:?}");
}

#[test]
fn the_version_is_printed() {
    let ran = Lab::new().agent(["--version"]).exits(0);
    assert_eq!(ran.stdout, format!("agent {}\n", env!("CARGO_PKG_VERSION")));
}

#[rstest]
#[case::nothing(&[])]
#[case::no_such_command(&["rnu", "t1"])]
#[case::no_such_option(&["run", "t1", "--fast"])]
#[case::argument_missing(&["run"])]
#[case::argument_too_many(&["run", "t1", "t2"])]
#[case::value_missing(&["run", "t1", "--db"])]
#[case::no_such_shell(&["completions", "cmd.exe"])]
fn wrong_usage_is_64_and_not_2_which_means_a_failed_task(#[case] arguments: &[&str]) {
    let lab = Lab::with_task();
    let before = lab.tree();
    let ran = lab.agent(arguments).exits(64);
    assert!(ran.stdout.is_empty() && !ran.stderr.is_empty(), "{ran:?}");
    assert_eq!(lab.tree(), before);
}

#[test]
fn help_lists_every_published_exit_code_and_every_variable() {
    let help = Lab::new().agent(["--help"]).exits(0).stdout;
    let table = help.split_once("Exit codes:\n").unwrap().1;
    let codes: Vec<i32> = table.lines().filter_map(|line| line.split_whitespace().next()?.parse().ok()).collect();
    let expected = [0, 1, 2, 3].into_iter().chain(contract::EXIT_CODES_PUBLISHED.map(|(code, _)| code));
    assert_eq!(codes, expected.collect::<Vec<_>>());
    for name in contract::ENV {
        assert!(help.contains(name), "{name}");
    }
}

#[rstest]
#[case("bash", "complete -F _agent")]
#[case("zsh", "#compdef agent")]
#[case("fish", "complete -c agent")]
fn completions_are_printed_for_a_shell(#[case] shell: &str, #[case] has: &str) {
    let lab = Lab::new();
    let before = lab.tree();
    let ran = lab.agent(["completions", shell]).exits(0);
    assert!(ran.stdout.contains(has) && ran.stdout.contains("export") && ran.stderr.is_empty());
    assert_eq!(lab.tree(), before);
}

#[rstest]
#[case(&["status", "t1"])]
#[case(&["export", "t1"])]
#[case(&["list"])]
#[case(&["list", "--json"])]
#[case(&["verify"])]
#[case(&["verify", "--json"])]
#[case(&["tools"])]
#[case(&["tools", "--json"])]
#[case(&["completions", "bash"])]
fn a_result_that_cannot_be_written_is_an_error(#[case] arguments: &[&str]) {
    Lab::with_task().call(arguments).ran_into(full()).fails(74).says("standard output");
}

fn full() -> File {
    File::options().write(true).open("/dev/full").unwrap()
}

#[test]
fn help_that_cannot_be_written_is_an_error_too() {
    assert_eq!(Lab::new().call(["--help"]).ran_into(full()).code, 74);
}

/// It once ended in a panic, with the work done.
#[test]
fn where_nobody_can_be_told_the_exit_code_still_says_it() {
    let lab = Lab::new();
    let code = |arguments: &[&str]| lab.call(arguments).code_with_stderr(full());
    assert_eq!(code(&["run"]), Some(64));
    assert_eq!(code(&["run", "t1"]), Some(1));
    assert_eq!(code(&["create", "t1", "plan.json"]), Some(0));
    assert_eq!(code(&["run", "t1"]), Some(0));
    assert_eq!(code(&["backup", "copy.db"]), Some(0));
    assert_eq!(code(&["backup", "copy.db"]), Some(73));
}

/// A reader that has seen enough closes the pipe. The journal is longer than a pipe holds, so that the agent notices.
#[test]
fn a_pipe_that_is_closed_early_is_no_error() {
    let lab = Lab::new();
    lab.write("plan.json", fixtures::echo_plan(2000).to_string());
    lab.agent(["create", "t1", "plan.json"]).exits(0);
    lab.agent(["run", "t1"]).exits(0);
    for command in ["export", "status"] {
        let mut agent = Command::new(env!("CARGO_BIN_EXE_agent"))
            .args([command, "t1"])
            .current_dir(lab.sandbox.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(agent.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert!(line.starts_with('{'), "{line}");
        let output = agent.wait_with_output().unwrap();
        assert_eq!((output.status.code(), output.stderr), (Some(0), Vec::new()), "{command}");
    }
}

/// A result that nobody got ended with exit code 0: the standard library takes such a descriptor for a closed pipe.
#[rstest]
#[case(&["status", "t1"])]
#[case(&["export", "t1"])]
#[case(&["list"])]
#[case(&["--help"])]
fn a_standard_output_that_cannot_be_written_is_an_error(#[case] arguments: &[&str]) {
    let lab = Lab::with_task();
    let unwritable = std::fs::File::open("/dev/null").unwrap();
    lab.call(arguments).ran_into(unwritable).exits(74);
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    lab.call(arguments).ran_into(full).exits(74);
}

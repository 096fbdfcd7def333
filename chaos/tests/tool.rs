//! `chaos tool` with the worked examples, honest ones and those that claim too much; `chaos ledger` as a process.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use assert_cmd::cargo::cargo_bin;
use rstest::rstest;
use serde_json::Value;

/// Prints what all of the examples leave in the world.
const PROBE: &str = "cat sent.txt tickets.txt 2>/dev/null; for ticket in tickets/*.json; do echo \"$ticket\"; done";

fn measure(dir: &Path, tool: &str, args: &[&str]) -> (i32, Value) {
    let mut command = Command::new(cargo_bin("chaos"));
    command.current_dir(dir).args(["tool", "--json"]).args(args).arg("--").arg(fixtures::tool(tool));
    let output = command.output().expect("chaos starts");
    let said = String::from_utf8_lossy(&output.stderr);
    let json = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {said}"));
    (output.status.code().expect("it ends by itself"), json)
}

#[rstest]
#[case("ticket_keyed.py", "keyed", 0, "keyed", &[])]
#[case("ticket_forgetful.py", "keyed", 1, "once", &["killed"])]
#[case("append.sh", "once", 0, "once", &["twice", "killed", "at once"])]
#[case("append.sh", "verifiable", 1, "once", &["twice", "killed", "at once"])]
#[case("append_named.sh", "keyed", 1, "once", &["twice", "killed", "at once"])]
#[case("add.sh", "pure", 0, "pure", &[])]
fn a_program_has_the_class_that_it_earns(
    #[case] tool: &str,
    #[case] claimed: &str,
    #[case] code: i32,
    #[case] earned: &str,
    #[case] fails: &[&str],
) {
    let dir = tempfile::tempdir().expect("a folder");
    let (found, measured) = measure(dir.path(), tool, &["--probe", PROBE, "--claims", claimed]);
    assert_eq!((found, measured["earned"].as_str()), (code, Some(earned)), "{measured:#}");
    for play in measured["plays"].as_array().expect("plays") {
        let failed = play["faults"] != serde_json::json!([]);
        // Whether two at once collide is a matter of luck.
        if play["name"] != "at once" || !failed {
            let expected = fails.contains(&play["name"].as_str().unwrap_or_default());
            assert_eq!(failed, expected, "{play:#}");
        }
    }
}

#[test]
fn a_check_that_tells_the_truth_makes_a_program_verifiable_and_one_that_guesses_does_not() {
    for (check, code, earned) in [("append_check.sh", 0, "verifiable"), ("add.sh", 1, "once")] {
        let dir = tempfile::tempdir().expect("a folder");
        let check = fixtures::tool(check).to_string_lossy().into_owned();
        let args = ["--probe", PROBE, "--check", &check, "--claims", "verifiable"];
        let (found, measured) = measure(dir.path(), "append_named.sh", &args);
        assert_eq!((found, measured["earned"].as_str()), (code, Some(earned)), "{measured:#}");
    }
}

#[test]
fn without_a_probe_nothing_is_earned() {
    let dir = tempfile::tempdir().expect("a folder");
    let (code, measured) = measure(dir.path(), "ticket_keyed.py", &["--claims", "keyed"]);
    assert_eq!((code, measured["earned"].as_str()), (1, Some("once")));
}

#[rstest]
#[case(&["--", "/bin/false"], 2, "a clean call of the tool: exit 1")]
#[case(&["--", "./nope"], 2, "not found")]
#[case(&["--probe", "exit 3", "--", "/bin/true"], 64, "the probe ended with exit status: 3")]
#[case(&["--", "/bin/true"], 2, "is not one JSON object")]
#[case(&["--claims", "best", "--", "/bin/true"], 64, "there are once, verifiable, keyed, pure")]
#[case(&["--input", "{", "--", "/bin/true"], 64, "not JSON")]
fn what_cannot_be_measured_is_one_line(#[case] args: &[&str], #[case] code: i32, #[case] says: &str) {
    let output = Command::new(cargo_bin("chaos")).arg("tool").args(args).output().expect("chaos starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(code) && said.contains(says), "{:?} {said}", output.status);
}

/// The truth about "once" outlives whoever had the effect.
#[test]
fn a_ledger_counts_what_a_program_sends_and_tells_each_request() {
    let chaos = || Command::new(cargo_bin("chaos"));
    let mut command = chaos();
    command.args(["ledger", "--faults", "mail:drop"]).stdout(Stdio::piped());
    let mut ledger = command.spawn().expect("a ledger");
    let mut lines = BufReader::new(ledger.stdout.take().expect("piped")).lines();
    let url = lines.next().expect("a line").expect("text");
    let post = |key: &str| {
        let mut post = chaos();
        post.args(["ledger", "post", &format!("{url}/mail/x")]).env("AGENT_IDEMPOTENCY_KEY", key).stdin(Stdio::null());
        post.output().expect("chaos starts").status.success()
    };
    assert!(!post("a"), "the answer to the first request is dropped");
    assert!(post("a") && post("b"));
    let mut answers = lines.take(3).map(|line| line.expect("text"));
    for expected in ["done, no answer", "200", "201"] {
        let line: Value = serde_json::from_str(&answers.next().expect("a line")).expect("JSON");
        assert_eq!(line["answer"], expected, "{line}");
    }
    ledger.kill().expect("it can be ended");
    ledger.wait().expect("it ends");
}

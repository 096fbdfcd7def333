//! The reports as a shell, a CI service and a reader get them. The agent is `false`: its baseline fails at once, which
//! is a report like any other.

use std::path::Path;
use std::process::Output;

use assert_cmd::Command;

fn chaos(args: &[&str], env: &[(&str, &str)]) -> Output {
    let mut command = Command::cargo_bin("chaos").expect("the lab");
    for name in ["GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY", "NO_COLOR", "CLICOLOR_FORCE", "CLICOLOR"] {
        command.env_remove(name);
    }
    command.args(args).envs(env.iter().copied()).output().expect("an output")
}

fn run(dir: &Path, more: &[&str], env: &[(&str, &str)]) -> Output {
    let out = dir.join("out");
    let mut args = vec!["run", "--agent", "false", "--seed", "1", "--out", out.to_str().expect("a path")];
    args.extend(more);
    let output = chaos(&args, env);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    output
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("text")
}

#[test]
fn a_pipe_gets_no_colour_and_no_color_wins_over_force() {
    let dir = tempfile::tempdir().unwrap();
    let coloured = |env: &[(&str, &str)]| text(&run(dir.path(), &[], env).stdout).contains('\u{1b}');
    assert!(!coloured(&[]));
    assert!(coloured(&[("CLICOLOR_FORCE", "1")]));
    assert!(!coloured(&[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")]));
}

#[test]
fn a_ci_service_gets_annotations_and_a_summary_and_a_shell_gets_neither() {
    let dir = tempfile::tempdir().unwrap();
    let summary = dir.path().join("summary.md");
    let shell = run(dir.path(), &[], &[]);
    assert!(!text(&shell.stdout).contains("::error") && !summary.exists());
    let env = [("GITHUB_ACTIONS", "true"), ("GITHUB_STEP_SUMMARY", summary.to_str().unwrap())];
    let service = run(dir.path(), &[], &env);
    assert_eq!(text(&service.stdout).lines().filter(|line| line.starts_with("::error title=")).count(), 1);
    assert!(std::fs::read_to_string(&summary).unwrap().starts_with("## Crash tests: baseline failed"));
}

#[test]
fn annotations_never_get_into_a_json_document() {
    let dir = tempfile::tempdir().unwrap();
    let output = run(dir.path(), &["--json"], &[("GITHUB_ACTIONS", "true")]);
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["outcome"], "baseline_failed");
    assert!(text(&output.stderr).contains("::error title="), "{output:?}");
}

#[test]
fn a_report_is_shown_and_written_again_from_its_folder_with_the_code_of_its_run() {
    let dir = tempfile::tempdir().unwrap();
    let first = run(dir.path(), &[], &[]);
    let page = dir.path().join("out/report.html");
    let written = std::fs::read(&page).unwrap();
    std::fs::remove_file(&page).unwrap();
    let out = dir.path().join("out");
    let again = chaos(&["report", out.to_str().unwrap()], &[]);
    assert_eq!(again.status.code(), Some(2));
    assert_eq!(text(&again.stdout), text(&first.stdout));
    assert_eq!(std::fs::read(&page).unwrap(), written);
}

#[test]
fn a_folder_without_a_report_is_a_mistake_of_the_caller() {
    let dir = tempfile::tempdir().unwrap();
    let output = chaos(&["report", dir.path().to_str().unwrap()], &[]);
    assert_eq!(output.status.code(), Some(64));
    assert!(text(&output.stderr).contains("report.json"), "{output:?}");
}

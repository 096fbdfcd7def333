//! Running programs, and telling what is being done.

use std::env;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

/// The workspace's folder.
pub(crate) fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_owned()
}

/// A line for people.
pub(crate) fn say(line: &str) {
    // Nothing can be done where not even this can be written.
    let _best_effort = writeln!(std::io::stderr().lock(), "{line}");
}

/// `cargo` with the workspace as its folder.
pub(crate) fn cargo(args: &[&str]) -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(args).current_dir(root());
    command
}

/// Runs a command, which must succeed.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("cannot start {command:?}"))?;
    if !status.success() {
        bail!("{command:?} ended with {status}");
    }
    Ok(())
}

/// Runs a command, which must succeed, and gives its standard output.
pub(crate) fn read(command: &mut Command) -> Result<String> {
    let output = command.stderr(std::process::Stdio::inherit()).output();
    let output = output.with_context(|| format!("cannot start {command:?}"))?;
    if !output.status.success() {
        bail!("{command:?} ended with {}", output.status);
    }
    String::from_utf8(output.stdout).with_context(|| format!("{command:?} printed what is not UTF-8"))
}

/// Builds a binary or example target and gives its path. `selection` is as for `cargo build`.
pub(crate) fn build(selection: &[&str], release: bool) -> Result<PathBuf> {
    let mut command = cargo(&["build", "--quiet", "--message-format=json-render-diagnostics"]);
    command.args(selection);
    if release {
        command.arg("--release");
    }
    let messages = read(&mut command)?;
    let messages = messages.lines().rev().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let executable = messages.filter_map(|message| message["executable"].as_str().map(PathBuf::from)).next();
    executable.with_context(|| format!("{selection:?} has no executable"))
}

/// The files that git knows or would add, below the workspace, with this ending.
pub(crate) fn files(ending: &str) -> Result<Vec<PathBuf>> {
    let mut git = Command::new("git");
    git.args(["ls-files", "--cached", "--others", "--exclude-standard"]).current_dir(root());
    let list = read(&mut git)?;
    Ok(list
        .lines()
        .map(PathBuf::from)
        .filter(|path| path.to_string_lossy().ends_with(ending) && root().join(path).exists())
        .collect())
}

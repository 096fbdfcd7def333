//! Running programs, and telling what is being done.

use std::env;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

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

/// Selects the whole workspace, and an example, which brings the features of test dependencies along. A package that is
/// built alone has features of its own: cargo would build its dependencies, and all members below it, a second time.
const AS_FOR_TESTS: &[&str] = &["--workspace", "--example", "floor"];

/// Builds binaries as the tests have them, and gives their paths.
pub(crate) fn binaries<const N: usize>(names: [&str; N]) -> Result<[PathBuf; N]> {
    let selection = names.iter().flat_map(|&name| ["--bin", name]);
    let selection: Vec<&str> = AS_FOR_TESTS.iter().copied().chain(selection).collect();
    let built = executables("build", &selection)?;
    let mut paths = Vec::new();
    for name in names {
        let path = built.iter().find(|built| built.kind == "bin" && built.name == name).map(|built| built.path.clone());
        paths.push(path.with_context(|| format!("cargo built no program `{name}`"))?);
    }
    paths.try_into().map_err(|_| anyhow::anyhow!("not every program has a path"))
}

/// Builds one program and gives its path. `selection` is as for `cargo build`.
pub(crate) fn build(selection: &[&str]) -> Result<PathBuf> {
    let built = executables("build", selection)?.pop();
    Ok(built.with_context(|| format!("{selection:?} has no executable"))?.path)
}

/// A program that cargo has built; where it lies is for cargo to say.
pub(crate) struct Executable {
    pub(crate) package: String,
    /// `lib`, `bin`, `test` or `example`.
    pub(crate) kind: String,
    pub(crate) name: String,
    /// Whether it runs tests.
    pub(crate) is_test: bool,
    /// The package's folder.
    pub(crate) folder: PathBuf,
    pub(crate) path: PathBuf,
}

/// Builds with this command of cargo, and gives every program that came of it.
pub(crate) fn executables(command: &str, selection: &[&str]) -> Result<Vec<Executable>> {
    let mut cargo = cargo(&[command, "--quiet", "--message-format=json-render-diagnostics"]);
    let messages = read(cargo.args(selection))?;
    Ok(messages.lines().filter_map(|line| executable(&serde_json::from_str(line).ok()?)).collect())
}

fn executable(message: &Value) -> Option<Executable> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let manifest = Path::new(message["manifest_path"].as_str()?);
    Some(Executable {
        // `path+file:///src/store#0.1.0`, or `#name@0.1.0` where the folder has another name.
        package: package_name(message["package_id"].as_str()?).to_owned(),
        kind: text(&message["target"]["kind"][0])?,
        name: text(&message["target"]["name"])?,
        is_test: message["profile"]["test"] == true,
        folder: manifest.parent()?.to_owned(),
        path: PathBuf::from(message["executable"].as_str()?),
    })
}

fn package_name(id: &str) -> &str {
    let (place, version) = id.split_once('#').unwrap_or((id, ""));
    let folder = place.rsplit('/').next().unwrap_or(place);
    version.split_once('@').map_or(folder, |(name, _)| name)
}

/// What cargo knows of the workspace without asking a registry.
pub(crate) fn metadata() -> Result<Value> {
    metadata_of(&mut cargo(&[]))
}

fn metadata_of(cargo: &mut Command) -> Result<Value> {
    Ok(serde_json::from_str(&read(cargo.args(["metadata", "--format-version=1", "--no-deps", "--offline"]))?)?)
}

/// The folder that cargo builds into, wherever `CARGO_TARGET_DIR` or its configuration has put it.
pub(crate) fn target_folder() -> Result<PathBuf> {
    target_folder_in(&metadata()?)
}

fn target_folder_in(metadata: &Value) -> Result<PathBuf> {
    Ok(metadata["target_directory"].as_str().context("cargo names no target folder")?.into())
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

#[cfg(test)]
mod tests {
    use super::*;

    /// `cargo xtask bench` looked for `target` in the workspace and failed with "No such file" for everybody who builds
    /// elsewhere.
    #[test]
    fn where_people_build_is_for_cargo_to_say() {
        let elsewhere = Path::new("/nonexistent/elsewhere");
        let metadata = metadata_of(cargo(&[]).env("CARGO_TARGET_DIR", elsewhere)).unwrap();
        assert_eq!(target_folder_in(&metadata).unwrap(), elsewhere);
    }

    #[test]
    fn a_package_has_a_name_whatever_its_folder_is_called() {
        assert_eq!(package_name("path+file:///src/store#0.1.0"), "store");
        assert_eq!(package_name("path+file:///src/x#store@0.1.0"), "store");
    }
}

//! The test programs of the workspace, several at a time: the longest of them mostly wait.
//!
//! Cargo builds them all at once and says where they lie; it would run them one after the other.

use std::collections::VecDeque;
use std::process::{Command, Output};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use anyhow::{Context as _, Result, bail};

use crate::util::{self, Executable};

/// Tests that play whole labs or explore whole worlds: package and target. A save does not wait for them.
const LONG: &[(&str, &str)] = &[("chaos", "lab"), ("fixtures", "python_agent"), ("store", "model")];

/// Test programs that mostly wait, so that they begin first.
const FIRST: &[(&str, &str)] = &[("chaos", "lab"), ("agent", "cli")];

/// Which test programs are meant.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Which {
    /// All but [`LONG`].
    Short,
    /// [`LONG`] alone.
    Long,
}

pub(crate) fn run(which: Which) -> Result<()> {
    let mut built = util::executables("test", &["--workspace", "--no-run"])?;
    built.retain(|built| built.is_test);
    for (package, name) in LONG.iter().chain(FIRST) {
        if !built.iter().any(|built| is(built, &[(package, name)])) {
            bail!("the rule for the tests `{name}` of {package} is stale: there are no such tests");
        }
    }
    built.retain(|built| is(built, LONG) == (which == Which::Long));
    built.sort_by_key(|built| !is(built, FIRST));
    let queue = Mutex::new(VecDeque::from(built));
    let failed = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some(program) = next(&queue) {
                    if let Err(error) = try_one(&program) {
                        util::say(&format!("{error:#}"));
                        failed.lock().unwrap_or_else(PoisonError::into_inner).push(program.name);
                    }
                }
            });
        }
    });
    match failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
        failed if failed.is_empty() => Ok(()),
        failed => bail!("tests failed, see above: {}", failed.join(", ")),
    }
}

fn is(program: &Executable, list: &[(&str, &str)]) -> bool {
    list.contains(&(program.package.as_str(), program.name.as_str()))
}

fn next(queue: &Mutex<VecDeque<Executable>>) -> Option<Executable> {
    queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
}

/// In the package's folder, as cargo does it. What a program says is shown where it fails, with the way to repeat it.
fn try_one(program: &Executable) -> Result<()> {
    let start = Instant::now();
    let Executable { package, kind, name, folder, path, .. } = program;
    let output = Command::new(path).arg("--quiet").current_dir(folder).env("CARGO_MANIFEST_DIR", folder).output();
    let output = output.with_context(|| format!("cannot start {}", path.display()))?;
    let title = format!("{package} {kind} {name}");
    if output.status.success() {
        util::say(&format!("  {title}: {}, {:.1} s", passed(&output), start.elapsed().as_secs_f64()));
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    let target = if kind == "lib" { "--lib".to_owned() } else { format!("--{kind} {name}") };
    bail!("{said}\n{title} ended with {}; to repeat it: cargo test -p {package} {target}", output.status)
}

/// `12 passed`, from the line that ends the output.
fn passed(output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stdout);
    let line = said.lines().rev().find_map(|line| line.strip_prefix("test result: ok. "));
    line.and_then(|line| line.split(';').next()).unwrap_or("passed").to_owned()
}

//! The test programs of the workspace, several at a time: the longest of them mostly wait.
//!
//! Cargo builds them all at once and says where they lie; it would run them one after the other.

use std::collections::VecDeque;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
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

/// Runs them and gives the number of tests that passed.
pub(crate) fn run(which: Which) -> Result<usize> {
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
    let (failed, passed) = (Mutex::new(Vec::new()), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some(program) = next(&queue) {
                    match try_one(&program) {
                        Ok(tests) => _ = passed.fetch_add(tests, Ordering::Relaxed),
                        Err(error) => {
                            util::say(&format!("{error:#}"));
                            failed.lock().unwrap_or_else(PoisonError::into_inner).push(program.name);
                        }
                    }
                }
            });
        }
    });
    match failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
        failed if failed.is_empty() => Ok(passed.into_inner()),
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
fn try_one(program: &Executable) -> Result<usize> {
    let start = Instant::now();
    let Executable { package, kind, name, folder, path, .. } = program;
    let output = Command::new(path).arg("--quiet").current_dir(folder).env("CARGO_MANIFEST_DIR", folder).output();
    let output = output.with_context(|| format!("cannot start {}", path.display()))?;
    let title = format!("{package} {kind} {name}");
    let said = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        let said = said + String::from_utf8_lossy(&output.stderr);
        let target = if kind == "lib" { "--lib".to_owned() } else { format!("--{kind} {name}") };
        bail!("{said}\n{title} ended with {}; to repeat it: cargo test -p {package} {target}", output.status)
    }
    let (verdict, passed) = verdict(&said).with_context(|| format!("{title} does not say what became of its tests"))?;
    util::say(&format!("  {title}, {:.1} s: {verdict}", start.elapsed().as_secs_f64()));
    Ok(passed)
}

/// The line that ends the output, and how many tests passed by it. A program without one has run no test, whatever its
/// exit code.
fn verdict(said: &str) -> Option<(&str, usize)> {
    let line = said.lines().rev().find(|line| line.starts_with(PASSED))?;
    let passed = line[PASSED.len()..].split(' ').next()?.parse().ok()?;
    Some((line, passed))
}

/// How libtest begins the line that ends its output.
const PASSED: &str = "test result: ok. ";

#[cfg(test)]
mod tests {
    use super::*;

    /// A program that ended before it came to its tests, with exit code 0, was shown as passed.
    #[test]
    fn a_program_that_ran_no_test_has_not_passed() {
        let said = "\nrunning 2 tests\n..\ntest result: ok. 2 passed; 0 failed; 0 ignored\n\n";
        assert_eq!(verdict(said), Some(("test result: ok. 2 passed; 0 failed; 0 ignored", 2)));
        for said in ["", "\nrunning 2 tests\n.", "test result: FAILED. 1 passed; 1 failed"] {
            assert_eq!(verdict(said), None, "{said}");
        }
    }
}

//! The lab against a bare loop that starts, kills and restarts the agent without looking.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use crate::util;

/// Pairs that are compared.
const ROUNDS: usize = 3;

/// How long the bare loop goes on.
const LOOP: Duration = Duration::from_secs(3);

/// Where the agent is killed in turn.
const POINTS: [&str; 9] = [
    "before_effect:0",
    "after_effect:0",
    "after_commit:0",
    "before_effect:1",
    "after_effect:1",
    "after_commit:1",
    "before_effect:2",
    "after_effect:2",
    "after_commit:2",
];

const PLAN: &str = r#"{"goal": "Summarize notes into a report", "steps": [
    {"tool": "fetch", "input": {"path": "input/notes.txt"}},
    {"tool": "summarize", "input": {"from": 0}},
    {"tool": "write_artifact", "input": {"from": 1}}]}"#;

/// Cycles per second of the lab's `points` and `nested` for the report plan, by those of the bare loop: the median of
/// a few pairs, each measured in turn.
///
/// # Errors
/// An agent that cannot be built, or does not end as it must.
pub(crate) fn against_a_bare_loop() -> Result<f64> {
    let [agent, chaos] = util::binaries(["agent", "chaos"])?;
    let folder = tempfile::Builder::new().prefix("bench-lab-").tempdir_in(memory())?;
    fs::write(folder.path().join("plan.json"), PLAN)?;
    fs::create_dir(folder.path().join("input"))?;
    fs::write(folder.path().join("input/notes.txt"), "One\nTwo\nThree\n")?;
    let mut ratios = Vec::new();
    for _ in 0..ROUNDS {
        let bare = bare(&agent, folder.path())?;
        ratios.push(lab(&chaos, &agent, folder.path())? / bare);
    }
    ratios.sort_by(f64::total_cmp);
    Ok(ratios[ROUNDS / 2])
}

/// How long a start of Python takes under the lab's tracer, by what it takes without.
///
/// # Errors
/// It cannot be built or started.
pub(crate) fn tracing() -> Result<f64> {
    let chaos = util::build(&["-p", "chaos", "--bin", "chaos"])?;
    let traced = util::build(&["-p", "chaos", "--example", "traced"])?;
    let output = Command::new(&traced).arg(chaos).arg("python3 -c 'import json, sqlite3'").output();
    let output = output.with_context(|| format!("cannot start {}", traced.display()))?;
    let said = String::from_utf8_lossy(&output.stdout);
    said.trim()
        .parse()
        .with_context(|| format!("it ended with {}: {}", output.status, String::from_utf8_lossy(&output.stderr)))
}

/// Where the lab has its folders too.
fn memory() -> PathBuf {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() }
}

fn lab(chaos: &Path, agent: &Path, folder: &Path) -> Result<f64> {
    let quoted = format!("'{}'", agent.display());
    let mut lab = Command::new(chaos);
    lab.args(["run", "--json", "--method", "points,nested", "--plan", "plan.json", "--agent", &quoted]);
    let output = lab.current_dir(folder).output().context("cannot start the lab")?;
    if !output.status.success() {
        bail!("the lab ended with {}: {}", output.status, String::from_utf8_lossy(&output.stderr));
    }
    let report: Value = serde_json::from_slice(&output.stdout).context("the lab's report is not JSON")?;
    report["cycles_per_second"].as_f64().context("the lab tells no cycles per second")
}

/// As many side by side as the lab has.
fn bare(agent: &Path, folder: &Path) -> Result<f64> {
    let (begin, cycles) = (Instant::now(), AtomicUsize::new(0));
    let work = || -> Result<()> {
        let own = tempfile::tempdir_in(folder)?;
        let begun = own.path().join("begun");
        prepare(agent, folder, &begun)?;
        while begin.elapsed() < LOOP {
            let number = cycles.fetch_add(1, Ordering::Relaxed);
            let world = own.path().join(number.to_string());
            copy(&begun, &world)?;
            run(agent, &world, Some(POINTS[number % POINTS.len()]))?;
            run(agent, &world, None)?;
            fs::remove_dir_all(&world)?;
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let side_by_side = 2 * std::thread::available_parallelism().map_or(1, usize::from);
        let threads: Vec<_> = (0..side_by_side).map(|_| scope.spawn(work)).collect();
        threads.into_iter().try_for_each(|thread| thread.join().unwrap_or_else(|_| bail!("a thread has died")))
    })?;
    Ok(cycles.into_inner() as f64 / begin.elapsed().as_secs_f64())
}

fn prepare(agent: &Path, folder: &Path, begun: &Path) -> Result<()> {
    fs::create_dir_all(begun.join("input"))?;
    for name in ["plan.json", "input/notes.txt"] {
        fs::copy(folder.join(name), begun.join(name))?;
    }
    let mut create = quiet(agent, begun);
    if !create.args(["create", "t", "plan.json"]).status()?.success() {
        bail!("the agent cannot create a task");
    }
    Ok(())
}

fn run(agent: &Path, world: &Path, kill: Option<&str>) -> Result<()> {
    let mut run = quiet(agent, world);
    run.args(["run", "t"]);
    if let Some(point) = kill {
        run.env("AGENT_CRASH_AT", point);
    }
    let status = run.status()?;
    if status.success() == kill.is_some() {
        bail!("a run that was to be killed at {kill:?} ended with {status}");
    }
    Ok(())
}

fn quiet(agent: &Path, world: &Path) -> Command {
    let mut command = Command::new(agent);
    command.current_dir(world).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

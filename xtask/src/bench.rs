//! `cargo xtask bench`: speed and size, as ratios in one run.
//!
//! Machines are noisy, so nothing here is a test: the two sides of a ratio are measured in turn, in the same run, and
//! medians are compared. The work is done on the disk below the target folder, because a tmpfs makes a sync cost
//! nothing.

mod lab;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use serde_json::json;

use crate::util;

/// Pairs per ratio.
const ROUNDS: usize = 7;

pub(crate) fn run() -> Result<()> {
    let bench = Bench::new()?;
    util::say("measure                                              | value          | target");
    util::say("---------------------------------------------------- | -------------- | --------");
    bench.against_the_floor()?;
    bench.long_against_short()?;
    bench.template()?;
    bench.program()?;
    bench.status()?;
    bench.note()?;
    bench.history()?;
    let ratio = lab::against_a_bare_loop()?;
    row("the lab's cycles/s, against a loop that does not look", &format!("{ratio:.2}"), ">= 0.70");
    row("a start of Python under the lab's tracer, by that without", &format!("{:.2}", lab::tracing()?), "<= 1.3");
    Ok(())
}

struct Bench {
    agent: PathBuf,
    floor: PathBuf,
    folder: tempfile::TempDir,
}

impl Bench {
    fn new() -> Result<Self> {
        let agent = util::build(&["--release", "-p", "agent", "--bin", "agent"])?;
        let floor = util::build(&["--release", "-p", "store", "--example", "floor"])?;
        let folder = tempfile::Builder::new().prefix("bench-").tempdir_in(util::target_folder()?)?;
        Ok(Self { agent, floor, folder })
    }

    fn against_the_floor(&self) -> Result<()> {
        const STEPS: u32 = 2000;
        let (mut ours, mut floors) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            let db = self.fresh("floor.db")?;
            self.succeed(Command::new(&self.floor).args(["create", &db, &STEPS.to_string()]))?;
            floors.push(self.succeed(Command::new(&self.floor).args(["run", &db]))?);
            ours.push(self.echo_run(STEPS)?);
        }
        let (ours, floor) = (per_second(STEPS, &mut ours), per_second(STEPS, &mut floors));
        row("one task of echo steps, against a bare rusqlite loop", &format!("{:.2}", ours / floor), ">= 0.90");
        row("  the same, absolute on this machine", &format!("{ours:.0} steps/s"), "");
        Ok(())
    }

    fn long_against_short(&self) -> Result<()> {
        let (mut long, mut short) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            short.push(self.echo_run(100)?);
            long.push(self.echo_run(3000)?);
        }
        let ratio = per_second(3000, &mut long) / per_second(100, &mut short);
        row("steps/s at 3,000 steps, against 100 steps", &format!("{ratio:.2}"), ">= 0.95");
        Ok(())
    }

    /// What it costs a step that its input is rendered, and its digest kept.
    fn template(&self) -> Result<()> {
        const STEPS: usize = 1000;
        let plan = |value: &str| {
            let step = json!({ "tool": "echo", "input": { "value": value } });
            json!({ "goal": "g", "inputs": { "n": 1 }, "steps": vec![step; STEPS] })
        };
        let (mut plain, mut rendered) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            plain.push(self.run_of(&plan("a text of a plan"))?);
            rendered.push(self.run_of(&plan("a text of {{ inputs.n }}"))?);
        }
        let ratio = median(&mut plain).as_secs_f64() / median(&mut rendered).as_secs_f64();
        row("steps/s with a template, against without", &format!("{ratio:.2}"), "");
        Ok(())
    }

    /// What a program costs as a step, beyond the step.
    fn program(&self) -> Result<()> {
        const STEPS: usize = 100;
        let step = json!({ "tool": "exec", "effect": "pure", "input": { "command": ["/bin/true"], "stdout": "text" } });
        let plan = json!({ "goal": "g", "steps": vec![step; STEPS] });
        let (mut programs, mut plain, mut bare) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            programs.push(self.run_of(&plan)?);
            plain.push(self.echo_run(STEPS as u32)?);
            let start = Instant::now();
            for _ in 0..STEPS {
                Command::new("/bin/true").stdin(Stdio::null()).status().context("cannot start /bin/true")?;
            }
            bare.push(start.elapsed());
        }
        let added = median(&mut programs).saturating_sub(median(&mut plain)).as_secs_f64();
        let ratio = added / median(&mut bare).as_secs_f64();
        row("an exec step beyond an echo step, by starting /bin/true", &format!("{ratio:.1}"), "<= 2.5");
        Ok(())
    }

    fn run_of(&self, plan: &serde_json::Value) -> Result<Duration> {
        let db = self.created_with(plan)?;
        self.succeed(&mut self.agent(&db, &["run", "t"]))
    }

    fn status(&self) -> Result<()> {
        let db = self.created(3)?;
        let mut times =
            (0..50).map(|_| self.succeed(&mut self.agent(&db, &["status", "t"]))).collect::<Result<Vec<_>>>()?;
        row("`agent status`, process start to end", &format!("{:.1} ms", millis(median(&mut times))), "<= 5 ms");
        Ok(())
    }

    /// The cost of a large text on its way from file to database, without that of the process itself.
    fn note(&self) -> Result<()> {
        const BYTES: usize = 5 << 20;
        let text = "Grüße, line of a long note\n".repeat(BYTES / 28);
        let mut peaks = [0, 0];
        for (peak, text) in peaks.iter_mut().zip(["small", &text]) {
            fs::write(self.folder.path().join("note.txt"), text)?;
            let plan = json!({"goal": "g", "steps": [
                {"tool": "fetch", "input": {"path": "note.txt"}},
                {"tool": "summarize", "input": {"from": 0}},
                {"tool": "echo", "input": {"value": 1}}]});
            let db = self.created_with(&plan)?;
            // The pause holds the process while its peak is read.
            *peak = self.peak_memory(self.agent(&db, &["run", "t"]).env("AGENT_STEP_DELAY", "0.1"))?;
        }
        let times = (peaks[1] - peaks[0]) as f64 / text.len() as f64;
        row("memory for a 5 MB note, by its size", &format!("{times:.1}"), "<= 5");
        Ok(())
    }

    /// A history of 100,000 finished steps, against one of 1,000.
    fn history(&self) -> Result<()> {
        let mut resumes = Vec::new();
        for steps in [1_000u32, 100_000] {
            let db = self.created(steps + 1)?;
            let before = size(&db)?;
            let at = format!("before_effect:{steps}");
            let peak = self.peak_memory(self.agent(&db, &["run", "t"]).env("AGENT_CRASH_AT", &at))?;
            if steps == 100_000 {
                row("peak memory of a run of 100,000 steps", &format!("{:.1} MB", peak as f64 / 1e6), "<= 40 MB");
                let grown = (size(&db)? - before) as f64 / f64::from(steps);
                row("database growth by echo step", &format!("{grown:.0} bytes"), "<= 180");
            }
            let mut times = Vec::new();
            for _ in 0..21 {
                let copy = self.copy(&db)?;
                let start = Instant::now();
                let mut run = self.agent(&copy, &["run", "t"]);
                let status = run.env("AGENT_CRASH_AT", &at).env("AGENT_MAX_ATTEMPTS", "9").status()?;
                if status.success() {
                    bail!("the run was not stopped at {at}");
                }
                times.push(start.elapsed());
            }
            resumes.push(median(&mut times));
        }
        row("resume to first step, 100,000 finished steps", &format!("{:.1} ms", millis(resumes[1])), "<= 20 ms");
        let ratio = resumes[1].as_secs_f64() / resumes[0].as_secs_f64();
        row("  the same, against 1,000 finished steps", &format!("{ratio:.2}"), "<= 3");
        Ok(())
    }

    fn echo_run(&self, steps: u32) -> Result<Duration> {
        let db = self.created(steps)?;
        self.succeed(&mut self.agent(&db, &["run", "t"]))
    }

    fn created(&self, steps: u32) -> Result<String> {
        let step = json!({"tool": "echo", "input": {"value": 1}});
        self.created_with(&json!({"goal": "g", "steps": vec![step; steps as usize]}))
    }

    fn created_with(&self, plan: &serde_json::Value) -> Result<String> {
        let path = self.folder.path().join("plan.json");
        fs::write(&path, plan.to_string())?;
        let db = self.fresh("agent.db")?;
        self.succeed(&mut self.agent(&db, &["create", "t", "plan.json"]))?;
        Ok(db)
    }

    fn agent(&self, db: &str, args: &[&str]) -> Command {
        let mut command = Command::new(&self.agent);
        command
            .args(["--db", db])
            .args(args)
            .current_dir(self.folder.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command
    }

    /// A path with nothing at it.
    fn fresh(&self, name: &str) -> Result<String> {
        for entry in fs::read_dir(self.folder.path())? {
            let path = entry?.path();
            if path.file_name().is_some_and(|found| found.to_string_lossy().starts_with(name)) {
                if path.is_dir() { fs::remove_dir_all(path)? } else { fs::remove_file(path)? }
            }
        }
        Ok(self.folder.path().join(name).to_string_lossy().into_owned())
    }

    /// The database as the kill left it, so that each resume finds the same.
    fn copy(&self, db: &str) -> Result<String> {
        let copy = self.fresh("copy.db")?;
        for suffix in ["", "-wal", "-shm"] {
            if Path::new(&format!("{db}{suffix}")).exists() {
                fs::copy(format!("{db}{suffix}"), format!("{copy}{suffix}"))?;
            }
        }
        Ok(copy)
    }

    fn succeed(&self, command: &mut Command) -> Result<Duration> {
        let start = Instant::now();
        let status = command.status().with_context(|| format!("cannot start {command:?}"))?;
        if !status.success() {
            bail!("{command:?} ended with {status}");
        }
        Ok(start.elapsed())
    }

    /// High-water mark of resident memory in bytes, as the kernel has it.
    fn peak_memory(&self, command: &mut Command) -> Result<u64> {
        let mut child = command.spawn().with_context(|| format!("cannot start {command:?}"))?;
        let path = format!("/proc/{}/status", child.id());
        let mut peak = 0;
        while child.try_wait()?.is_none() {
            let status = fs::read_to_string(&path).unwrap_or_default();
            let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
            let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok());
            peak = peak.max(kib.unwrap_or_default() * 1024);
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(peak)
    }
}

fn row(measure: &str, value: &str, target: &str) {
    util::say(&format!("{measure:<52} | {value:<14} | {target}"));
}

fn size(db: &str) -> Result<u64> {
    Ok(fs::metadata(db)?.len())
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

fn per_second(steps: u32, times: &mut [Duration]) -> f64 {
    f64::from(steps) / median(times).as_secs_f64()
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

//! One call of a program as the exec protocol has it, to its end or up to a kill.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::{Map, Value, json};

use crate::agent::process::{Ended, Launch, Outcome, now};
use crate::agent::target::Target;
use crate::crash::{LAUNCH, counts};
use crate::error::LabError;
use crate::trace::{self, Call, Done, Recorder, Start, Verb, Watch};

/// Gives the program its input and its third descriptor, and becomes it.
const SHELL: &str = r#"exec "$@" <"$0.in" 3>"$0.checkpoints""#;

/// What is passed on without being named.
const PASSED_ON: [&str; 4] = ["PATH", "HOME", "LANG", "TZ"];

/// The task that the program is told it works for.
const TASK: &str = "chaos";

/// A program, ready to be called.
pub struct Program {
    target: Target,
    dir: PathBuf,
    /// Where the lab keeps what it tells the program and what that says.
    own: PathBuf,
    launcher: PathBuf,
    payload: Value,
    calls: AtomicU32,
}

/// A call's place in the life of its effect.
#[derive(Clone, Debug)]
pub(super) struct Attempt {
    pub(super) key: String,
    pub(super) number: u32,
    pub(super) checkpoint: Value,
}

/// When a call is ended.
#[derive(Clone, Copy, Debug)]
pub(super) enum Until {
    End,
    /// So long after its start.
    Moment(Duration),
    /// After the system call that has so many before it which change a file.
    Call(usize),
}

/// What came of a call.
#[derive(Debug)]
pub(super) struct Called {
    pub(super) outcome: Outcome,
    /// The last checkpoint that it gave; null if none.
    pub(super) checkpoint: Value,
    /// The system call at which it was killed.
    pub(super) at: Option<&'static str>,
}

impl Called {
    /// Whether the kill came before its end.
    pub(super) fn was_killed(&self) -> bool {
        self.outcome.ended == Ended::Signaled(Signal::SIGKILL as i32)
    }

    /// Its output, or what is wrong with it.
    pub(super) fn output(&self) -> Result<Map<String, Value>, String> {
        match self.outcome.ended {
            Ended::Exited(0) => match serde_json::from_str(&self.outcome.stdout) {
                Ok(Value::Object(output)) => Ok(output),
                _ => Err(format!("what it printed is not one JSON object: {:?}", head(&self.outcome.stdout))),
            },
            _ => Err(self.outcome.describe()),
        }
    }
}

fn head(text: &str) -> String {
    text.chars().take(60).collect()
}

/// What a check may answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Check {
    /// The effect is there.
    Happened,
    /// It has not happened and will not.
    Absent,
    /// It cannot tell.
    Unknown,
}

impl Program {
    /// A program that is called in the folder `dir`. `own` is a folder of the lab's.
    ///
    /// # Errors
    /// No command.
    pub fn new(
        words: &[String],
        dir: &Path,
        own: &Path,
        launcher: &Path,
        payload: Value,
        pass: &[String],
    ) -> Result<Self, LabError> {
        let given = shell_words::join(words);
        let passed: BTreeSet<OsString> =
            PASSED_ON.iter().map(OsString::from).chain(pass.iter().map(OsString::from)).collect();
        let scrub = std::env::vars_os().map(|(name, _)| name).filter(|name| !passed.contains(name)).collect();
        let target = Target::new(&given, dir, scrub)?;
        let (dir, own, launcher) = (dir.to_owned(), own.to_owned(), launcher.to_owned());
        Ok(Self { target, dir, own, launcher, payload, calls: AtomicU32::new(0) })
    }

    /// The same program's surroundings for another command, such as its check.
    ///
    /// # Errors
    /// A command that cannot be split into words.
    pub fn other(&self, command: &str) -> Result<Self, LabError> {
        let mut target = Target::new(command, &self.dir, self.target.scrub.clone())?;
        target.deadline = self.target.deadline;
        let own = self.own.join("check");
        std::fs::create_dir_all(&own).map_err(LabError::io("create", &own))?;
        let (dir, launcher, payload) = (self.dir.clone(), self.launcher.clone(), self.payload.clone());
        Ok(Self { target, dir, own, launcher, payload, calls: AtomicU32::new(0) })
    }

    /// Ends a call after so long.
    pub fn deadline(&mut self, deadline: Duration) {
        self.target.deadline = deadline;
    }

    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Calls it.
    ///
    /// # Errors
    /// The lab's own failures.
    pub(super) fn call(&self, attempt: &Attempt, until: Until) -> Result<Called, LabError> {
        self.launched(attempt, |launch| match until {
            Until::End => Ok((launch.start()?.finish()?, None)),
            Until::Moment(time) => {
                let mut running = launch.start()?;
                if !running.ended_within(time) {
                    running.signal_all(Signal::SIGKILL);
                }
                Ok((running.finish()?, None))
            }
            Until::Call(index) => {
                let mut sniper = Sniper { left: index, hit: None };
                let outcome = self.traced(&launch, &mut sniper)?;
                Ok((outcome, sniper.hit))
            }
        })
    }

    /// Calls it and counts the system calls at which it could have been killed; none where there is no tracer.
    ///
    /// # Errors
    /// The lab's own failures.
    pub(super) fn places(&self, attempt: &Attempt) -> Result<(Called, usize), LabError> {
        if !trace::available() {
            return Ok((self.call(attempt, Until::End)?, 0));
        }
        // No call has this number, so it is only counted down.
        let mut sniper = Sniper { left: usize::MAX, hit: None };
        let called = self.launched(attempt, |launch| Ok((self.traced(&launch, &mut sniper)?, None)))?;
        Ok((called, usize::MAX - sniper.left))
    }

    /// Starts two at the same time and gives what came of both.
    ///
    /// # Errors
    /// The lab's own failures.
    pub(super) fn two_at_once(&self, attempt: &Attempt) -> Result<[Called; 2], LabError> {
        std::thread::scope(|scope| {
            let call = || self.call(attempt, Until::End);
            let other = scope.spawn(call);
            let own = call();
            Ok([own?, other.join().map_err(|_| LabError::poisoned())??])
        })
    }

    fn launched(
        &self,
        attempt: &Attempt,
        run: impl FnOnce(Launch<'_>) -> Result<(Outcome, Option<&'static str>), LabError>,
    ) -> Result<Called, LabError> {
        let stem = self.own.join(self.calls.fetch_add(1, Ordering::Relaxed).to_string());
        let Attempt { key, number, checkpoint } = attempt;
        let given = json!({
            "input": self.payload, "key": key, "task": TASK, "step": 0, "attempt": number, "checkpoint": checkpoint,
        });
        let input = stem.with_extension("in");
        std::fs::write(&input, given.to_string()).map_err(LabError::io("write", &input))?;
        let mut target = self.target.clone();
        let shell = ["sh", "-c", SHELL].map(str::to_owned).into_iter().chain([stem.to_string_lossy().into_owned()]);
        target.words = shell.chain(target.words).collect();
        let launch = Launch::new(&target, [], &self.dir, &stem).env(vec![
            ("AGENT_TASK", TASK.to_owned()),
            ("AGENT_STEP", "0".to_owned()),
            ("AGENT_ATTEMPT", number.to_string()),
            ("AGENT_IDEMPOTENCY_KEY", key.clone()),
        ]);
        let (outcome, at) = run(launch)?;
        Ok(Called { outcome, checkpoint: last_checkpoint(&stem.with_extension("checkpoints")), at })
    }

    fn traced(&self, launch: &Launch<'_>, sniper: &mut Sniper) -> Result<Outcome, LabError> {
        // Wherever it writes, a kill may come after it.
        let mut recorder = Recorder::new(Path::new("/"))?;
        let launcher = self.launcher.to_string_lossy();
        let command = launch.command(&[&launcher, LAUNCH])?;
        let start = Start { command, given: launch.given(), printed: launch.printed(), deadline: launch.time() };
        let started_at = now();
        let traced = trace::trace(start, &mut recorder, sniper)?;
        launch.outcome(started_at, traced.ended, traced.survivors)
    }
}

/// Kills after the call that has so many others before it.
struct Sniper {
    left: usize,
    hit: Option<&'static str>,
}

impl Watch for Sniper {
    fn after(&mut self, call: &Call, _: Done) -> Result<Verb, LabError> {
        if !counts(call) || self.hit.is_some() {
            return Ok(Verb::Go);
        }
        if self.left > 0 {
            self.left -= 1;
            return Ok(Verb::Go);
        }
        self.hit = Some(call.name);
        Ok(Verb::Kill)
    }
}

/// A line that was torn by a kill does not count.
fn last_checkpoint(file: &Path) -> Value {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
    let last = whole.lines().rev().find_map(|line| serde_json::from_str::<Value>(line).ok());
    last.and_then(|last| last.get("checkpoint").cloned()).unwrap_or_default()
}

//! One process of the agent: started with a clean environment in a process group of its own, watched with a deadline,
//! its end read from the kernel.
//!
//! A process that hangs is a finding, never a hung lab.

use std::fs::File;
use std::io::Read as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use nix::sys::signal::{Signal, kill, killpg};
use nix::sys::wait::{Id, WaitPidFlag, waitid};
use nix::unistd::Pid;

use crate::agent::live::{self, Group};
use crate::agent::stray::{self, Stray};
use crate::agent::target::Target;
use crate::error::LabError;

/// How much of a process's output is kept.
pub const MAX_OUTPUT_BYTES: u64 = 1 << 20;

/// Variables for the agent.
pub type Env = Vec<(&'static str, String)>;

/// What is about to be started.
pub struct Launch<'a> {
    target: &'a Target,
    args: Vec<String>,
    env: Env,
    dir: PathBuf,
    stem: PathBuf,
    deadline: Duration,
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// It exited with this code.
    Exited(i32),
    /// It died of this signal.
    Signaled(i32),
    /// It was still there at the deadline, and the lab ended it.
    Hung,
}

/// Everything that the lab knows of a process that has ended.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// Seconds since the epoch.
    pub started_at: f64,
    /// Seconds since the epoch.
    pub ended_at: f64,
    /// How it ended.
    pub ended: Ended,
    /// What it wrote, at most [`MAX_OUTPUT_BYTES`].
    pub stdout: String,
    /// What it wrote, at most [`MAX_OUTPUT_BYTES`].
    pub stderr: String,
    /// Other processes of its group that outlived it for longer than a wrapper's leftovers do. They have been ended.
    pub survivors: Vec<Stray>,
}

/// A process that may still run. Dropped early, it is killed.
pub struct Running {
    child: Child,
    group: Group,
    ended: Receiver<()>,
    over: bool,
    reaped: bool,
    begin: Instant,
    started_at: f64,
    stem: PathBuf,
    deadline: Duration,
}

impl<'a> Launch<'a> {
    /// `args` for the agent, to be run in `dir`; what it prints is kept in the files `stem.out` and `stem.err`.
    #[must_use]
    pub fn new<'b>(target: &'a Target, args: impl IntoIterator<Item = &'b str>, dir: &Path, stem: &Path) -> Self {
        let args = args.into_iter().map(str::to_owned).collect();
        let (dir, stem) = (dir.to_owned(), stem.to_owned());
        Self { target, args, env: Env::new(), dir, stem, deadline: target.deadline }
    }

    /// With these variables more on top of the scrubbed environment.
    #[must_use]
    pub fn env(mut self, env: Env) -> Self {
        self.env.extend(env);
        self
    }

    /// The command, ready to be started, with the words of `wrapper` before it.
    ///
    /// # Errors
    /// Files that cannot be created.
    pub fn command(&self, wrapper: &[&str]) -> Result<Command, LabError> {
        let mut words = wrapper.iter().copied().chain(self.target.words.iter().map(String::as_str));
        let program =
            words.next().ok_or_else(|| LabError::Internal("an agent without a command was let through".to_owned()))?;
        let mut command = Command::new(program);
        command.args(words).args(&self.args).current_dir(&self.dir);
        for name in &self.target.scrub {
            command.env_remove(name);
        }
        command
            .envs(self.env.iter().map(|(name, value)| (*name, value)))
            .env(stray::MARK, &self.dir)
            .stdin(Stdio::null())
            .stdout(create(&self.stem, "out")?)
            .stderr(create(&self.stem, "err")?)
            .process_group(0);
        Ok(command)
    }

    /// What a process of this launch that has ended is remembered by.
    ///
    /// # Errors
    /// Output that cannot be read.
    pub fn outcome(&self, started_at: f64, ended: Ended, survivors: Vec<Stray>) -> Result<Outcome, LabError> {
        let (stdout, stderr) = (read(&self.stem, "out")?, read(&self.stem, "err")?);
        Ok(Outcome { started_at, ended_at: now(), ended, stdout, stderr, survivors })
    }

    /// The files that keep what it prints, and what it complains about.
    #[must_use]
    pub fn printed(&self) -> [PathBuf; 2] {
        ["out", "err"].map(|suffix| self.stem.with_extension(suffix))
    }

    /// How long it may take.
    #[must_use]
    pub fn time(&self) -> Duration {
        self.deadline
    }

    /// The command as it was given, for people.
    #[must_use]
    pub fn given(&self) -> &str {
        &self.target.given
    }

    /// Starts the process.
    ///
    /// # Errors
    /// A command that cannot be started, files that cannot be created.
    pub fn start(self) -> Result<Running, LabError> {
        let mut command = self.command(&[])?;
        let started_at = now();
        let begin = Instant::now();
        let started = live::spawn(&mut command);
        let (child, group) =
            started.map_err(|source| LabError::Spawn { command: self.target.given.clone(), source })?;
        Ok(Running {
            ended: watch(group.id())?,
            child,
            group,
            over: false,
            reaped: false,
            begin,
            started_at,
            stem: self.stem,
            deadline: self.deadline,
        })
    }
}

/// Waits for the end in a thread of its own, without reaping: the process id stays taken until [`Running::finish`], so
/// that no signal can hit a stranger.
fn watch(pid: Pid) -> Result<Receiver<()>, LabError> {
    let (tell, ended) = channel();
    std::thread::Builder::new()
        .stack_size(64 << 10)
        .spawn(move || {
            let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT;
            while waitid(Id::Pid(pid), flags) == Err(nix::errno::Errno::EINTR) {}
            // Nobody listens where the lab gave the process up.
            let _ = tell.send(());
        })
        .map_err(|e| LabError::Internal(format!("cannot start a thread: {e}")))?;
    Ok(ended)
}

impl Running {
    /// Waits at most `time` for the end; `true` where it has come.
    pub fn ended_within(&mut self, time: Duration) -> bool {
        self.over = self.over || self.ended.recv_timeout(time).is_ok();
        self.over
    }

    /// Time since the start.
    #[must_use]
    pub fn age(&self) -> Duration {
        self.begin.elapsed()
    }

    /// What is left until the deadline.
    #[must_use]
    pub fn time_left(&self) -> Duration {
        self.deadline.saturating_sub(self.age())
    }

    /// Whether the process has this library in it; a process that has ended has nothing.
    #[must_use]
    pub fn has_mapped(&self, library: &Path) -> bool {
        let maps = std::fs::read_to_string(format!("/proc/{}/maps", self.group.id())).unwrap_or_default();
        // The name may be a link, so that the kernel knows it by another one in the same folder.
        library.canonicalize().is_ok_and(|library| maps.contains(&*library.to_string_lossy()))
    }

    /// Sends a signal to the process alone.
    pub fn signal(&self, signal: Signal) {
        // Fails only where the process has ended, which the outcome tells.
        let _ = kill(self.group.id(), signal);
    }

    /// Sends a signal to the process and to all that it has started in its group, as a terminal does.
    pub fn signal_all(&self, signal: Signal) {
        let _ = killpg(self.group.id(), signal);
    }

    /// Waits for the end, or ends it at the deadline.
    ///
    /// # Errors
    /// A process that cannot be waited for, output that cannot be read.
    pub fn finish(self) -> Result<Outcome, LabError> {
        self.finish_within(|status| if matches!(status, Ended::Exited(_)) { stray::BRIEF } else { stray::GRACE })
    }

    /// Like [`Running::finish`], without a look at what else is alive: whoever looks
    /// gives it the time to end.
    ///
    /// # Errors
    /// See [`Running::finish`].
    pub fn finish_at_once(self) -> Result<Outcome, LabError> {
        self.finish_within(|_| Duration::ZERO)
    }

    fn finish_within(mut self, grace: fn(Ended) -> Duration) -> Result<Outcome, LabError> {
        let hung = !self.ended_within(self.time_left());
        if hung {
            let _ = killpg(self.group.id(), Signal::SIGKILL);
        }
        let ended_at = now();
        let status = self.reap()?;
        Ok(Outcome {
            started_at: self.started_at,
            ended_at,
            ended: if hung { Ended::Hung } else { status },
            stdout: read(&self.stem, "out")?,
            stderr: read(&self.stem, "err")?,
            survivors: match grace(status) {
                Duration::ZERO => Vec::new(),
                grace => stray::end_group(self.group.id(), grace),
            },
        })
    }

    fn reap(&mut self) -> Result<Ended, LabError> {
        use std::os::unix::process::ExitStatusExt as _;
        let status = self.child.wait().map_err(|e| LabError::Internal(format!("cannot wait for the agent: {e}")))?;
        self.reaped = true;
        let signal = status.signal().map(Ended::Signaled);
        Ok(signal.unwrap_or(Ended::Exited(status.code().unwrap_or(-1))))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.reaped {
            let _ = killpg(self.group.id(), Signal::SIGKILL);
            let _ = self.child.wait();
        }
    }
}

impl std::fmt::Display for Ended {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Exited(code) => write!(f, "exit {code}"),
            Self::Hung => f.write_str("hung"),
            Self::Signaled(number) => match Signal::try_from(*number) {
                Ok(signal) => write!(f, "signal {number} ({signal})"),
                Err(_) => write!(f, "signal {number}"),
            },
        }
    }
}

impl Outcome {
    /// How long it ran.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        self.ended_at - self.started_at
    }

    /// Whether it has given up by itself and said something: with a code other than 0, or by aborting.
    #[must_use]
    pub fn stopped_loudly(&self) -> bool {
        let stopped = match self.ended {
            Ended::Exited(code) => code != 0,
            Ended::Signaled(number) => number == Signal::SIGABRT as i32,
            Ended::Hung => false,
        };
        stopped && !self.stderr.trim().is_empty()
    }

    /// How it ended with the last line of what it complained about.
    #[must_use]
    pub fn describe(&self) -> String {
        match self.stderr.trim_end().lines().last() {
            Some(line) if !line.is_empty() => format!("{}, saying `{line}`", self.ended),
            _ => self.ended.to_string(),
        }
    }
}

/// Seconds since the epoch.
#[must_use]
pub fn now() -> f64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.unwrap_or_default().as_secs_f64()
}

fn create(stem: &Path, suffix: &str) -> Result<File, LabError> {
    let path = stem.with_extension(suffix);
    File::create(&path).map_err(LabError::io("create", &path))
}

fn read(stem: &Path, suffix: &str) -> Result<String, LabError> {
    let path = stem.with_extension(suffix);
    let file = File::open(&path).map_err(LabError::io("open", &path))?;
    let mut bytes = Vec::new();
    file.take(MAX_OUTPUT_BYTES).read_to_end(&mut bytes).map_err(LabError::io("read", &path))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::target::DEADLINE;

    fn shell(script: &str) -> (tempfile::TempDir, Target) {
        let dir = tempfile::tempdir().expect("dir");
        let given = format!("sh -c {}", shell_words::quote(script));
        let target = Target::new(&given, dir.path(), vec!["HOME".into()]).expect("words");
        (dir, target)
    }

    fn finish(script: &str, deadline: Duration) -> Outcome {
        let (dir, mut target) = shell(script);
        target.deadline = deadline;
        let launch = Launch::new(&target, [], dir.path(), &dir.path().join("p"));
        launch.start().expect("start").finish().expect("finish")
    }

    #[test]
    fn exit_signal_and_output_are_read_from_the_kernel() {
        let outcome = finish("echo out; echo err >&2; exit 3", DEADLINE);
        assert_eq!(outcome.ended, Ended::Exited(3));
        assert_eq!(outcome.stdout, "out\n");
        assert_eq!(outcome.describe(), "exit 3, saying `err`");
        assert_eq!(finish("kill -9 $$", DEADLINE).ended, Ended::Signaled(9));
    }

    #[test]
    fn a_hang_ends_at_the_deadline_and_is_named() {
        let outcome = finish("sleep 60", Duration::from_millis(30));
        assert_eq!(outcome.ended, Ended::Hung);
        assert!(outcome.ended_at - outcome.started_at < 10.0);
    }

    #[test]
    fn a_library_that_is_in_the_process_is_seen_and_another_is_not() {
        let (dir, target) = shell("sleep 60");
        let mut running = Launch::new(&target, [], dir.path(), &dir.path().join("p")).start().expect("start");
        running.ended_within(Duration::from_millis(50));
        let maps = std::fs::read_to_string(format!("/proc/{}/maps", running.group.id())).expect("maps");
        let mapped = maps.lines().find_map(|line| line.split_once('/')).map(|(_, path)| format!("/{path}"));
        assert!(running.has_mapped(Path::new(&mapped.expect("a file"))));
        assert!(!running.has_mapped(&std::env::current_exe().expect("this program")));
    }

    #[test]
    fn scrubbed_variables_do_not_reach_the_agent() {
        let outcome = finish("echo \"<$HOME>\"", DEADLINE);
        assert_eq!(outcome.stdout, "<>\n");
    }

    #[test]
    fn a_child_that_outlives_its_agent_is_seen() {
        let survivors = finish("sleep 60 & exit 0", DEADLINE).survivors;
        assert_eq!(survivors.iter().map(|stray| stray.command.as_str()).collect::<Vec<_>>(), ["sleep 60"]);
        assert_eq!(Stray::of(survivors[0].pid).command, "", "and is ended");
        assert_eq!(finish("exit 0", DEADLINE).survivors, []);
    }

    /// `python3` was a script that executes the interpreter late. Killed before, it left a subshell for some
    /// milliseconds, and an honest agent was accused.
    #[test]
    fn what_a_killed_wrapper_leaves_for_a_moment_is_no_survivor() {
        assert_eq!(finish("sleep 0.05 & kill -9 $$", DEADLINE).survivors, []);
    }
}

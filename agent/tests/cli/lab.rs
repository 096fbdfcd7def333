//! A sandbox with an agent in it.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use fixtures::{Sandbox, contract};
use predicates::prelude::*;
use serde_json::Value;

/// A folder with `input/notes.txt`, `plan.json` and whatever the agent makes.
pub(crate) struct Lab {
    pub(crate) sandbox: Sandbox,
}

impl Lab {
    /// No database yet.
    pub(crate) fn new() -> Self {
        Self { sandbox: Sandbox::new() }
    }

    /// With the report task `t1`, created and not run.
    pub(crate) fn with_task() -> Self {
        let lab = Self::new();
        lab.agent(["create", "t1", "plan.json"]).exits(0);
        lab
    }

    /// With the report task `t1`, killed at `point`.
    pub(crate) fn killed_at(point: &str) -> Self {
        let lab = Self::with_task();
        lab.call(["run", "t1"]).env("AGENT_CRASH_AT", point).ran().exits(137);
        lab
    }

    /// With the report task `t1`, failed after three kills when its report was published.
    pub(crate) fn failed() -> Self {
        let lab = Self::with_task();
        for _ in 0..3 {
            lab.call(["run", "t1"]).env("AGENT_CRASH_AT", "after_effect:2").ran().exits(137);
        }
        lab.agent(["run", "t1"]).exits(2);
        lab
    }

    /// With a copy of a golden database.
    pub(crate) fn golden(name: &str) -> Self {
        Self { sandbox: Sandbox::golden(name) }
    }

    pub(crate) fn call<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Call {
        self.call_through(&[env!("CARGO_BIN_EXE_agent")], arguments)
    }

    /// As `call`, with the program that starts the agent before it, such as a shell.
    pub(crate) fn call_through<S: AsRef<OsStr>>(
        &self,
        starter: &[&str],
        arguments: impl IntoIterator<Item = S>,
    ) -> Call {
        let mut command = Command::new(starter[0]);
        command.args(&starter[1..]).args(arguments).current_dir(self.sandbox.path()).stdin(Stdio::null());
        for (name, _) in std::env::vars_os() {
            if ["AGENT_", "OLLAMA_"].iter().any(|prefix| name.to_string_lossy().starts_with(prefix)) {
                command.env_remove(name);
            }
        }
        // So that a panic would show in full.
        command.env("RUST_BACKTRACE", "1");
        Call { command }
    }

    /// Runs the agent with these arguments and the plain environment.
    pub(crate) fn agent<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Ran {
        self.call(arguments).ran()
    }

    pub(crate) fn path(&self, relative: &str) -> PathBuf {
        self.sandbox.file(relative)
    }

    pub(crate) fn write(&self, relative: &str, content: impl AsRef<[u8]>) {
        self.sandbox.write(relative, content);
    }

    pub(crate) fn tree(&self) -> BTreeMap<String, String> {
        self.sandbox.tree()
    }

    /// What `status` says of a task.
    pub(crate) fn status(&self, task: &str) -> Value {
        self.agent(["status", task]).exits(0).json()
    }

    /// The status of each step of a task, in order.
    pub(crate) fn steps(&self, task: &str) -> Vec<(String, u64)> {
        let status = self.status(task);
        let step = |step: &Value| (step["status"].as_str().unwrap().to_owned(), step["attempts"].as_u64().unwrap());
        status["steps"].as_array().unwrap().iter().map(step).collect()
    }

    /// The journal of a task, as `export` prints it.
    pub(crate) fn journal(&self, task: &str) -> Vec<Value> {
        self.agent(["export", task]).exits(0).lines()
    }

    /// The names in the artifacts folder; none where there is no such folder.
    pub(crate) fn artifacts(&self) -> Vec<String> {
        names(&self.path(contract::DEFAULT_ARTIFACTS))
    }

    /// The report of task `t1`.
    pub(crate) fn report(&self) -> String {
        self.sandbox.read("artifacts/t1-2.md")
    }

    /// Runs SQL on the database, as somebody with `sqlite3` in hand would.
    pub(crate) fn sql(&self, sql: &str) {
        rusqlite::Connection::open(self.path("state.db")).unwrap().execute_batch(sql).unwrap();
    }

    /// One value out of the database.
    pub(crate) fn query<T: rusqlite::types::FromSql>(&self, sql: &str) -> T {
        let conn = rusqlite::Connection::open(self.path("state.db")).unwrap();
        conn.query_row(sql, [], |row| row.get(0)).unwrap()
    }

    /// Waits until a recording names `point`.
    pub(crate) fn wait_for(&self, recording: &str, point: &str) {
        let text = || fs::read_to_string(self.path(recording)).unwrap_or_default();
        wait_until(|| text().lines().any(|line| line == point));
    }
}

/// Longer than any call may take.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Waits for something that another process is about to do.
#[track_caller]
pub(crate) fn wait_until(mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < PATIENCE, "it does not come to pass");
        std::thread::sleep(Duration::from_millis(2));
    }
}

pub(crate) fn names(folder: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// A call that has not begun.
pub(crate) struct Call {
    command: Command,
}

impl Call {
    pub(crate) fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// Calls it from another folder of the lab.
    pub(crate) fn within(mut self, folder: &str) -> Self {
        let here = self.command.get_current_dir().unwrap().join(folder);
        self.command.current_dir(here);
        self
    }

    /// Root steps down to a user whom permissions bind; others stay who they are.
    pub(crate) fn unprivileged(mut self) -> Self {
        const NOBODY: u32 = 65_534;
        if nix::unistd::Uid::effective().is_root() {
            self.command.uid(NOBODY).gid(NOBODY);
        }
        self
    }

    pub(crate) fn stdout(mut self, stdout: impl Into<Stdio>) -> Self {
        self.command.stdout(stdout);
        self
    }

    /// Runs it to its end with this standard error; the exit code.
    pub(crate) fn code_with_stderr(mut self, stderr: impl Into<Stdio>) -> Option<i32> {
        self.command.stdout(Stdio::null()).stderr(stderr).status().unwrap().code()
    }

    /// Starts it and does not wait.
    pub(crate) fn start(mut self) -> Started {
        let child = self.command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        Started { child: Some(child) }
    }

    /// Runs it to its end.
    #[track_caller]
    pub(crate) fn ran(self) -> Ran {
        Ran::of(&assert_cmd::Command::from_std(self.command).timeout(PATIENCE).output().unwrap())
    }

    /// Runs it to its end with this standard output, which is then not captured.
    #[track_caller]
    pub(crate) fn ran_into(self, stdout: impl Into<Stdio>) -> Ran {
        let mut call = self.stdout(stdout);
        Ran::of(&call.command.stderr(Stdio::piped()).spawn().unwrap().wait_with_output().unwrap())
    }
}

/// A process that runs; killed when it is dropped, so that a test that fails leaves none behind.
pub(crate) struct Started {
    child: Option<Child>,
}

impl Started {
    pub(crate) fn signal(&self, signal: nix::sys::signal::Signal) {
        let id = self.child.as_ref().unwrap().id();
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(i32::try_from(id).unwrap()), signal).unwrap();
    }

    /// The process that the started one has started.
    #[track_caller]
    pub(crate) fn child(&self) -> nix::unistd::Pid {
        let parent = self.child.as_ref().unwrap().id();
        let children = fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).unwrap();
        nix::unistd::Pid::from_raw(children.trim().parse().unwrap())
    }

    /// Sends the signal again and again until it has ended: two that come close together may count as one.
    #[track_caller]
    pub(crate) fn insist(mut self, signal: nix::sys::signal::Signal) -> Ran {
        wait_until(|| {
            self.signal(signal);
            std::thread::sleep(Duration::from_millis(20));
            self.child.as_mut().unwrap().try_wait().unwrap().is_some()
        });
        self.ended()
    }

    #[track_caller]
    pub(crate) fn ended(mut self) -> Ran {
        Ran::of(&self.child.take().unwrap().wait_with_output().unwrap())
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }
}

/// A call that has ended.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    /// The signal that ended it, if one did.
    pub(crate) signal: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    #[track_caller]
    fn of(output: &Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("the agent speaks UTF-8");
        let signal = output.status.signal();
        let code = output.status.code().or_else(|| signal.map(|signal| contract::EXIT_SIGNAL_BASE + signal)).unwrap();
        let ran = Self { code, signal, stdout: text(&output.stdout), stderr: text(&output.stderr) };
        for word in ["panicked", "RUST_BACKTRACE", "stack backtrace"] {
            assert!(!ran.stderr.contains(word), "{ran:?}");
        }
        assert_ne!(code, 101, "{ran:?}");
        ran
    }

    /// A failure is told in one line that begins with the program's name, and nothing but it.
    #[track_caller]
    pub(crate) fn fails(self, code: i32) -> Self {
        let ran = self.exits(code);
        let line = ran.stderr.strip_prefix("agent: ").and_then(|rest| rest.strip_suffix('\n'));
        assert!(line.is_some_and(|line| !line.is_empty() && !line.contains('\n')), "{ran:?}");
        ran
    }

    #[track_caller]
    pub(crate) fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{self:?}");
        self
    }

    /// Standard error has this in it.
    #[track_caller]
    pub(crate) fn says(self, what: &str) -> Self {
        let predicate = predicate::str::contains(what);
        assert!(predicate.eval(&self.stderr), "{what:?} is not in {self:?}");
        self
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap()
    }

    #[track_caller]
    pub(crate) fn lines(&self) -> Vec<Value> {
        self.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

fn ended(code: i32, stderr: &str) -> Output {
    let status = std::process::ExitStatus::from_raw(code << 8);
    Output { status, stdout: Vec::new(), stderr: stderr.as_bytes().to_vec() }
}

#[test]
fn a_failure_in_one_line_is_accepted() {
    Ran::of(&ended(1, "agent: no\n")).fails(1).says("no");
}

#[test]
#[should_panic(expected = "panicked")]
fn a_panic_is_rejected() {
    drop(Ran::of(&ended(1, "thread 'main' panicked at src/main.rs:1:1:\nboom\n")));
}

#[test]
#[should_panic(expected = "101")]
fn the_exit_code_of_a_panic_is_rejected() {
    drop(Ran::of(&ended(101, "")));
}

#[test]
#[should_panic(expected = "two")]
fn a_message_of_two_lines_is_rejected() {
    drop(Ran::of(&ended(1, "agent: one\ntwo\n")).fails(1));
}

#[test]
#[should_panic(expected = "code: 1")]
fn a_failure_without_a_message_is_rejected() {
    drop(Ran::of(&ended(1, "")).fails(1));
}

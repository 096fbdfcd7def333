//! A sandbox with an inbox and an agent in it.

use std::ffi::OsStr;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use fixtures::{Sandbox, contract};
use serde_json::Value;

use crate::agreement::{Event, Line};

/// A folder with `inbox/` and whatever the agent makes.
pub(crate) struct Lab {
    pub(crate) sandbox: Sandbox,
}

/// How an agent ended.
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) stderr: String,
}

/// Three notes, with words in more than one alphabet and a name that is not ASCII.
pub(crate) const NOTES: [(&str, &str); 3] = [("a.txt", "two words\n"), ("b.txt", "Grüße aus 東京 🗼\n"), ("ü.txt", "")];

/// What an undisturbed run makes of them; the digests are those of `sha256sum`.
pub(crate) const REPORT: &str = "[
{\"file\":\"a.txt\",\"sha256\":\"3ba81c80b8b2\",\"words\":2},
{\"file\":\"b.txt\",\"sha256\":\"6c9e7dd529e3\",\"words\":4},
{\"file\":\"ü.txt\",\"sha256\":\"e3b0c44298fc\",\"words\":0}
]
";

impl Lab {
    /// With the three notes.
    pub(crate) fn new() -> Self {
        let lab = Self { sandbox: Sandbox::new() };
        for (name, text) in NOTES {
            lab.sandbox.write(format!("inbox/{name}"), text);
        }
        lab
    }

    /// With the task `t`, killed at `point`.
    pub(crate) fn killed_at(point: &str) -> Self {
        let lab = Self::new();
        lab.inbox_with([("AGENT_CRASH_AT", point)]).exits(137);
        lab
    }

    /// With the task `t`, done.
    pub(crate) fn done() -> Self {
        let lab = Self::new();
        lab.inbox().exits(0);
        lab
    }

    pub(crate) fn path(&self, relative: &str) -> PathBuf {
        self.sandbox.file(relative)
    }

    pub(crate) fn remove(&self, relative: &str) {
        fs::remove_file(self.path(relative)).unwrap();
    }

    /// An agent that is yet to be started.
    pub(crate) fn command<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_agent"));
        command.args(arguments).current_dir(self.sandbox.path()).stdin(Stdio::null());
        for (name, _) in std::env::vars_os() {
            if ["AGENT_", "OLLAMA_"].iter().any(|prefix| name.to_string_lossy().starts_with(prefix)) {
                command.env_remove(name);
            }
        }
        command
    }

    pub(crate) fn agent<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Ran {
        run(self.command(arguments))
    }

    /// `agent inbox` for the task `t`.
    pub(crate) fn inbox(&self) -> Ran {
        self.inbox_with([])
    }

    /// The same, with these variables.
    pub(crate) fn inbox_with<'a>(&self, variables: impl IntoIterator<Item = (&'a str, &'a str)>) -> Ran {
        let mut command = self.command(["inbox", "--task", "t", "--inbox", "inbox"]);
        command.envs(variables);
        run(command)
    }

    /// The same, with these further arguments.
    pub(crate) fn inbox_and(&self, more: &[&str]) -> Ran {
        self.agent(["inbox", "--task", "t", "--inbox", "inbox"].iter().chain(more))
    }

    pub(crate) fn status(&self, task: &str) -> Value {
        let output = self.command(["status", task]).output().unwrap();
        serde_json::from_slice(&output.stdout).unwrap()
    }

    pub(crate) fn journal(&self, task: &str) -> Vec<Value> {
        let output = self.command(["export", task]).output().unwrap();
        assert!(output.status.success());
        String::from_utf8(output.stdout).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// What the log says of a task, read as anybody would.
    pub(crate) fn log(&self, task: &str) -> Vec<Line> {
        crate::agreement::read(&fs::read(self.path("actions.jsonl")).unwrap_or_default(), task)
    }

    /// The events of the log, without what came with them.
    pub(crate) fn events(&self, task: &str) -> Vec<Event> {
        self.log(task).into_iter().map(|line| line.event).collect()
    }

    /// The log agrees with the journal; database, journal and report with each other; nothing is left lying about.
    pub(crate) fn assert_sound(&self, task: &str) {
        if let Err(why) = crate::agreement::agree(&self.journal(task), &self.log(task)) {
            panic!("{why}\n{}", String::from_utf8_lossy(&fs::read(self.path("actions.jsonl")).unwrap()));
        }
        self.agent(["verify"]).exits(0);
        let strays: Vec<_> = self.sandbox.tree().into_keys().filter(|name| name.contains(".tmp")).collect();
        assert!(strays.is_empty(), "{strays:?}");
    }
}

pub(crate) fn run(mut command: Command) -> Ran {
    use std::os::unix::process::ExitStatusExt as _;
    let output = command.output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(!stderr.contains("panicked"), "{stderr}");
    let signal = output.status.signal().map(|signal| contract::EXIT_SIGNAL_BASE + signal);
    Ran { code: output.status.code().or(signal).unwrap(), stderr }
}

impl Ran {
    #[track_caller]
    pub(crate) fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{}", self.stderr);
        self
    }

    #[track_caller]
    pub(crate) fn says(self, text: &str) -> Self {
        assert!(self.stderr.contains(text), "no `{text}` in: {}", self.stderr);
        self
    }

    #[track_caller]
    pub(crate) fn says_nothing_of(self, text: &str) -> Self {
        assert!(!self.stderr.contains(text), "`{text}` in: {}", self.stderr);
        self
    }
}

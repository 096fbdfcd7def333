//! Agents for the tests: the Python agent of the fixtures, and copies of it with one bug.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use assert_cmd::Command as Checked;
use tempfile::TempDir;

/// The interpreter itself: a shim in the path may cost more than the agent.
static PYTHON: LazyLock<String> = LazyLock::new(|| {
    let ask = ["-c", "import sys; print(sys.executable)"];
    let output = Command::new("python3").args(ask).output().expect("python3 is needed here");
    String::from_utf8(output.stdout).expect("a path").trim().to_owned()
});

fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/agents/python")
}

/// The command of the agent in this folder.
fn command_in(dir: &Path) -> String {
    // Without the site packages it starts in two thirds of the time.
    format!("{} -E -s -S '{}'", *PYTHON, dir.join("agent.py").display())
}

/// The command of the honest agent.
pub(crate) fn honest() -> String {
    command_in(&fixture())
}

/// A copy of the honest agent in which one text is replaced.
pub(crate) struct Broken {
    dir: TempDir,
}

impl Broken {
    /// Replaces `from` in `file`; a bug that does not land tests nothing.
    pub(crate) fn new(file: &str, from: &str, to: &str) -> Self {
        let dir = TempDir::new().expect("dir");
        for name in ["agent.py", "tools.py"] {
            std::fs::copy(fixture().join(name), dir.path().join(name)).expect("copy");
        }
        let broken = Self { dir };
        broken.also(file, from, to);
        broken
    }

    /// Replaces one more text.
    pub(crate) fn also(&self, file: &str, from: &str, to: &str) {
        let path = self.dir.path().join(file);
        let text = std::fs::read_to_string(&path).expect("read");
        assert!(text.contains(from), "{file} has no `{from}` any more");
        std::fs::write(&path, text.replacen(from, to, 1)).expect("write");
    }

    pub(crate) fn command(&self) -> String {
        command_in(self.dir.path())
    }
}

/// `chaos` with these arguments.
pub(crate) fn chaos(args: &[&str]) -> Checked {
    let mut command = Checked::cargo_bin("chaos").expect("the program");
    command.args(args);
    command
}

/// `chaos run` of these methods against an agent.
pub(crate) fn run(agent: &str, methods: &str) -> Checked {
    chaos(&["run", "--agent", agent, "--method", methods, "--seed", "7", "--jobs", "2"])
}

//! A writer in a process of its own. Two connections in one process share what SQLite keeps in memory about a file, so
//! only this shows what a reader does to the files of another process, and what a kill leaves.

use std::env;
use std::io::{BufRead, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command as Process, Stdio};

use store::machine::{Next, next};
use store::model::Timestamp;

use crate::support::{begin, id, open, run_steps, session, start};

const DATABASE: &str = "STORE_TEST_WRITER";
const READY: &str = "the writer is ready";

/// Not a test by itself: the other process, which runs the task `t` as the lines of its input say.
#[test]
fn writer() {
    let Some(path) = env::var_os(DATABASE).map(PathBuf::from) else { return };
    let mut store = open(&path);
    let mut session = session(&mut store, &id("t"));
    println!("\n{READY}");
    for line in std::io::stdin().lines() {
        match line.unwrap().as_str() {
            "begin" => drop(session.apply(&begin()).unwrap()),
            "step" => run_steps(&mut session, 1),
            "start" => {
                let Next::Step(step) = next(&session.state(), Timestamp::default()) else { panic!("no step is left") };
                session.apply(&start(step)).unwrap();
            }
            other => panic!("{other}?"),
        }
        println!("\n{READY}");
    }
}

/// The other process, as the test holds it.
pub(crate) struct Writer {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Writer {
    /// Starts it. It has the lease of the task `t`, which must exist, and has committed nothing.
    pub(crate) fn start(path: &Path) -> Self {
        let mut child = Process::new(env::current_exe().unwrap())
            .args(["--exact", "child::writer", "--nocapture"])
            .env(DATABASE, path)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (input, output) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        let mut writer = Self { child, input, output };
        writer.wait();
        writer
    }

    /// Has it do `what` ("begin", "start", "step"), and returns when that is committed.
    pub(crate) fn tell(&mut self, what: &str) {
        writeln!(self.input.as_mut().unwrap(), "{what}").unwrap();
        self.wait();
    }

    fn wait(&mut self) {
        let mut line = String::new();
        while line.trim_end() != READY {
            line.clear();
            assert_ne!(self.output.read_line(&mut line).unwrap(), 0, "the writer has ended");
        }
    }

    /// Lets it close the database and end.
    pub(crate) fn finish(mut self) {
        drop(self.input.take());
        assert!(self.child.wait().unwrap().success());
    }

    /// Kills it with SIGKILL.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // Both fail where it has ended already, which is as well.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

//! The tracer and its filter, with programs of a few lines.

use std::path::PathBuf;
use std::time::Duration;

use chaos::trace::{Call, Done, Op, Recorder, Start, Verb, Watch, trace};
use nix::errno::Errno;

use chaos::agent::process::{Ended, Launch};
use chaos::agent::target::Target;
use chaos::error::LabError;

/// Sees everything; kills, fails or shortens at one call.
#[derive(Default)]
struct Eye {
    calls: Vec<Call>,
    ops: Vec<Op>,
    results: Vec<i64>,
    at: Option<(&'static str, &'static str, Verb)>,
    kill_after: Option<&'static str>,
}

impl Watch for Eye {
    fn before(&mut self, call: &Call) -> Result<Verb, LabError> {
        self.calls.push(call.clone());
        match self.at {
            Some((name, path, verb)) if call.name.starts_with(name) && call.path == path => Ok(verb),
            _ => Ok(Verb::Go),
        }
    }

    fn after(&mut self, call: &Call, done: Done) -> Result<Verb, LabError> {
        self.ops.extend(done.ops);
        self.results.push(done.result);
        Ok(if self.kill_after == Some(call.name) { Verb::Kill } else { Verb::Go })
    }
}

struct Ran {
    eye: Eye,
    ended: Ended,
    stdout: String,
    dir: tempfile::TempDir,
    threads: usize,
    stops: usize,
    survivors: Vec<String>,
}

impl Ran {
    fn world(&self) -> PathBuf {
        self.dir.path().join("world")
    }

    fn ops(&self) -> Vec<String> {
        self.eye.ops.iter().map(ToString::to_string).collect()
    }
}

fn run_within(command: &str, mut eye: Eye, deadline: Duration) -> Ran {
    let dir = tempfile::tempdir().expect("dir");
    let world = dir.path().join("world");
    std::fs::create_dir(&world).expect("dir");
    let target = Target::new(command, dir.path(), Vec::new()).expect("words");
    let launch = Launch::new(&target, [], &world, &dir.path().join("p"));
    let mut recorder = Recorder::new(&world).expect("recorder");
    let printed = launch.printed();
    let begin = Start {
        command: launch.command(&[env!("CARGO_BIN_EXE_chaos"), chaos::crash::LAUNCH]).expect("a command"),
        given: command,
        printed,
        deadline,
    };
    let traced = trace(begin, &mut recorder, &mut eye).expect("trace");
    let survivors = traced.survivors.iter().map(|stray| stray.command.clone()).collect();
    let stdout = std::fs::read_to_string(&launch.printed()[0]).expect("read");
    Ran { eye, ended: traced.ended, stdout, dir, threads: traced.threads, stops: traced.stops, survivors }
}

fn run(command: &str, eye: Eye) -> Ran {
    run_within(command, eye, Duration::from_secs(20))
}

fn shell(script: &str, eye: Eye) -> Ran {
    run(&format!("sh -c {}", shell_words::quote(script)), eye)
}

fn python(script: &str, eye: Eye) -> Ran {
    run(&format!("python3 -c {}", shell_words::quote(script)), eye)
}

/// A Python start stopped twenty thousand times and took four times as long.
#[test]
fn a_start_without_a_change_of_the_folder_is_passed_over() {
    let ran = python("import json, sqlite3", Eye::default());
    assert_eq!(ran.ended, Ended::Exited(0));
    assert_eq!(ran.eye.calls, []);
    assert!(ran.stops < 300, "{} stops", ran.stops);
}

#[test]
fn what_calls_do_to_the_folder_is_recorded() {
    let script = "import os
os.mkdir('d')
fd = os.open('d/a', os.O_RDWR | os.O_CREAT)
os.write(fd, b'12'); os.write(fd, b'34'); os.pwrite(fd, b'x', 100)
os.ftruncate(fd, 3); os.fsync(fd); os.writev(fd, [b'56', b'7'])
os.link('d/a', 'b'); os.rename('b', 'd/c'); os.unlink('d/a'); os.symlink('d/c', 's')
dir = os.open('d', os.O_RDONLY); os.fsync(dir)
os.open('/dev/null', os.O_WRONLY | os.O_CREAT)
os.write(1, b'said\\n')";
    let ran = python(script, Eye::default());
    assert_eq!(ran.ended, Ended::Exited(0), "{}", ran.stdout);
    let expected = [
        "mkdir d",
        "create d/a",
        "write d/a [0, +2]",
        "write d/a [2, +2]",
        "write d/a [100, +1]",
        "resize d/a to 3",
        "sync d/a",
        "write d/a [4, +3]",
        "link b",
        "rename b -> d/c",
        "unlink d/a",
        "symlink s -> d/c",
        "sync the folder d",
        "print \"said\\n\"",
    ];
    assert_eq!(ran.ops(), expected);
    assert!(matches!(&ran.eye.ops[7], Op::Write { data, .. } if data[..] == *b"567"));
    let file = |op: &Op| match op {
        Op::Create { file, .. } | Op::Write { file, .. } | Op::Link { file, .. } => Some(*file),
        _ => None,
    };
    let mut files: Vec<_> = ran.eye.ops.iter().filter_map(file).collect();
    files.dedup();
    assert_eq!(files.len(), 1, "one file under all its names");
}

#[test]
fn a_failed_call_has_no_effect_and_the_errno_is_seen() {
    for (call, path) in [("mkdir", "d"), ("open", "f")] {
        let at = Some((call, path, Verb::Fail(Errno::ENOSPC)));
        let ran = shell("mkdir d; echo x > f; ls", Eye { at, ..Eye::default() });
        assert!(!ran.world().join(path).exists(), "{call}");
        assert_eq!(ran.eye.results.iter().filter(|r| **r == -(Errno::ENOSPC as i64)).count(), 1, "{call}");
    }
    let script = "import os, sys
fd = os.open('f', os.O_WRONLY | os.O_CREAT)
try: os.write(fd, b'12')
except OSError as e: sys.exit(e.errno)";
    let at = Some(("write", "f", Verb::Fail(Errno::EIO)));
    let ran = python(script, Eye { at, ..Eye::default() });
    assert_eq!(ran.ended, Ended::Exited(Errno::EIO as i32));
    assert_eq!(std::fs::read(ran.world().join("f")).expect("read"), b"");
}

#[test]
fn a_shortened_write_writes_so_much_and_says_so() {
    let script = "import os, sys
fd = os.open('f', os.O_WRONLY | os.O_CREAT)
sys.exit(os.write(fd, b'12345'))";
    let at = Some(("write", "f", Verb::Shorten(2)));
    let ran = python(script, Eye { at, ..Eye::default() });
    assert_eq!(ran.ended, Ended::Exited(2));
    assert_eq!(std::fs::read(ran.world().join("f")).expect("read"), b"12");
    assert!(ran.ops().contains(&"write f [0, +2]".to_owned()), "{:?}", ran.ops());
}

#[test]
fn a_kill_before_a_call_undoes_it_and_one_after_it_keeps_it() {
    let script = "import os\nopen('a', 'w').close(); os.rename('a', 'b'); open('c', 'w').close()";
    let ran = python(script, Eye { at: Some(("rename", "b", Verb::Kill)), ..Eye::default() });
    assert_eq!(ran.ended, Ended::Signaled(9));
    assert!(ran.world().join("a").exists() && !ran.world().join("b").exists());
    let ran = python(script, Eye { kill_after: Some("rename"), ..Eye::default() });
    assert_eq!(ran.ended, Ended::Signaled(9));
    assert!(ran.world().join("b").exists() && !ran.world().join("c").exists());
}

#[test]
fn threads_and_children_are_followed() {
    let script = "import threading, subprocess
def work(n):
    for i in range(20): open(f'f{n}-{i}', 'w').close()
threads = [threading.Thread(target=work, args=(n,)) for n in range(3)]
[t.start() for t in threads]; [t.join() for t in threads]
subprocess.run(['sh', '-c', 'mkdir child'], check=True)";
    let ran = python(script, Eye::default());
    assert_eq!(ran.ended, Ended::Exited(0));
    assert!(ran.threads >= 2, "{}", ran.threads);
    let creates = ran.eye.ops.iter().filter(|op| matches!(op, Op::Create { .. })).count();
    assert_eq!(creates, 60);
    assert!(ran.ops().contains(&"mkdir child".to_owned()));
}

#[test]
fn signals_are_passed_on() {
    let script = "import os, signal, sys
signal.signal(signal.SIGUSR1, lambda *_: sys.exit(7))
os.kill(os.getpid(), signal.SIGUSR1)";
    assert_eq!(python(script, Eye::default()).ended, Ended::Exited(7));
    assert_eq!(shell("kill -TERM $$", Eye::default()).ended, Ended::Signaled(15));
}

#[test]
fn a_process_that_hangs_ends_at_its_deadline() {
    let ran = run_within("sleep 60", Eye::default(), Duration::from_millis(100));
    assert_eq!(ran.ended, Ended::Hung);
}

/// A wrapper's subshell that outlived it by some milliseconds was told as a process that stays behind.
#[test]
fn a_child_has_a_short_grace_and_is_told_and_ended_after_it() {
    assert_eq!(shell("sleep 0.01 & exit 0", Eye::default()).survivors, Vec::<String>::new());
    let left = shell("setsid sleep 60 & sleep 0.5; exit 0", Eye::default());
    assert_eq!((left.ended, left.survivors), (Ended::Exited(0), vec!["sleep 60".to_owned()]));
}

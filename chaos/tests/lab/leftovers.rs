//! What must not stay behind: processes of the agent, and folders and processes of a lab that was told to stop.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use predicates::prelude::PredicateBooleanExt as _;
use predicates::str::contains;
use rstest::rstest;
use tempfile::TempDir;

use crate::support::{Broken, chaos, honest};

/// How long a lab may take to begin, and to stop.
const PATIENCE: Duration = Duration::from_secs(20);

/// The agent whose every run forks, leaves its session and sleeps for so long.
fn daemonizing(seconds: &str) -> Broken {
    let from = "    settings = read_settings()";
    let fork = format!(
        "    if \"run\" in sys.argv and os.fork() == 0:\n        os.setsid()\n        \
         os.execvp(\"sleep\", [\"sleep\", \"{seconds}\"])\n{from}"
    );
    Broken::new("agent.py", from, &fork)
}

/// Whether a process with these words is alive.
fn is_alive(words: &str) -> bool {
    let cmdline = |entry: std::fs::DirEntry| std::fs::read_to_string(entry.path().join("cmdline")).ok();
    let mut lines = std::fs::read_dir("/proc").expect("/proc").flatten().filter_map(cmdline);
    lines.any(|line| line.replace('\0', " ").trim_end() == words)
}

fn wait_until(what: &str, done: impl Fn() -> bool) {
    let begin = Instant::now();
    while !done() {
        assert!(begin.elapsed() < PATIENCE, "{what} has not come");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn is_empty(root: &Path) -> bool {
    std::fs::read_dir(root).expect("read").next().is_none()
}

/// An agent whose `run` did fork, setsid and sleep passed everything, and eighty such processes stayed behind.
#[test]
fn a_daemon_that_a_run_has_left_is_told_and_ended() {
    let agent = daemonizing("611.5");
    let run = chaos(&["run", "--agent", &agent.command(), "--method", "points"]).assert().code(1);
    run.stdout(contains("no_stray_files").and(contains("(`sleep 611.5`), started by the agent, was still alive")));
    assert!(!is_alive("sleep 611.5"));
}

/// Each killed process left two files of libfaketime in memory, 286 after eight runs.
#[test]
fn what_another_clock_leaves_in_memory_of_dead_processes_is_removed() {
    chaos(&["run", "--agent", &honest(), "--method", "clock", "--shard", "1/8"]).assert().success();
    for entry in std::fs::read_dir("/dev/shm").expect("/dev/shm").flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some(pid) = name.strip_prefix("faketime_shm_") else { continue };
        assert!(Path::new("/proc").join(pid).exists(), "{name} is that of a dead process");
    }
}

#[test]
fn a_child_of_a_wrapper_that_outlives_its_run_is_told_with_the_hint_to_exec() {
    let dir = TempDir::new().expect("dir");
    let script = format!("sleep 612.5 &\nexec {} \"$@\"\n", honest());
    std::fs::write(dir.path().join("wrapper.sh"), script).expect("write");
    let agent = format!("sh '{}'", dir.path().join("wrapper.sh").display());
    let replay = chaos(&["replay", "after_effect:1", "--agent", &agent]).assert().code(1);
    replay.stdout(contains("(`sleep 612.5`) outlived it; a wrapper must `exec` the agent"));
    assert!(!is_alive("sleep 612.5"));
}

/// `python3` was a script that executes the interpreter late, and an honest agent was accused of the subshell that the
/// killed script left for some milliseconds.
#[test]
fn a_wrapper_that_executes_the_agent_late_is_not_accused() {
    let dir = TempDir::new().expect("dir");
    let script = format!("word=$(sleep 0.03; echo run)\nexec {} \"$@\"\n", honest());
    std::fs::write(dir.path().join("shim.sh"), script).expect("write");
    let agent = format!("sh '{}'", dir.path().join("shim.sh").display());
    chaos(&["replay", "+5ms, +10ms, +20ms", "--agent", &agent]).assert().code(0);
}

/// A lab at work on an agent that hangs, in a folder of its own.
fn at_work(root: &Path, agent: &Broken, seconds: &str) -> Child {
    // Tests that are run by `nohup` would have it ignore SIGHUP.
    let mut lab = Command::new("env");
    lab.arg("--default-signal=HUP").arg(assert_cmd::cargo::cargo_bin("chaos"));
    lab.args(["run", "--agent", &agent.command(), "--method", "points", "--dir"]).arg(root);
    let lab = lab.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the lab");
    wait_until("the agent", || is_alive(&format!("sleep {seconds}")));
    lab
}

/// Waits in a child, as a tool that calls a program does.
fn hanging(seconds: &str) -> Broken {
    let from = "    settings = read_settings()";
    let hang = format!("    if \"run\" in sys.argv:\n        os.system(\"sleep {seconds}\")\n{from}");
    Broken::new("agent.py", from, &hang)
}

fn send(signal: &str, lab: &Child) {
    let sent = Command::new("kill").args([signal, &lab.id().to_string()]).status().expect("kill");
    assert!(sent.success());
}

/// Ctrl-C left the lab's folders in memory and its hanging agents alive.
#[rstest]
#[case("INT", 130, "613.5")]
#[case("TERM", 143, "614.5")]
#[case("HUP", 129, "615.5")]
fn a_lab_that_is_told_to_stop_takes_everything_along(#[case] signal: &str, #[case] code: i32, #[case] seconds: &str) {
    let root = TempDir::new().expect("dir");
    let agent = hanging(seconds);
    let lab = at_work(root.path(), &agent, seconds);
    send(&format!("-{signal}"), &lab);
    let output = lab.wait_with_output().expect("an end");
    assert_eq!(output.status.code(), Some(code));
    let said = format!("chaos: stopped by SIG{signal} after 0 scenarios; that does not count as passed\n");
    assert_eq!(String::from_utf8_lossy(&output.stderr), said);
    assert!(output.stdout.is_empty(), "a verdict was told all the same");
    assert!(is_empty(root.path()) && !is_alive(&format!("sleep {seconds}")));
}

/// SIGKILL leaves no time to clear away. The next lab does it, and leaves that of a lab that is at work alone.
#[test]
fn a_lab_clears_away_what_a_killed_one_has_left_and_nothing_that_is_in_use() {
    let root = TempDir::new().expect("dir");
    let (dead_agent, agent) = (hanging("616.5"), hanging("617.5"));
    let mut dead = at_work(root.path(), &dead_agent, "616.5");
    let living = at_work(root.path(), &agent, "617.5");
    send("-KILL", &dead);
    dead.wait().expect("an end");
    assert!(is_alive("sleep 616.5"), "nobody has ended it yet");
    let dir = root.path().to_str().expect("a path");
    chaos(&["list", "--agent", &honest(), "--method", "rerun", "--dir", dir]).assert().code(0);
    assert!(!is_alive("sleep 616.5") && is_alive("sleep 617.5"));
    assert_eq!(std::fs::read_dir(root.path()).expect("read").count(), 1);
    send("-INT", &living);
    assert_eq!(living.wait_with_output().expect("an end").status.code(), Some(130));
    assert!(is_empty(root.path()));
}

/// `nohup` has SIGHUP ignored, and means it.
#[test]
fn a_signal_that_was_ignored_at_the_start_stays_ignored() {
    let root = TempDir::new().expect("dir");
    let agent = hanging("618.5");
    let mut lab = Command::new("sh");
    lab.args(["-c", "trap '' HUP; exec \"$@\"", "sh"]).arg(assert_cmd::cargo::cargo_bin("chaos"));
    lab.args(["run", "--agent", &agent.command(), "--dir"]).arg(root.path());
    let mut lab = lab.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the lab");
    wait_until("the agent", || is_alive("sleep 618.5"));
    send("-HUP", &lab);
    std::thread::sleep(Duration::from_millis(300));
    assert!(lab.try_wait().expect("a state").is_none(), "it was ended");
    send("-TERM", &lab);
    assert_eq!(lab.wait().expect("an end").code(), Some(143));
}

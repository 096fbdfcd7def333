//! Processes that outlive what they belong to, found in `/proc`: by the process group of the agent that started them;
//! or, where they have left it, by the lab's mark in their environment, which every child inherits, or by a working
//! folder that is one of the lab's.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::DirEntryExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;

/// What the names of all folders of the lab begin with.
pub const PREFIX: &str = "chaos-";

/// The variable that names the folder for which a process was started.
pub const MARK: &str = "CHAOS_FOLDER";

/// How long a process may outlive its agent before that counts. A wrapper that was killed leaves a subshell or a pipe
/// behind for some milliseconds, which is nobody's fault.
pub const GRACE: Duration = Duration::from_millis(250);

/// The same for one that has ended by itself: it had the time to wait for its children.
pub const BRIEF: Duration = Duration::from_millis(50);

/// Between two looks at a process that is expected to end.
const POLL: Duration = Duration::from_millis(2);

/// So often the lab kills before it takes a process for one that cannot be killed; each time its youngest children may
/// have got away.
const ROUNDS: usize = 20;

/// A process id with the inode of its folder in `/proc`, which tells two processes apart that had the same id one after
/// the other.
type Id = (i32, u64);

/// Processes that are seen to belong to no lab, like all their children. To read the environments of hundreds at each
/// scenario's end would cost as much as the scenario.
static STRANGERS: Mutex<BTreeSet<Id>> = Mutex::new(BTreeSet::new());

/// A process that is where none should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stray {
    /// Its process id.
    pub pid: i32,
    /// Its command line.
    pub command: String,
}

impl std::fmt::Display for Stray {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "process {} (`{}`)", self.pid, self.command)
    }
}

impl Stray {
    /// The process of this id, with its command line as far as it can be read.
    #[must_use]
    pub fn of(pid: i32) -> Self {
        let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let words = String::from_utf8_lossy(&words);
        Self { pid, command: words.trim_end_matches('\0').replace('\0', " ") }
    }
}

/// Whatever is still alive in a process group when this grace is over; ended now.
#[must_use]
pub fn end_group(group: Pid, grace: Duration) -> Vec<Stray> {
    // One call for the many agents that leave nothing behind.
    if killpg(group, None).is_err() {
        return Vec::new();
    }
    end(grace, || all().into_iter().map(|(pid, _)| pid).filter(|pid| is_in_group(*pid, group)).collect())
}

/// Whatever was started for `folder` or works in it when this grace is over; ended now.
#[must_use]
pub fn end_below(folder: &Path, grace: Duration) -> Vec<Stray> {
    end(grace, || find_below(folder))
}

/// Like [`end_below`], without any grace and without a word.
pub fn kill_below(folder: &Path) {
    kill_all(|| find_below(folder));
}

fn end(grace: Duration, find: impl Fn() -> Vec<i32>) -> Vec<Stray> {
    let begin = Instant::now();
    let mut found = find();
    while !found.is_empty() && begin.elapsed() < grace {
        std::thread::sleep(POLL);
        found = find();
    }
    let strays: Vec<Stray> = found.into_iter().map(Stray::of).collect();
    if !strays.is_empty() {
        kill_all(find);
    }
    strays
}

fn kill_all(find: impl Fn() -> Vec<i32>) {
    for _ in 0..ROUNDS {
        let found = find();
        if found.is_empty() {
            return;
        }
        for pid in found {
            // Fails only for what has ended by itself.
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
        std::thread::sleep(POLL);
    }
}

/// Every process but this one; none on a system without `/proc`.
fn all() -> Vec<Id> {
    let own = i32::try_from(std::process::id());
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let ids = entries.filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.ino())));
    ids.filter(|(pid, _)| Ok(*pid) != own).collect()
}

/// Whether it is a process of the group that has not ended. A dead one that nobody has waited for stays in its group,
/// and does nothing any more.
fn is_in_group(pid: i32, group: Pid) -> bool {
    let Ok(text) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else { return false };
    // The name of the program stands in brackets and may hold some of its own.
    let Some((_, rest)) = text.rsplit_once(')') else { return false };
    let mut fields = rest.split_ascii_whitespace();
    let is_dead = matches!(fields.next(), Some("Z" | "X") | None);
    !is_dead && fields.nth(1).and_then(|id| id.parse().ok()) == Some(group.as_raw())
}

fn find_below(folder: &Path) -> Vec<i32> {
    let mut strangers = STRANGERS.lock().unwrap_or_else(PoisonError::into_inner);
    let mut still = BTreeSet::new();
    let mut found = Vec::new();
    for id in all() {
        match if strangers.contains(&id) { None } else { bonds(id.0) } {
            None => _ = still.insert(id),
            Some(bonds) if bonds.iter().any(|bond| bond.starts_with(folder)) => found.push(id.0),
            Some(_) => {}
        }
    }
    *strangers = still;
    found
}

/// The folders of labs that a process was started for or works in; `None` where it never had to do with any.
fn bonds(pid: i32) -> Option<Vec<PathBuf>> {
    let variables = std::fs::read(format!("/proc/{pid}/environ"));
    // One that is just becoming another program has none for a moment.
    let may_change = variables.as_ref().is_ok_and(Vec::is_empty);
    let mut bonds = marks(&variables.unwrap_or_default());
    let is_of_lab = |cwd: &PathBuf| cwd.iter().any(|part| part.as_bytes().starts_with(PREFIX.as_bytes()));
    bonds.extend(std::fs::read_link(format!("/proc/{pid}/cwd")).ok().filter(is_of_lab));
    (may_change || !bonds.is_empty()).then_some(bonds)
}

fn marks(variables: &[u8]) -> Vec<PathBuf> {
    let mark = format!("{MARK}=");
    let values = variables.split(|byte| *byte == 0).filter_map(|variable| variable.strip_prefix(mark.as_bytes()));
    values.map(|value| PathBuf::from(OsStr::from_bytes(value))).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt as _;
    use std::process::{Child, Command, Stdio};

    use super::*;

    /// A process in a session of its own.
    fn daemon(command: &mut Command) -> Child {
        command.arg("sleep").arg("600").stdout(Stdio::null()).spawn().expect("a process")
    }

    fn commands(strays: &[Stray]) -> Vec<&str> {
        strays.iter().map(|stray| stray.command.as_str()).collect()
    }

    /// An agent whose run did fork, setsid and sleep left eighty such processes behind, and every property held: only
    /// its process group was asked.
    #[test]
    fn a_process_is_known_by_its_mark_and_by_where_it_works_and_others_are_let_live() {
        let root = tempfile::Builder::new().prefix(PREFIX).tempdir().expect("dir");
        let root = root.path().canonicalize().expect("a path");
        let (own, foreign) = (root.join("own"), root.join("foreign"));
        for folder in [&own, &foreign] {
            std::fs::create_dir_all(folder.join("world")).expect("folder");
        }
        let mut marked = daemon(Command::new("setsid").env(MARK, own.join("world")).current_dir("/"));
        let mut bare = daemon(Command::new("setsid").arg("env").arg("-i").current_dir(own.join("world")));
        let mut other = daemon(Command::new("setsid").env(MARK, &foreign).current_dir(&foreign));
        assert_eq!(commands(&end_below(&own, GRACE)), ["sleep 600"; 2]);
        assert!(marked.wait().is_ok() && bare.wait().is_ok(), "both are ended");
        assert_eq!(end_below(&own, GRACE), []);
        assert_eq!(other.try_wait().expect("a state"), None);
        kill_below(&foreign);
        assert!(!other.wait().expect("an end").success());
    }

    #[test]
    fn a_process_that_ends_within_the_grace_is_none() {
        let root = tempfile::Builder::new().prefix(PREFIX).tempdir().expect("dir");
        let mut brief = Command::new("sleep").arg("0.05").env(MARK, root.path()).spawn().expect("a process");
        assert_eq!(end_below(root.path(), GRACE), []);
        assert!(brief.wait().expect("an end").success());
    }

    #[test]
    fn a_dead_process_that_nobody_waited_for_is_none() {
        let mut dead = Command::new("true").process_group(0).spawn().expect("a process");
        let group = Pid::from_raw(i32::try_from(dead.id()).expect("an id"));
        assert_eq!(end_group(group, GRACE), []);
        assert!(dead.wait().expect("an end").success());
    }
}

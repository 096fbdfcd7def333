//! What this lab has in the world and must not leave there: the process groups that it started, and its folder. All of
//! it is listed in this one place, so that a lab that is told to stop can end and remove it.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::agent::stray;
use crate::error::LabError;

/// Held for writing from the moment at which the lab is told to stop up to its end: whoever wants to start a process or
/// to tell a result waits there.
static OPEN: RwLock<()> = RwLock::new(());

static GROUPS: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());
static FOLDERS: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
static PLAYED: AtomicUsize = AtomicUsize::new(0);

/// So often a folder is removed before it is given up: threads that have not come to the gate yet may still write into
/// it.
const ROUNDS: usize = 50;

/// Between two of these.
const PAUSE: Duration = Duration::from_millis(10);

/// A process group on the list, until dropped.
pub struct Group(Pid);

impl Group {
    /// The group's id, which is that of its first process.
    #[must_use]
    pub fn id(&self) -> Pid {
        self.0
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        locked(&GROUPS).remove(&self.0.as_raw());
    }
}

/// Starts a process that leads a group of its own, and lists it. A lab that is being stopped starts nothing any more:
/// the call does not return.
///
/// # Errors
/// What the system says.
pub fn spawn(command: &mut Command) -> io::Result<(Child, Group)> {
    let _gate = OPEN.read().unwrap_or_else(PoisonError::into_inner);
    let child = command.spawn()?;
    let pid = i32::try_from(child.id()).map_err(io::Error::other)?;
    locked(&GROUPS).insert(pid);
    Ok((child, Group(Pid::from_raw(pid))))
}

/// A folder on the list, until dropped.
pub struct Kept(PathBuf);

impl Drop for Kept {
    fn drop(&mut self) {
        locked(&FOLDERS).remove(&self.0);
    }
}

/// Lists a folder that a stop must remove.
#[must_use]
pub fn keep(folder: &Path) -> Kept {
    locked(&FOLDERS).insert(folder.to_owned());
    Kept(folder.to_owned())
}

/// Counts a scenario that was played to its end.
pub fn played() {
    PLAYED.fetch_add(1, Ordering::Relaxed);
}

/// Goes by, unless the lab is being stopped: what it found while its processes were killed says nothing and must not be
/// told.
pub fn pass() {
    drop(OPEN.read().unwrap_or_else(PoisonError::into_inner));
}

/// Lets SIGINT, SIGTERM and SIGHUP end the lab with everything that it has started; `tell` is given the one line to be
/// said. A signal that was ignored when the lab began, as `nohup` has it, stays ignored.
///
/// # Errors
/// A system that lends no signal or no thread.
pub fn end_on_signals(tell: fn(&str)) -> Result<(), LabError> {
    let failed = |e: io::Error| LabError::Internal(format!("cannot listen for signals: {e}"));
    let ignored = ignored();
    let wanted = [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|number| ignored >> (number - 1) & 1 == 0);
    let mut signals = Signals::new(wanted).map_err(failed)?;
    let listen = move || {
        if let Some(number) = signals.forever().next() {
            stop(number, tell);
        }
    };
    std::thread::Builder::new().spawn(listen).map(drop).map_err(failed)
}

fn stop(number: i32, tell: fn(&str)) {
    let _gate = OPEN.write().unwrap_or_else(PoisonError::into_inner);
    for group in locked(&GROUPS).iter() {
        // Fails only for a group that has ended by itself.
        let _ = killpg(Pid::from_raw(*group), Signal::SIGKILL);
    }
    for folder in locked(&FOLDERS).iter() {
        stray::kill_below(folder);
        remove(folder);
    }
    let name = Signal::try_from(number).map_or("a signal", Signal::as_str);
    let count = PLAYED.load(Ordering::Relaxed);
    tell(&format!("stopped by {name} after {count} scenarios; that does not count as passed"));
    std::process::exit(128 + number);
}

fn remove(folder: &Path) {
    for _ in 0..ROUNDS {
        // Only whether it is gone counts.
        let _ = std::fs::remove_dir_all(folder);
        if !folder.exists() {
            return;
        }
        std::thread::sleep(PAUSE);
    }
}

/// The signals that this process ignores, a bit each; none where nobody can tell.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

fn locked<T>(list: &Mutex<T>) -> MutexGuard<'_, T> {
    list.lock().unwrap_or_else(PoisonError::into_inner)
}

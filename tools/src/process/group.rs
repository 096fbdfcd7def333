//! All processes that came of one program, and the proof that they are gone.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use serde_json::{Value, json};

use crate::error::ToolError;

/// How long processes that were ended may take to be gone.
const GONE_WAIT: Duration = Duration::from_secs(10);

/// How long it is between two looks whether they are.
const LOOK: Duration = Duration::from_millis(5);

/// Takes the lock that all processes to come inherit, and notes who leads them. The note is not synced: after a power
/// cut there is no process either.
///
/// # Errors
/// Another one has it, or the file cannot be written.
pub(super) fn take(note: &Path) -> io::Result<File> {
    let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(note)?;
    file.try_lock().map_err(|error| match error {
        TryLockError::WouldBlock => io::Error::other("a program of an earlier attempt still runs"),
        TryLockError::Error(error) => error,
    })?;
    let pid = Pid::this();
    let who = json!({ "pid": pid.as_raw(), "start": started(pid)?, "boot": boot()? });
    file.set_len(0)?;
    file.write_all(who.to_string().as_bytes())?;
    fcntl(&file, FcntlArg::F_SETFD(FdFlag::empty()))?;
    Ok(file)
}

/// Ends what is left of an earlier attempt and waits for the proof that it is gone. Nobody else may start a program
/// under this note meanwhile, which the task's lock sees to.
///
/// # Errors
/// Something is left that cannot be ended.
pub(crate) fn end_former(note: &Path) -> Result<(), ToolError> {
    let failed = |error: io::Error| ToolError::step(format!("cannot look at {}: {error}", note.display()));
    let file = match OpenOptions::new().read(true).write(true).open(note) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        file => file.map_err(failed)?,
    };
    let end = Instant::now() + GONE_WAIT;
    let mut left = Vec::new();
    loop {
        match file.try_lock() {
            Ok(()) => return fs::remove_file(note).map_err(failed),
            Err(TryLockError::WouldBlock) if Instant::now() < end => {}
            Err(TryLockError::WouldBlock) => {
                let left: Vec<String> = left.iter().map(Pid::to_string).collect();
                let who = if left.is_empty() { "another user's process".to_owned() } else { left.join(", ") };
                let note = note.display();
                return Err(ToolError::step(format!(
                    "a program of an earlier attempt still runs and cannot be ended (process {who} holds {note})"
                )));
            }
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
        end_group(note);
        left = holders(&file).map_err(failed)?;
        for pid in &left {
            // What is gone meanwhile is what is wanted; what may not be ended is told above.
            let _gone = kill(*pid, Signal::SIGKILL);
        }
        std::thread::sleep(LOOK);
    }
}

/// Ends the process group that the note names, if its leader is the one that wrote it: process ids come again.
fn end_group(note: &Path) {
    let who: Option<Value> = fs::read_to_string(note).ok().and_then(|text| serde_json::from_str(&text).ok());
    let Some(who) = who else { return };
    let Some(pid) = who["pid"].as_i64().and_then(|pid| i32::try_from(pid).ok()).map(Pid::from_raw) else { return };
    let same = started(pid).is_ok_and(|start| who["start"] == start) && boot().is_ok_and(|boot| who["boot"] == *boot);
    if same {
        let _gone = killpg(pid, Signal::SIGKILL);
    }
}

/// The processes that have inherited the lock: also those that have left their group.
fn holders(file: &File) -> io::Result<Vec<Pid>> {
    let meta = file.metadata()?;
    let mut found = Vec::new();
    for process in fs::read_dir("/proc")?.flatten() {
        let Some(pid) = process.file_name().to_str().and_then(|name| name.parse().ok()).map(Pid::from_raw) else {
            continue;
        };
        if pid == Pid::this() {
            continue;
        }
        // Of another user's process nothing is seen; a process may be gone meanwhile.
        let Ok(descriptors) = fs::read_dir(process.path().join("fd")) else { continue };
        let holds = descriptors.flatten().any(|descriptor| {
            let same = fs::metadata(descriptor.path())
                .is_ok_and(|other| (other.dev(), other.ino()) == (meta.dev(), meta.ino()));
            same && has_lock(&process.path().join("fdinfo").join(descriptor.file_name()))
        });
        if holds {
            found.push(pid);
        }
    }
    Ok(found)
}

/// Whether a descriptor is one of those that hold a lock: whoever only reads the file is left alone.
fn has_lock(info: &Path) -> bool {
    fs::read_to_string(info).is_ok_and(|info| info.contains("FLOCK"))
}

/// When a process began, in the kernel's ticks since it did itself.
fn started(pid: Pid) -> io::Result<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    // The name, the second field, may hold anything; it ends at the last bracket.
    let field = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(19));
    field.and_then(|start| start.parse().ok()).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// Names this start of the machine.
fn boot() -> io::Result<String> {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").map(|id| id.trim().to_owned())
}

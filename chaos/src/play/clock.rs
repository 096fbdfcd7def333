//! Another time for a process: `libfaketime`, where it is installed and reaches the agent. The times of files stay as
//! they are: a process really wakes up later, or earlier.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::agent::process::{Ended, Env};
use crate::case::TASK;
use crate::case::plan::PlanCase;
use crate::error::LabError;
use crate::look::lab::Lab;
use crate::play::stage::{HOLD, Left, Stage};

/// Where distributions put it.
const PLACES: [&str; 3] = [
    "/usr/lib/*/faketime/libfaketime.so.1",
    "/usr/lib*/faketime/libfaketime.so.1",
    "/usr/local/lib/faketime/libfaketime.so.1",
];

/// Where the library has memory for each process, under these names with its id.
const SHARED: &str = "/dev/shm";
const LEFT: [&str; 2] = ["faketime_shm_", "sem.faketime_sem_"];

/// Whether an agent can be shown another time.
#[derive(Clone, Debug)]
pub enum Clock {
    /// By this library.
    Moves {
        /// Where it is.
        library: PathBuf,
        /// Whether it moves the clock that counts from the start of the machine too. It should not; but with that wish,
        /// version 0.9.10 breaks the sleep of Python.
        monotonic: bool,
    },
    /// It cannot, because of this.
    Stands(&'static str),
}

impl Clock {
    /// Finds out, by runs to which the library is given and which it shows the right time: it must be in the process,
    /// and do no harm.
    ///
    /// # Errors
    /// The lab's own failures.
    pub fn find(lab: &Lab, case: &Arc<PlanCase>, created: Option<&Left>) -> Result<Self, LabError> {
        let found = PLACES.iter().filter_map(|place| glob::glob(place).ok()).flatten().find_map(Result::ok);
        let Some(library) = found else { return Ok(Self::Stands("libfaketime is not installed")) };
        for monotonic in [false, true] {
            let clock = Self::Moves { library: library.clone(), monotonic };
            let mut stage = Stage::begun(lab, case, created)?;
            let mut env = clock.env(0);
            env.push(("AGENT_STEP_DELAY", HOLD.to_string()));
            let (running, _) = stage.start_and_wait(TASK, 0, &env)?;
            if !running.has_mapped(Path::new(&library)) {
                return Ok(Self::Stands("libfaketime does not reach the agent, which is linked without a C library"));
            }
            let ended = stage.sandbox.finish(running)?.ended;
            clock.sweep();
            if ended == Ended::Exited(0) {
                return Ok(clock);
            }
        }
        Ok(Self::Stands("the agent fails under libfaketime, whatever the time"))
    }

    /// What shows a process a clock that is so many seconds ahead, or behind.
    #[must_use]
    pub fn env(&self, seconds: i64) -> Env {
        let Self::Moves { library, monotonic } = self else { return Env::new() };
        let mut env = vec![
            ("LD_PRELOAD", library.to_string_lossy().into_owned()),
            ("FAKETIME", format!("{seconds:+}")),
            ("NO_FAKE_STAT", "1".to_owned()),
        ];
        if !monotonic {
            env.push(("DONT_FAKE_MONOTONIC", "1".to_owned()));
        }
        env
    }

    /// Removes what the library leaves in memory of processes that have ended, also of a lab that was stopped.
    pub fn sweep(&self) {
        for entry in fs::read_dir(SHARED).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            let pid = LEFT.iter().find_map(|left| name.strip_prefix(left));
            let is_left = pid.is_some_and(|pid| pid.parse::<u32>().is_ok() && !Path::new("/proc").join(pid).exists());
            if is_left {
                // Another user's is not ours to remove.
                let _best_effort = fs::remove_file(entry.path());
            }
        }
    }

    /// Why it cannot be moved, where it cannot.
    #[must_use]
    pub fn stands(&self) -> Option<&'static str> {
        match self {
            Self::Moves { .. } => None,
            Self::Stands(why) => Some(why),
        }
    }
}

//! Signals: SIGTERM and SIGINT stop a run between two commits, SIGXFSZ is an error like any other. SIGHUP is left as it
//! was found, since `nohup` has it ignored.

use std::io;
use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use nix::unistd::alarm;
use signal_hook::consts::{SIGALRM, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::flag;
use tools::Stop;

use crate::exit::{Exit, Failure};

/// The signals that ask for a stop, listened for.
pub(crate) struct Signals {
    /// Asked by the first of them.
    pub(crate) stop: Stop,
    which: Arc<AtomicUsize>,
}

impl Signals {
    /// Listens for SIGTERM and SIGINT. The first one asks for a stop, and what does not look has `grace` from the
    /// moment on at which somebody sees it; then the process ends, as it does at once with a second signal. Both are as
    /// safe as any kill.
    ///
    /// # Errors
    /// The handlers cannot be installed.
    pub(crate) fn listen(grace: Duration) -> Result<Self, Failure> {
        let which = Arc::new(AtomicUsize::new(0));
        let asked_by = Arc::clone(&which);
        let stop = Stop::reacting(move || end_after(grace, exit_of(&asked_by)));
        let signals = Self { stop, which };
        let again = Arc::new(AtomicBool::new(false));
        for signal in [SIGTERM, SIGINT] {
            signals
                .on(signal, &again)
                .map_err(|error| Failure::new(Exit::Internal, format!("cannot handle signals: {error}")))?;
        }
        Ok(signals)
    }

    fn on(&self, signal: i32, again: &Arc<AtomicBool>) -> io::Result<()> {
        // No signal whose handler is the default one ends the first process of a container.
        if process::id() == 1 {
            flag::register_conditional_shutdown(signal, crate::exit::by_signal(signal), Arc::clone(again))?;
        } else {
            flag::register_conditional_default(signal, Arc::clone(again))?;
        }
        flag::register(signal, Arc::clone(again))?;
        // Before the stop: who sees that it is asked for must also find by what.
        flag::register_usize(signal, Arc::clone(&self.which), signal as usize)?;
        flag::register(signal, self.stop.flag()).map(drop)
    }

    /// The exit code of the signal that asked for the stop.
    pub(crate) fn exit(&self) -> Exit {
        exit_of(&self.which)
    }
}

fn exit_of(which: &AtomicUsize) -> Exit {
    match i32::try_from(which.load(Ordering::Relaxed)) {
        Ok(SIGINT) => Exit::Interrupted,
        _ => Exit::Terminated,
    }
}

/// Ends the process when the grace is over. The kernel's alarm does it, so that no second thread is needed and nothing
/// that blocks can be in its way; it counts whole seconds.
fn end_after(grace: Duration, exit: Exit) {
    let seconds = u32::try_from(grace.as_secs() + u64::from(grace.subsec_nanos() > 0)).unwrap_or(u32::MAX);
    // Where it cannot be done, the wait is longer, and a second signal ends it.
    if flag::register_conditional_shutdown(SIGALRM, exit as i32, Arc::new(AtomicBool::new(true))).is_ok() {
        alarm::set(seconds.max(1));
    }
}

/// A file that grows beyond the limit on file sizes is then an error of the write, which is told as such, and no longer
/// kills the process without a word.
pub(crate) fn survive_size_limits() {
    // Where it cannot be had, it is as it was.
    let _best_effort = flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false)));
}

/// SIGKILL cannot be handled, so nothing runs after it: no destructor, no buffer is flushed.
pub(crate) fn kill_this_process() -> ! {
    let _sent = nix::sys::signal::kill(nix::unistd::Pid::this(), nix::sys::signal::Signal::SIGKILL);
    // The first process of a container survives its own signals.
    signal_hook::low_level::exit(crate::exit::by_signal(nix::sys::signal::Signal::SIGKILL as i32))
}

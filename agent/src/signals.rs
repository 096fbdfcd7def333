//! SIGTERM and SIGINT: stop between two commits. SIGHUP is left as it was found, since `nohup` has it ignored.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use signal_hook::consts::{SIGINT, SIGTERM};
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
    /// Listens for SIGTERM and SIGINT. The first one asks for a stop; a second one ends the process at once, which is
    /// as safe as any kill.
    ///
    /// # Errors
    /// The handlers cannot be installed.
    pub(crate) fn listen() -> Result<Self, Failure> {
        let signals = Self { stop: Stop::default(), which: Arc::default() };
        let again = Arc::new(AtomicBool::new(false));
        for signal in [SIGTERM, SIGINT] {
            signals
                .on(signal, &again)
                .map_err(|error| Failure::new(Exit::Internal, format!("cannot handle signals: {error}")))?;
        }
        Ok(signals)
    }

    fn on(&self, signal: i32, again: &Arc<AtomicBool>) -> io::Result<()> {
        flag::register_conditional_default(signal, Arc::clone(again))?;
        flag::register(signal, Arc::clone(again))?;
        // Before the stop: who sees that it is asked for must also find by what.
        flag::register_usize(signal, Arc::clone(&self.which), signal as usize)?;
        flag::register(signal, self.stop.flag()).map(drop)
    }

    /// The exit code of the signal that asked for the stop.
    pub(crate) fn exit(&self) -> Exit {
        match i32::try_from(self.which.load(Ordering::Relaxed)) {
            Ok(SIGINT) => Exit::Interrupted,
            _ => Exit::Terminated,
        }
    }
}

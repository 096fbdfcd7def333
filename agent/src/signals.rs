//! SIGTERM and SIGINT: stop between two commits. SIGHUP is left as it was found, since `nohup` has it ignored.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

use crate::exit::{Exit, Failure};

/// Whether this process has been asked to stop.
#[derive(Clone, Debug, Default)]
pub struct Stop {
    signal: Arc<AtomicUsize>,
}

/// How long a pause may sleep before it looks at the signals again.
const LOOK: Duration = Duration::from_millis(10);

impl Stop {
    /// Listens for SIGTERM and SIGINT. The first one asks for a stop; a second one ends the process at once, which is
    /// as safe as any kill.
    ///
    /// # Errors
    /// The handlers cannot be installed.
    pub fn on_signals() -> Result<Self, Failure> {
        let stop = Self::default();
        let again = Arc::new(AtomicBool::new(false));
        for signal in [SIGTERM, SIGINT] {
            let installed = flag::register_conditional_default(signal, Arc::clone(&again))
                .and_then(|_| flag::register(signal, Arc::clone(&again)))
                .and_then(|_| flag::register_usize(signal, Arc::clone(&stop.signal), signal as usize));
            installed.map_err(|error| Failure::new(Exit::Internal, format!("cannot handle signals: {error}")))?;
        }
        Ok(stop)
    }

    /// The exit code of the signal that asked for a stop, if one did.
    #[must_use]
    pub fn requested(&self) -> Option<Exit> {
        match i32::try_from(self.signal.load(Ordering::Relaxed)) {
            Ok(SIGINT) => Some(Exit::Interrupted),
            Ok(SIGTERM) => Some(Exit::Terminated),
            _ => None,
        }
    }

    /// Sleeps, or less where a signal comes.
    pub fn sleep(&self, pause: Duration) {
        let start = Instant::now();
        while self.requested().is_none() {
            match pause.checked_sub(start.elapsed()) {
                Some(left) if !left.is_zero() => std::thread::sleep(left.min(LOOK)),
                _ => return,
            }
        }
    }
}

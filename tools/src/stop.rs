//! The wish that a process stops.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Whether this process has been asked to stop. Its copies share the answer, which never goes back to no.
#[derive(Clone, Debug, Default)]
pub struct Stop {
    asked: Arc<AtomicBool>,
}

/// How long a pause may sleep before it looks again.
const LOOK: Duration = Duration::from_millis(10);

impl Stop {
    /// Whether it has been asked.
    #[must_use]
    pub fn asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }

    /// What asks when it is set, such as a signal handler.
    #[must_use]
    pub fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.asked)
    }

    /// Sleeps, or less where it is asked.
    pub fn sleep(&self, pause: Duration) {
        let start = Instant::now();
        while !self.asked() {
            match pause.checked_sub(start.elapsed()) {
                Some(left) if !left.is_zero() => std::thread::sleep(left.min(LOOK)),
                _ => return,
            }
        }
    }
}

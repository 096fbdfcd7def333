//! Time as a dependency, so that nothing below the command line reads a clock on its own.

use std::time::{SystemTime, UNIX_EPOCH};

/// Source of the timestamps in the journal.
pub trait Clock {
    /// Seconds since the Unix epoch.
    fn now(&self) -> f64;
}

/// The machine's wall clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> f64 {
        // A clock before 1970 is a broken machine; 0 keeps the journal readable and ordered by `seq`.
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
    }
}

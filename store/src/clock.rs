//! Time as a dependency, so that nothing below the command line reads a clock on its own.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::model::Timestamp;

/// Source of the timestamps in the journal.
pub trait Clock {
    /// The present time.
    fn now(&self) -> Timestamp;
}

/// The machine's wall clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        // A clock before 1970 is a broken machine; 0 keeps the journal readable and ordered by `seq`.
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp::from_micros(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
    }
}

//! The wish that a process stops.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// Whether this process has been asked to stop. Its copies share the answer, which never goes back to no.
#[derive(Clone, Default)]
pub struct Stop {
    asked: Arc<AtomicBool>,
    seen: Arc<OnceLock<()>>,
    react: Option<Arc<dyn Fn() + Send + Sync>>,
}

/// How long a pause may sleep before it looks again.
const LOOK: Duration = Duration::from_millis(10);

impl Stop {
    /// One that calls `react` when it is first seen to be asked, once: what asks may be a signal handler, which can do
    /// nothing but set [`Stop::flag`].
    #[must_use]
    pub fn reacting(react: impl Fn() + Send + Sync + 'static) -> Self {
        Self { react: Some(Arc::new(react)), ..Self::default() }
    }

    /// Whether it has been asked.
    #[must_use]
    pub fn asked(&self) -> bool {
        let asked = self.asked.load(Ordering::Relaxed);
        if asked && let Some(react) = &self.react {
            self.seen.get_or_init(|| react());
        }
        asked
    }

    /// What asks when it is set.
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

impl fmt::Debug for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stop").field("asked", &self.asked).finish_non_exhaustive()
    }
}

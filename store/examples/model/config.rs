//! How large the explored world is, and what is wrong with it.

use crate::bug::Bug;

/// Room for processes and steps; arrays make a state cheap to copy.
pub(crate) const MAX_RUNNERS: usize = 3;
/// See [`MAX_RUNNERS`].
pub(crate) const MAX_STEPS: usize = 3;
/// A place for each step, and behind the last one that of the completion.
pub(crate) const PLACES: usize = MAX_STEPS + 1;

/// One world to be explored. Faults are bounded, so that the world is finite and every order of them is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Config {
    /// Processes that `run` or `retry` the task, each again and again.
    pub(crate) runners: u8,
    /// Steps of the plan, each with an effect at a receiver that knows keys.
    pub(crate) steps: u8,
    /// Whether the task has a completion, an effect between its last step and its end.
    pub(crate) completion: bool,
    /// The attempt limit.
    pub(crate) max_attempts: u32,
    /// How many faults there may be.
    pub(crate) faults: Faults,
    /// What is planted; `None` is what ships.
    pub(crate) bug: Option<Bug>,
}

/// How often something may still happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Faults {
    /// A process dies, between any two actions; its death frees the lock.
    pub(crate) crashes: u8,
    /// A tool fails, before or after its effect.
    pub(crate) errors: u8,
    /// A process is asked to stop before its effect, and gives the attempt up in order.
    pub(crate) stops: u8,
    /// The lock is freed under its living holder, who does not notice: a removed lock file, a lease that expired.
    pub(crate) expiries: u8,
    /// A failed task is retried. How many people try at once is bounded only by the runners.
    pub(crate) retries: u8,
}

impl Config {
    /// Seconds even without optimisation: for `cargo test`.
    pub(crate) const SMALL: Self = Self {
        runners: 2,
        steps: 1,
        completion: true,
        max_attempts: 2,
        faults: Faults { crashes: 1, errors: 1, stops: 1, expiries: 1, retries: 1 },
        bug: None,
    };

    /// Part of every check.
    pub(crate) const FULL: Self = Self { steps: 2, ..Self::SMALL };

    /// Minutes, all of them: many processes, many faults, many holders whose lock is gone without their knowing. What a
    /// completion and a stop in order add is explored in full above.
    pub(crate) const DEEP: [Self; 3] = [
        Self { runners: 3, ..Self::BARE },
        Self { steps: 3, faults: Faults { crashes: 2, errors: 2, ..Self::BARE.faults }, ..Self::BARE },
        Self { faults: Faults { expiries: 2, ..Self::BARE.faults }, ..Self::BARE },
    ];

    const BARE: Self = Self { completion: false, faults: Faults { stops: 0, ..Self::FULL.faults }, ..Self::FULL };

    /// The same world with something planted in it.
    pub(crate) const fn with(self, bug: Bug) -> Self {
        Self { bug: Some(bug), ..self }
    }

    /// Whether this is planted.
    pub(crate) fn has(&self, bug: Bug) -> bool {
        self.bug == Some(bug)
    }
}

//! The state of a task, in the space that decisions need.

use std::fmt;
use std::str::FromStr;

/// Where a task stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TaskStatus {
    /// Nothing of it has run since it was created or retried.
    #[default]
    Pending,
    /// At least one step was started.
    Running,
    /// Every step is done. Final.
    Done,
    /// A step has used up its attempts. Final until somebody retries it.
    Failed,
}

impl TaskStatus {
    /// True where no run changes the task any more.
    #[must_use]
    pub fn is_over(self) -> bool {
        matches!(self, Self::Done | Self::Failed)
    }
}

/// Where a step stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum StepStatus {
    /// To be started.
    #[default]
    Pending,
    /// An attempt is under way, or its process died.
    Running,
    /// Committed with its output. Never runs again.
    Done,
    /// Has used up its attempts.
    Failed,
}

/// A stored status that this version does not know.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a status that this version knows")]
pub struct UnknownStatus(String);

/// Spellings are fixed: other programs read them. Each type has its own list, since not every status fits both.
macro_rules! spelled {
    ($status:ident: $($variant:ident = $text:literal),+) => {
        impl $status {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The spelling in the database and in JSON.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $text),+
                }
            }
        }

        impl fmt::Display for $status {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl FromStr for $status {
            type Err = UnknownStatus;

            fn from_str(text: &str) -> Result<Self, UnknownStatus> {
                let found = Self::ALL.iter().find(|status| status.as_str() == text);
                found.copied().ok_or_else(|| UnknownStatus(text.to_owned()))
            }
        }
    };
}

spelled!(TaskStatus: Pending = "pending", Running = "running", Done = "done", Failed = "failed");
spelled!(StepStatus: Pending = "pending", Running = "running", Done = "done", Failed = "failed");

/// Where one step stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct StepState {
    /// Its status.
    pub status: StepStatus,
    /// How often it was started; a crashed attempt counts.
    pub attempts: u32,
    /// How many of these attempts do not count against the limit: a retry has forgiven them, or they ended in order
    /// before they could have done anything.
    pub forgiven: u32,
}

impl StepState {
    /// Attempts that count against the limit.
    #[must_use]
    pub fn attempts_charged(&self) -> u32 {
        self.attempts.saturating_sub(self.forgiven)
    }
}

/// The state of a task: a position.
///
/// Steps run strictly in order, so every step before [`TaskState::cursor`] is done and every step after it is
/// untouched; only the step at the cursor can be anything else. That makes the state a few bytes whatever the length of
/// the plan, and a run's cost independent of its history. Behind the last step stands the completion, if the task has
/// one: it is attempted and limited like a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TaskState {
    /// The task's status.
    pub status: TaskStatus,
    /// How many steps the plan has.
    pub steps: u32,
    /// Index of the first step that is not done; equals `steps` when all are.
    pub cursor: u32,
    /// What stands at the cursor: a step, or behind the last one the completion.
    pub current: StepState,
}

impl TaskState {
    /// A task as it is created, with `steps` steps.
    #[must_use]
    pub fn created(steps: u32) -> Self {
        Self { status: TaskStatus::Pending, steps, cursor: 0, current: StepState::default() }
    }

    /// The step at the cursor; none behind the last one.
    #[must_use]
    pub fn step(&self) -> Option<u32> {
        (self.cursor < self.steps).then_some(self.cursor)
    }

    /// True where every step is done and none can come any more, so that the task may complete. Whoever asks whether
    /// there is a step to run asks [`TaskState::step`]: a plan that may still grow has neither.
    #[must_use]
    pub fn no_step_left(&self) -> bool {
        self.step().is_none()
    }

    /// The step that is marked as running, if there is one.
    #[must_use]
    pub fn running(&self) -> Option<u32> {
        self.step().filter(|_| self.current.status == StepStatus::Running)
    }

    /// True where the completion is marked as running.
    #[must_use]
    pub fn is_completing(&self) -> bool {
        self.step().is_none() && self.current.status == StepStatus::Running
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_are_spelled_as_the_contract_has_them() {
        for spelling in ["pending", "running", "done", "failed"] {
            assert_eq!(spelling.parse::<TaskStatus>().unwrap().to_string(), spelling);
            assert_eq!(spelling.parse::<StepStatus>().unwrap().to_string(), spelling);
        }
        assert!("Done".parse::<TaskStatus>().is_err());
    }
}

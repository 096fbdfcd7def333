//! The state of a task, in the space that decisions need.

use super::effect::{Digest, Effect, Intent};
use super::spelling::spelled;
use super::time::Timestamp;

spelled! {
    /// Where a task stands.
    #[derive(Default)]
    TaskStatus, "a status" {
        /// Nothing of it has run since it was created, retried, or told what to go on with.
        #[default]
        Pending = "pending",
        /// At least one step was started.
        Running = "running",
        /// A step waits, for its time or for a person.
        Waiting = "waiting",
        /// The effect of a step may or may not have happened, and a person has to say.
        InDoubt = "in_doubt",
        /// Every step is done. Final.
        Done = "done",
        /// A step has failed for good. Final until somebody retries it.
        Failed = "failed",
        /// A person has ended it. Final.
        Cancelled = "cancelled",
    }
}

impl TaskStatus {
    /// True where no run changes the task any more.
    #[must_use]
    pub fn is_over(self) -> bool {
        matches!(self, Self::Done | Self::Failed | Self::Cancelled)
    }
}

spelled! {
    /// Where a step stands.
    #[derive(Default)]
    StepStatus, "a status" {
        /// To be started.
        #[default]
        Pending = "pending",
        /// It waits, for its time or for a person.
        Waiting = "waiting",
        /// An attempt is under way, or its process died.
        Running = "running",
        /// Its effect may or may not have happened, and a person has to say.
        InDoubt = "in_doubt",
        /// Committed with its output. Never runs again.
        Done = "done",
        /// It was not to be done, and has no output. Never runs.
        Skipped = "skipped",
        /// Has failed for good: the task with it, or the task has gone on without it.
        Failed = "failed",
    }
}

impl StepStatus {
    /// True where the task may be past the step.
    #[must_use]
    pub fn is_settled(self) -> bool {
        matches!(self, Self::Done | Self::Skipped | Self::Failed)
    }
}

/// What a step waits for, or has waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Wait {
    /// For this time. It stays with the step: a wait that is over is not begun again.
    Until(Timestamp),
    /// For a person's answer.
    Approval {
        /// When the question is withdrawn.
        expires: Option<Timestamp>,
    },
}

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
    /// What it waits for, or has waited for.
    pub wait: Option<Wait>,
    /// What its attempts intend; none where they change nothing and their input is taken literally.
    pub intent: Option<Intent>,
    /// True where an earlier attempt may have had its effect.
    pub unknown: bool,
    /// True where a person has answered; the answer is for the input that was shown, see [`StepState::intent`].
    pub answered: bool,
}

impl StepState {
    /// The same once the task is past the step: it waits for nothing any more.
    #[must_use]
    pub fn settled(self, status: StepStatus) -> Self {
        Self { status, wait: None, ..self }
    }

    /// Attempts that count against the limit.
    #[must_use]
    pub fn attempts_charged(&self) -> u32 {
        self.attempts.saturating_sub(self.forgiven)
    }

    /// The class in force.
    #[must_use]
    pub fn effect(&self) -> Effect {
        self.intent.map_or(Effect::Pure, |intent| intent.effect)
    }

    /// What an attempt intends that is `given`: the class is that of the first one that named one.
    #[must_use]
    pub fn in_force(&self, given: Option<Intent>) -> Option<Intent> {
        match (self.intent, given) {
            (Some(first), Some(given)) => Some(Intent { effect: first.effect, ..given }),
            (first, given) => first.or(given),
        }
    }

    /// True where an effect may have happened that another attempt could double.
    #[must_use]
    pub fn may_have_happened(&self) -> bool {
        self.unknown && self.effect() != Effect::Pure
    }

    /// True where an attempt has to ask first whether an earlier one had its effect.
    #[must_use]
    pub fn asks_first(&self) -> bool {
        self.may_have_happened() && self.effect() == Effect::Verifiable
    }

    /// True where a person has answered what was shown with this input.
    #[must_use]
    pub fn is_answered(&self, shown: Digest) -> bool {
        self.answered && self.intent.is_some_and(|intent| intent.digest == shown)
    }

    /// The time for which it waits, where it waits for one.
    #[must_use]
    pub fn due(&self) -> Option<Timestamp> {
        match self.wait {
            Some(Wait::Until(due)) if self.status == StepStatus::Waiting => Some(due),
            _ => None,
        }
    }
}

/// The state of a task: a position.
///
/// Steps run strictly in order, so every step before [`TaskState::cursor`] is done, skipped, or has failed and was left
/// behind, and every step after it is untouched; only the step at the cursor can be anything else. That makes the state
/// a few bytes whatever the length of the plan, and a run's cost independent of its history. Behind the last step
/// stands the completion, if the task has one: it is attempted and limited like a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TaskState {
    /// The task's status.
    pub status: TaskStatus,
    /// How many steps the plan has.
    pub steps: u32,
    /// Index of the first step that the task is not past; equals `steps` when it is past all.
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

    /// The cursor, where `settled` rows of steps come before all others and the last of them is `last`: a step that has
    /// failed is settled, and yet the task stands at it where it has failed with it.
    #[must_use]
    pub fn cursor_after(settled: u32, last: StepStatus, task: TaskStatus, completion: StepStatus) -> u32 {
        let failed_at_it = task == TaskStatus::Failed && last == StepStatus::Failed && completion != StepStatus::Failed;
        settled.saturating_sub(u32::from(failed_at_it))
    }

    /// The step at the cursor; none behind the last one.
    #[must_use]
    pub fn step(&self) -> Option<u32> {
        (self.cursor < self.steps).then_some(self.cursor)
    }

    /// True where the task is past every step and none can come any more, so that it may complete. Whoever asks whether
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

    /// Whatever the length of the plan, and with all that a step can wait for and intend.
    #[test]
    fn a_state_is_a_few_bytes() {
        assert!(size_of::<TaskState>() <= 96, "{}", size_of::<TaskState>());
    }

    #[test]
    fn statuses_are_spelled_as_the_contract_has_them() {
        let both = ["pending", "running", "waiting", "in_doubt", "done", "failed"];
        for spelling in both.into_iter().chain(["cancelled"]) {
            assert_eq!(spelling.parse::<TaskStatus>().unwrap().to_string(), spelling);
        }
        for spelling in both.into_iter().chain(["skipped"]) {
            assert_eq!(spelling.parse::<StepStatus>().unwrap().to_string(), spelling);
        }
        assert_eq!(
            "Done".parse::<TaskStatus>().unwrap_err().to_string(),
            "`Done` is not a status that this version knows"
        );
        assert!("skipped".parse::<TaskStatus>().is_err() && "cancelled".parse::<StepStatus>().is_err());
    }

    /// A step that failed under `on_error: continue` looks like the one that failed its task.
    #[test]
    fn the_task_stands_at_the_step_that_failed_it_and_is_past_one_that_it_left_behind() {
        let (pending, done, failed) = (StepStatus::Pending, StepStatus::Done, StepStatus::Failed);
        assert_eq!(TaskState::cursor_after(2, failed, TaskStatus::Running, pending), 2);
        assert_eq!(TaskState::cursor_after(2, failed, TaskStatus::Failed, pending), 1);
        assert_eq!(TaskState::cursor_after(2, failed, TaskStatus::Failed, failed), 2);
        assert_eq!(TaskState::cursor_after(2, failed, TaskStatus::Cancelled, pending), 2);
        assert_eq!(TaskState::cursor_after(2, done, TaskStatus::Failed, pending), 2);
    }
}

//! Events to states.

use crate::model::{Event, StepState, StepStatus, TaskState, TaskStatus};

/// An event that cannot follow the events before it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Illegal {
    /// A task is created once, and that is its first event.
    #[error("the task is created a second time")]
    CreatedTwice,
    /// The event names a step that is not the one at the cursor.
    #[error("it is about step {step} while step {cursor} is next")]
    OutOfOrder {
        /// The step that it is about.
        step: u32,
        /// The step that is next.
        cursor: u32,
    },
    /// The step has a status from which the event cannot lead on.
    #[error("step {step} was {was}")]
    WrongStatus {
        /// The step.
        step: u32,
        /// What it was.
        was: StepStatus,
    },
    /// The task has a status from which the event cannot lead on.
    #[error("the task was {0}")]
    WrongTaskStatus(TaskStatus),
    /// A count in the event is not the next one.
    #[error("it counts {counted}, {expected} is due")]
    WrongCount {
        /// What the event says.
        counted: u32,
        /// What the state says.
        expected: u32,
    },
    /// The task is said to be done while steps are left.
    #[error("step {0} was not done")]
    StepsLeft(u32),
}

/// The state after `event`.
///
/// It is as strict as a reader can be: what [`super::decide`] would never produce is refused, so that replaying a
/// journal is also its check.
///
/// # Errors
/// The event cannot happen in this state.
pub fn evolve(state: TaskState, event: &Event) -> Result<TaskState, Illegal> {
    let over = state.status.is_over();
    if over && !matches!(event, Event::TaskRetried { .. } | Event::TaskCreated { .. }) {
        return Err(Illegal::WrongTaskStatus(state.status));
    }
    match *event {
        Event::TaskCreated { .. } => Err(Illegal::CreatedTwice),
        Event::RunStarted { .. } => match state.running() {
            Some(step) => Err(Illegal::WrongStatus { step, was: StepStatus::Running }),
            None => Ok(state),
        },
        Event::StepRecovered { step } | Event::StepError { step, .. } => {
            expect(&state, step, StepStatus::Running)?;
            Ok(with_current(state, StepStatus::Pending))
        }
        Event::StepStarted { step, attempt, .. } => {
            expect(&state, step, StepStatus::Pending)?;
            count(attempt, state.current.attempts.saturating_add(1))?;
            let current = StepState { status: StepStatus::Running, attempts: attempt, ..state.current };
            Ok(TaskState { status: TaskStatus::Running, current, ..state })
        }
        Event::StepFinished { step, .. } => {
            expect(&state, step, StepStatus::Running)?;
            Ok(TaskState { cursor: step + 1, current: StepState::default(), ..state })
        }
        Event::TaskFailed { step, .. } => {
            expect(&state, step, StepStatus::Pending)?;
            Ok(TaskState { status: TaskStatus::Failed, ..with_current(state, StepStatus::Failed) })
        }
        Event::TaskDone if state.all_done() => Ok(TaskState { status: TaskStatus::Done, ..state }),
        Event::TaskDone => Err(Illegal::StepsLeft(state.cursor)),
        Event::TaskRetried { step, forgiven } => retried(state, step, forgiven),
    }
}

fn retried(state: TaskState, step: u32, forgiven: u32) -> Result<TaskState, Illegal> {
    if state.status != TaskStatus::Failed {
        return Err(Illegal::WrongTaskStatus(state.status));
    }
    expect(&state, step, StepStatus::Failed)?;
    count(forgiven, state.current.attempts)?;
    let current = StepState { status: StepStatus::Pending, forgiven, ..state.current };
    Ok(TaskState { status: TaskStatus::Pending, current, ..state })
}

fn with_current(state: TaskState, status: StepStatus) -> TaskState {
    TaskState { current: StepState { status, ..state.current }, ..state }
}

fn expect(state: &TaskState, step: u32, status: StepStatus) -> Result<(), Illegal> {
    if state.all_done() || step != state.cursor {
        return Err(Illegal::OutOfOrder { step, cursor: state.cursor });
    }
    if state.current.status != status {
        return Err(Illegal::WrongStatus { step, was: state.current.status });
    }
    Ok(())
}

fn count(counted: u32, expected: u32) -> Result<(), Illegal> {
    if counted == expected { Ok(()) } else { Err(Illegal::WrongCount { counted, expected }) }
}

//! Events to states.

use crate::model::{Event, StepState, StepStatus, TaskState, TaskStatus};

/// An event that cannot follow the events before it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Illegal {
    /// A task is created once, and that is its first event.
    #[error("the task is created a second time")]
    CreatedTwice,
    /// The event is about something that is not at the cursor.
    #[error("it is about {} while {} is next", place(*.at), place(*.due))]
    OutOfOrder {
        /// The step that it is about; none for the completion.
        at: Option<u32>,
        /// The step that is next; none where it is the completion.
        due: Option<u32>,
    },
    /// What stands at the cursor has a status from which the event cannot lead on.
    #[error("{} was {was}", place(*.at))]
    WrongStatus {
        /// The step; none for the completion.
        at: Option<u32>,
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

/// What stands at a place, in words.
pub(super) fn place(at: Option<u32>) -> String {
    at.map_or_else(|| "the completion".to_owned(), |step| format!("step {step}"))
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
    if over && !matches!(event, Event::TaskRetried { .. } | Event::TaskRebound { .. } | Event::TaskCreated { .. }) {
        return Err(Illegal::WrongTaskStatus(state.status));
    }
    match *event {
        Event::TaskCreated { .. } => Err(Illegal::CreatedTwice),
        Event::RunStarted { .. } if state.current.status == StepStatus::Running => {
            Err(Illegal::WrongStatus { at: state.step(), was: StepStatus::Running })
        }
        Event::RunStarted { .. } | Event::TaskRebound { .. } => Ok(state),
        Event::StepRecovered { step } | Event::StepError { step, .. } => set_back(state, Some(step)),
        Event::CompletionRecovered => set_back(state, None),
        Event::StepReleased { step, .. } => Ok(uncounted(set_back(state, Some(step))?)),
        Event::CompletionError { .. } => Ok(uncounted(set_back(state, None)?)),
        Event::StepStarted { step, attempt, .. } => started(state, Some(step), attempt),
        Event::CompletionStarted { attempt } => started(state, None, attempt),
        Event::StepFinished { step, .. } => {
            expect(&state, Some(step), StepStatus::Running)?;
            Ok(TaskState { cursor: step + 1, current: StepState::default(), ..state })
        }
        Event::TaskFailed { step, .. } => {
            expect(&state, step, StepStatus::Pending)?;
            Ok(TaskState { status: TaskStatus::Failed, ..with_current(state, StepStatus::Failed) })
        }
        Event::TaskDone => match state.step() {
            Some(step) => Err(Illegal::StepsLeft(step)),
            None if state.is_completing() => {
                Ok(TaskState { status: TaskStatus::Done, ..with_current(state, StepStatus::Done) })
            }
            None => Ok(TaskState { status: TaskStatus::Done, ..state }),
        },
        Event::TaskRetried { step, forgiven } => retried(state, step, forgiven),
    }
}

fn started(state: TaskState, at: Option<u32>, attempt: u32) -> Result<TaskState, Illegal> {
    expect(&state, at, StepStatus::Pending)?;
    count(attempt, state.current.attempts.saturating_add(1))?;
    let current = StepState { status: StepStatus::Running, attempts: attempt, ..state.current };
    Ok(TaskState { status: TaskStatus::Running, current, ..state })
}

fn set_back(state: TaskState, at: Option<u32>) -> Result<TaskState, Illegal> {
    expect(&state, at, StepStatus::Running)?;
    Ok(with_current(state, StepStatus::Pending))
}

/// The last attempt counts as a start, and not against the limit.
fn uncounted(state: TaskState) -> TaskState {
    let forgiven = state.current.forgiven.saturating_add(1);
    TaskState { current: StepState { forgiven, ..state.current }, ..state }
}

fn retried(state: TaskState, at: Option<u32>, forgiven: u32) -> Result<TaskState, Illegal> {
    if state.status != TaskStatus::Failed {
        return Err(Illegal::WrongTaskStatus(state.status));
    }
    expect(&state, at, StepStatus::Failed)?;
    count(forgiven, state.current.attempts)?;
    let current = StepState { status: StepStatus::Pending, forgiven, ..state.current };
    Ok(TaskState { status: TaskStatus::Pending, current, ..state })
}

fn with_current(state: TaskState, status: StepStatus) -> TaskState {
    TaskState { current: StepState { status, ..state.current }, ..state }
}

fn expect(state: &TaskState, at: Option<u32>, status: StepStatus) -> Result<(), Illegal> {
    if at != state.step() {
        return Err(Illegal::OutOfOrder { at, due: state.step() });
    }
    if state.current.status != status {
        return Err(Illegal::WrongStatus { at, was: state.current.status });
    }
    Ok(())
}

fn count(counted: u32, expected: u32) -> Result<(), Illegal> {
    if counted == expected { Ok(()) } else { Err(Illegal::WrongCount { counted, expected }) }
}

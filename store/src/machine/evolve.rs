//! Events to states.

use crate::model::{
    Digest, Effect, Event, FailReason, Failure, Intent, StepState, StepStatus, TaskState, TaskStatus, Wait, Word,
};

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
    /// The class of the step is said to be another one than before, or its input may be doubled by another one.
    #[error("it sends what step {0} must not send")]
    WrongIntent(u32),
    /// The question that is said to be answered was not asked.
    #[error("step {0} did not ask that")]
    NotAsked(u32),
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
        Event::RunStarted { .. } if matches!(state.current.status, StepStatus::Running | StepStatus::InDoubt) => {
            Err(Illegal::WrongStatus { at: state.step(), was: state.current.status })
        }
        Event::RunStarted { .. } | Event::TaskRebound { .. } => Ok(state),
        Event::StepRecovered { step } => recovered(state, step),
        Event::CompletionRecovered => set_back(state, None),
        Event::StepError { step, ref failure } => erred(state, step, failure),
        Event::StepReleased { step, .. } => Ok(uncounted(set_back(state, Some(step))?)),
        Event::CompletionError { .. } => Ok(uncounted(set_back(state, None)?)),
        Event::StepStarted { step, attempt, intent, .. } => step_started(state, step, attempt, intent),
        Event::CompletionStarted { attempt } => started(state, None, attempt),
        Event::StepFinished { step, .. } => {
            expect(&state, Some(step), StepStatus::Running)?;
            Ok(past(state))
        }
        Event::StepSkipped { step } => {
            expect(&state, Some(step), StepStatus::Pending)?;
            count(state.current.attempts, 0)?;
            Ok(past(state))
        }
        Event::StepWaiting { step, wait, shown } => waits(state, step, wait, shown),
        Event::AnswerGiven { step, shown, .. } => {
            expect(&state, Some(step), StepStatus::Waiting)?;
            let asked = matches!(state.current.wait, Some(Wait::Approval { .. }));
            if !asked || shown != state.current.intent.map(|intent| intent.digest) {
                return Err(Illegal::NotAsked(step));
            }
            let current = StepState { answered: true, wait: None, ..state.current };
            Ok(with_current(TaskState { current, ..state }, StepStatus::Pending))
        }
        Event::StepInDoubt { step, .. } => in_doubt(state, step),
        Event::DoubtResolved { step, word, .. } => {
            expect(&state, Some(step), StepStatus::InDoubt)?;
            let unknown = word != Word::Absent;
            let state = with_current(
                TaskState { current: StepState { unknown, ..state.current }, ..state },
                StepStatus::Pending,
            );
            Ok(if word == Word::Happened { past(state) } else { state })
        }
        Event::StepCheckpoint { step, .. } => expect(&state, Some(step), StepStatus::Running).map(|()| state),
        Event::StepFailed { step, ref reason, .. } => Ok(past(failed(state, Some(step), reason)?)),
        Event::TaskFailed { step, ref reason, .. } => {
            Ok(TaskState { status: TaskStatus::Failed, ..failed(state, step, reason)? })
        }
        Event::TaskDone => match state.step() {
            Some(step) => Err(Illegal::StepsLeft(step)),
            None if state.is_completing() => {
                Ok(TaskState { status: TaskStatus::Done, ..with_current(state, StepStatus::Done) })
            }
            None => Ok(TaskState { status: TaskStatus::Done, ..state }),
        },
        Event::TaskCancelled { .. } if state.current.status == StepStatus::Running => {
            Err(Illegal::WrongStatus { at: state.step(), was: StepStatus::Running })
        }
        Event::TaskCancelled { .. } => Ok(TaskState { status: TaskStatus::Cancelled, ..state }),
        Event::TaskRetried { step, forgiven } => retried(state, step, forgiven),
    }
}

/// The state once the task is past the step at the cursor.
fn past(state: TaskState) -> TaskState {
    let status = at_rest(state.status);
    TaskState { status, cursor: state.cursor + 1, current: StepState::default(), ..state }
}

/// What becomes of a task whose step no longer waits nor is in doubt, and is not started yet.
fn at_rest(status: TaskStatus) -> TaskStatus {
    match status {
        TaskStatus::Waiting | TaskStatus::InDoubt => TaskStatus::Pending,
        status => status,
    }
}

fn recovered(state: TaskState, step: u32) -> Result<TaskState, Illegal> {
    let state = set_back(state, Some(step))?;
    if state.current.effect() == Effect::Once {
        return Err(Illegal::WrongIntent(step));
    }
    let unknown = state.current.unknown || state.current.effect() != Effect::Pure;
    Ok(TaskState { current: StepState { unknown, ..state.current }, ..state })
}

fn erred(state: TaskState, step: u32, failure: &Failure) -> Result<TaskState, Illegal> {
    let state = set_back(state, Some(step))?;
    let unknown = failure.unknown || (state.current.unknown && !failure.absent);
    let state = TaskState { current: StepState { unknown, ..state.current }, ..state };
    Ok(match failure.retry_at {
        Some(due) => wait_until_told(state, Wait::Until(due)),
        None => state,
    })
}

fn wait_until_told(state: TaskState, wait: Wait) -> TaskState {
    let current = StepState { status: StepStatus::Waiting, wait: Some(wait), ..state.current };
    TaskState { status: TaskStatus::Waiting, current, ..state }
}

fn waits(state: TaskState, step: u32, wait: Wait, shown: Option<Digest>) -> Result<TaskState, Illegal> {
    if state.step() != Some(step) || state.current.due().is_none() {
        expect(&state, Some(step), StepStatus::Pending)?;
    }
    let effect = state.current.effect();
    let intent = match shown {
        Some(_) if effect != Effect::Pure => return Err(Illegal::WrongIntent(step)),
        Some(digest) => Some(Intent { digest, effect }),
        None => state.current.intent,
    };
    let answered = state.current.answered && shown.is_none();
    Ok(wait_until_told(TaskState { current: StepState { intent, answered, ..state.current }, ..state }, wait))
}

fn in_doubt(state: TaskState, step: u32) -> Result<TaskState, Illegal> {
    // Before an attempt there is only doubt about the ones before it.
    let earlier = state.current.may_have_happened()
        && (state.current.status == StepStatus::Pending || state.current.due().is_some());
    if state.step() != Some(step) || !earlier {
        expect(&state, Some(step), StepStatus::Running)?;
    }
    let current = StepState { status: StepStatus::InDoubt, unknown: true, ..state.current };
    Ok(TaskState { status: TaskStatus::InDoubt, current, ..state })
}

/// What stands at the place has failed for good, instead of being started: a wait may have been before that.
fn failed(state: TaskState, at: Option<u32>, reason: &FailReason) -> Result<TaskState, Illegal> {
    let ends_a_wait = match state.current.wait {
        Some(Wait::Until(_)) => true,
        Some(Wait::Approval { expires }) => expires.is_some() && *reason == FailReason::Expired,
        _ => false,
    };
    let waits = state.current.status == StepStatus::Waiting;
    expect(&state, at, if waits && ends_a_wait { StepStatus::Waiting } else { StepStatus::Pending })?;
    Ok(with_current(state, StepStatus::Failed))
}

fn step_started(state: TaskState, step: u32, attempt: u32, intent: Option<Intent>) -> Result<TaskState, Illegal> {
    let mut current = state.current;
    if current.due().is_some() {
        current.status = StepStatus::Pending;
    }
    let same = current.intent.map(|first| first.digest) == intent.map(|now| now.digest);
    let doubled = current.may_have_happened() && (current.effect() == Effect::Once || !same);
    let unasked = current.answered && !same;
    if current.in_force(intent) != intent || doubled || unasked {
        return Err(Illegal::WrongIntent(step));
    }
    started(TaskState { current: StepState { intent, ..current }, ..state }, Some(step), attempt)
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
    let current = StepState { status: StepStatus::Pending, forgiven, wait: None, answered: false, ..state.current };
    Ok(TaskState { status: TaskStatus::Pending, current, ..state })
}

fn with_current(state: TaskState, status: StepStatus) -> TaskState {
    TaskState { status: at_rest(state.status), current: StepState { status, ..state.current }, ..state }
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

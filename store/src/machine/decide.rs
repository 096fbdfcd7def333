//! Commands to events.

use crate::model::{Event, FailReason, StepStatus, TaskState, TaskStatus};

/// What a run wants to do with a task.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Command {
    /// Begin a run: recover what a dead run left, then announce this one.
    Begin {
        /// The attempt limit of this run, for the journal.
        max_attempts: u32,
    },
    /// Start the step at the cursor, or fail the task where that step's attempts are used up.
    Start {
        /// The step.
        step: u32,
        /// The tool that it calls.
        tool: String,
        /// How many attempts a step may have.
        max_attempts: u32,
    },
    /// Record that the running step's tool succeeded.
    Finish {
        /// The step.
        step: u32,
        /// The tool that it called.
        tool: String,
    },
    /// Record that the running step's tool failed.
    Fail {
        /// The step.
        step: u32,
        /// What the tool said.
        error: String,
    },
    /// Record that no step is left.
    Complete,
    /// Give a failed task a fresh attempt budget.
    Retry,
}

/// Why a command is not legal in the present state. Nothing has happened.
#[derive(Clone, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Refused {
    /// The task is done or failed.
    #[error("the task is {0} already")]
    Over(TaskStatus),
    /// Only a failed task can be retried.
    #[error("the task is {0}, only a failed task can be retried")]
    NotFailed(TaskStatus),
    /// The command names a step that is not the one at the cursor.
    #[error("step {step} is not the next one, step {cursor} is")]
    NotNext {
        /// The step that was named.
        step: u32,
        /// The step that is next.
        cursor: u32,
    },
    /// The step has the wrong status for the command.
    #[error("step {step} is {status}")]
    WrongStatus {
        /// The step.
        step: u32,
        /// What it is.
        status: StepStatus,
    },
    /// The task cannot complete before its steps have.
    #[error("step {0} is not done yet")]
    StepsLeft(u32),
}

/// What a run has to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Next {
    /// Start this step.
    Step(u32),
    /// Complete the task.
    Complete,
    /// Nothing: the task is over.
    Over(TaskStatus),
}

/// What a run has to do next in this state.
#[must_use]
pub fn next(state: &TaskState) -> Next {
    match state.status {
        over @ (TaskStatus::Done | TaskStatus::Failed) => Next::Over(over),
        _ if state.all_done() => Next::Complete,
        _ => Next::Step(state.cursor),
    }
}

/// The events that `command` causes in `state`, to be committed together.
///
/// # Errors
/// The command is not legal in this state; nothing has happened.
pub fn decide(state: &TaskState, command: &Command) -> Result<Vec<Event>, Refused> {
    match command {
        Command::Retry => return retry(state),
        _ if state.status.is_over() => return Err(Refused::Over(state.status)),
        _ => {}
    }
    match command {
        Command::Begin { max_attempts } => Ok(begin(state, *max_attempts)),
        Command::Start { step, tool, max_attempts } => {
            expect(state, *step, StepStatus::Pending)?;
            Ok(vec![start(state, *step, tool, *max_attempts)])
        }
        Command::Finish { step, tool } => {
            expect(state, *step, StepStatus::Running)?;
            Ok(vec![Event::StepFinished { step: *step, tool: tool.clone() }])
        }
        Command::Fail { step, error } => {
            expect(state, *step, StepStatus::Running)?;
            Ok(vec![Event::StepError { step: *step, error: error.clone() }])
        }
        Command::Complete if state.all_done() => Ok(vec![Event::TaskDone]),
        Command::Complete => Err(Refused::StepsLeft(state.cursor)),
        Command::Retry => retry(state),
    }
}

/// Recovery is explicit: each step that a dead run left running is set back and says so, before the run that
/// found it says that it began. It is one decision, so it commits once or not at all.
fn begin(state: &TaskState, max_attempts: u32) -> Vec<Event> {
    let recovered: Vec<u32> = state.running().into_iter().collect();
    let mut events: Vec<Event> = recovered.iter().map(|&step| Event::StepRecovered { step }).collect();
    events.push(Event::RunStarted { recovered, max_attempts: Some(max_attempts) });
    events
}

/// The limit is judged here and nowhere else, so that an attempt that crashed and one that failed count alike.
fn start(state: &TaskState, step: u32, tool: &str, max_attempts: u32) -> Event {
    if state.current.attempts_charged() >= max_attempts {
        return Event::TaskFailed { step, reason: FailReason::MaxAttempts };
    }
    Event::StepStarted { step, tool: tool.to_owned(), attempt: state.current.attempts.saturating_add(1) }
}

fn retry(state: &TaskState) -> Result<Vec<Event>, Refused> {
    if state.status != TaskStatus::Failed {
        return Err(Refused::NotFailed(state.status));
    }
    expect(state, state.cursor, StepStatus::Failed)?;
    Ok(vec![Event::TaskRetried { step: state.cursor, forgiven: state.current.attempts }])
}

fn expect(state: &TaskState, step: u32, status: StepStatus) -> Result<(), Refused> {
    if state.all_done() || step != state.cursor {
        return Err(Refused::NotNext { step, cursor: state.cursor });
    }
    if state.current.status != status {
        return Err(Refused::WrongStatus { step, status: state.current.status });
    }
    Ok(())
}

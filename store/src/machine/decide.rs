//! Commands to events.

use super::evolve::place;
use crate::model::{Event, FailReason, StepStatus, TaskState, TaskStatus, Terms};

/// What a run wants to do with a task.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Command {
    /// Begin a run: recover what a dead run left, then announce this one.
    Begin(Terms),
    /// Start the step at the cursor, or fail the task where that step's attempts are used up.
    Start {
        /// The step.
        step: u32,
        /// The tool that it calls.
        tool: String,
        /// How much it may be tried.
        budget: Budget,
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
    /// Give the running attempt up, which has done nothing that would have to be found out about.
    Release {
        /// The step.
        step: u32,
        /// Why.
        reason: String,
    },
    /// Start the completion, or fail the task where its attempts are used up.
    StartCompletion(Budget),
    /// Record that the running completion failed.
    FailCompletion {
        /// What went wrong.
        error: String,
    },
    /// Record that no step is left, and that the completion has done its work where the task has one.
    Complete,
    /// Give a failed task a fresh attempt budget.
    Retry,
    /// Record where the task's files are now; see [`Event::TaskRebound`].
    Rebind {
        /// The new home.
        home: Option<String>,
        /// The new completion.
        completion: Option<String>,
    },
}

/// How much a step, or the completion, may be tried.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Budget {
    /// How many attempts there may be.
    pub max_attempts: u32,
    /// For the journal, where they are used up: what is known of each.
    pub known: Vec<String>,
}

impl Budget {
    /// A budget of which nothing more is known.
    #[must_use]
    pub fn of(max_attempts: u32) -> Self {
        Self { max_attempts, known: Vec::new() }
    }

    /// Whether no further attempt is allowed in this state. It is judged here and nowhere else, so that an attempt that
    /// crashed and one that failed count alike.
    #[must_use]
    pub fn is_used_up(&self, state: &TaskState) -> bool {
        state.current.attempts_charged() >= self.max_attempts
    }
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
    /// The command is about something that is not at the cursor.
    #[error("{} is not next, {} is", place(*.at), place(*.due))]
    NotNext {
        /// The step that was named; none for the completion.
        at: Option<u32>,
        /// The step that is next; none where it is the completion.
        due: Option<u32>,
    },
    /// What stands at the cursor has the wrong status for the command.
    #[error("{} is {status}", place(*.at))]
    WrongStatus {
        /// The step; none for the completion.
        at: Option<u32>,
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
    match (state.status, state.step()) {
        (over @ (TaskStatus::Done | TaskStatus::Failed), _) => Next::Over(over),
        (_, Some(step)) => Next::Step(step),
        (_, None) => Next::Complete,
    }
}

/// The events that `command` causes in `state`, to be committed together.
///
/// # Errors
/// The command is not legal in this state; nothing has happened.
pub fn decide(state: &TaskState, command: &Command) -> Result<Vec<Event>, Refused> {
    match command {
        Command::Retry => return retry(state),
        Command::Rebind { home, completion } => {
            return Ok(vec![Event::TaskRebound { home: home.clone(), completion: completion.clone() }]);
        }
        _ if state.status.is_over() => return Err(Refused::Over(state.status)),
        _ => {}
    }
    let event =
        match command {
            Command::Begin(terms) => return Ok(begin(state, terms)),
            Command::Start { step, tool, budget } => start(state, Some(*step), budget)?
                .map(|attempt| Event::StepStarted { step: *step, tool: tool.clone(), attempt }),
            Command::StartCompletion(budget) => {
                start(state, None, budget)?.map(|attempt| Event::CompletionStarted { attempt })
            }
            Command::Finish { step, tool } => {
                expect(state, Some(*step), StepStatus::Running)?;
                Ok(Event::StepFinished { step: *step, tool: tool.clone() })
            }
            Command::Fail { step, error } => {
                expect(state, Some(*step), StepStatus::Running)?;
                Ok(Event::StepError { step: *step, error: error.clone() })
            }
            Command::Release { step, reason } => {
                expect(state, Some(*step), StepStatus::Running)?;
                Ok(Event::StepReleased { step: *step, reason: reason.clone() })
            }
            Command::FailCompletion { error } => {
                expect(state, None, StepStatus::Running)?;
                Ok(Event::CompletionError { error: error.clone() })
            }
            Command::Complete => match state.step() {
                Some(step) => return Err(Refused::StepsLeft(step)),
                None => Ok(Event::TaskDone),
            },
            Command::Retry | Command::Rebind { .. } => unreachable!("answered above"),
        };
    Ok(vec![event.unwrap_or_else(|failed| failed)])
}

/// Recovery is explicit: what a dead run left running is set back and says so, before the run that found it says that
/// it began. It is one decision, so it commits once or not at all.
fn begin(state: &TaskState, terms: &Terms) -> Vec<Event> {
    let recovered: Vec<u32> = state.running().into_iter().collect();
    let mut events: Vec<Event> = recovered.iter().map(|&step| Event::StepRecovered { step }).collect();
    if state.is_completing() {
        events.push(Event::CompletionRecovered);
    }
    events.push(Event::RunStarted { recovered, terms: terms.clone() });
    events
}

/// The number of the attempt, or the event that there is none.
fn start(state: &TaskState, at: Option<u32>, budget: &Budget) -> Result<Result<u32, Event>, Refused> {
    expect(state, at, StepStatus::Pending)?;
    Ok(if budget.is_used_up(state) {
        Err(Event::TaskFailed { step: at, reason: FailReason::MaxAttempts, known: budget.known.clone() })
    } else {
        Ok(state.current.attempts.saturating_add(1))
    })
}

fn retry(state: &TaskState) -> Result<Vec<Event>, Refused> {
    if state.status != TaskStatus::Failed {
        return Err(Refused::NotFailed(state.status));
    }
    expect(state, state.step(), StepStatus::Failed)?;
    Ok(vec![Event::TaskRetried { step: state.step(), forgiven: state.current.attempts }])
}

fn expect(state: &TaskState, at: Option<u32>, status: StepStatus) -> Result<(), Refused> {
    if at != state.step() {
        return Err(Refused::NotNext { at, due: state.step() });
    }
    if state.current.status != status {
        return Err(Refused::WrongStatus { at, status: state.current.status });
    }
    Ok(())
}

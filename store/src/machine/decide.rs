//! Commands to events.

use super::evolve::place;
use crate::model::{
    Digest, Effect, Event, FailReason, Failure, Intent, StepState, StepStatus, TaskState, TaskStatus, Terms, Timestamp,
    Wait, Word,
};

/// What a run, or a person, wants to do with a task.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Command {
    /// Begin a run: recover what a dead run left, then announce this one. Where a person has to speak first, or nothing
    /// is due yet, no run begins, and nothing but the recovery is written.
    Begin(Terms),
    /// Start the step at the cursor, or fail it where its attempts are used up or its question has expired. Where an
    /// earlier attempt may have had its effect and this one could double it, the step is in doubt instead.
    Start {
        /// The step.
        step: u32,
        /// The tool that it calls.
        tool: String,
        /// How much it may be tried.
        budget: Budget,
        /// What the attempt would do, where the step has an effect or its input is rendered.
        intent: Option<Intent>,
    },
    /// Record that the running step's tool succeeded.
    Finish {
        /// The step.
        step: u32,
        /// The tool that it called.
        tool: String,
        /// Whether the effect was there already.
        adopted: bool,
    },
    /// Record that the running step's tool failed; its class decides what comes of that.
    Fail {
        /// The step.
        step: u32,
        /// What is known.
        failure: Failure,
        /// Whether the task goes on without the step where it has failed for good.
        goes_on: bool,
    },
    /// Give the running attempt up, which has done nothing that would have to be found out about.
    Release {
        /// The step.
        step: u32,
        /// Why.
        reason: String,
    },
    /// Record that nobody but a person can find out whether the running step's effect has happened.
    Doubt {
        /// The step.
        step: u32,
        /// What was seen.
        known: String,
    },
    /// Record how far the running attempt is.
    Checkpoint {
        /// The step.
        step: u32,
        /// What the next attempt is to know, as JSON.
        checkpoint: String,
    },
    /// Leave out a step that was never begun.
    Skip {
        /// The step.
        step: u32,
    },
    /// Have the step wait before it is started.
    Wait {
        /// The step.
        step: u32,
        /// For what.
        wait: Wait,
        /// The digest of what is shown to the person who is asked.
        shown: Option<Digest>,
    },
    /// Answer the question of the step that waits.
    Answer {
        /// The step.
        step: u32,
        /// The answer, as JSON; none where what was asked for is refused.
        answer: Option<String>,
        /// Who.
        by: String,
        /// Why.
        why: Option<String>,
        /// The digest of what was shown.
        shown: Option<Digest>,
        /// Whether the task goes on without the step where it is refused.
        goes_on: bool,
    },
    /// Say what happened of the step that is in doubt.
    Resolve {
        /// The step.
        step: u32,
        /// What is said.
        word: Word,
        /// Who.
        by: String,
        /// Why.
        why: Option<String>,
        /// Whether the task goes on without the step where it is abandoned.
        goes_on: bool,
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
    /// End the task; an attempt of a dead run is closed first.
    Cancel {
        /// Who.
        by: String,
        /// Why.
        why: Option<String>,
    },
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
    /// Whether the task goes on without the step where they are used up.
    pub goes_on: bool,
}

impl Budget {
    /// A budget of which nothing more is known.
    #[must_use]
    pub fn of(max_attempts: u32) -> Self {
        Self { max_attempts, ..Self::default() }
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
    /// The task is done, failed or cancelled.
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
    /// The step waits for its time, or for a person.
    #[error("step {0} waits, and what it waits for has not come")]
    NotDue(u32),
    /// The step waits, but not for an answer.
    #[error("step {0} has no question that could be answered")]
    NoQuestion(u32),
    /// Nobody answered in time.
    #[error("the question of step {0} has expired")]
    Expired(u32),
    /// What was shown to the person is not what the step would do now.
    #[error("the answer is for something else than what step {0} asks now")]
    OtherQuestion(u32),
    /// What was begun cannot be left out, nor can it wait before it begins.
    #[error("step {0} was begun already")]
    Begun(u32),
    /// The task cannot complete before its steps have.
    #[error("step {0} is not done yet")]
    StepsLeft(u32),
}

/// What a run has to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Next {
    /// Start this step.
    Step(u32),
    /// Wait until then.
    Until(Timestamp),
    /// Nothing before a person has spoken about this step: has answered its question, or has said what happened.
    Person(u32),
    /// Complete the task.
    Complete,
    /// Nothing: the task is over.
    Over(TaskStatus),
}

/// What a run has to do next in this state, at this time.
#[must_use]
pub fn next(state: &TaskState, now: Timestamp) -> Next {
    match (state.status, state.step()) {
        (over, _) if over.is_over() => Next::Over(over),
        (_, None) => Next::Complete,
        (_, Some(step)) => match (state.current.status, state.current.wait) {
            (StepStatus::InDoubt, _) => Next::Person(step),
            (StepStatus::Waiting, Some(Wait::Until(due))) if due > now => Next::Until(due),
            (StepStatus::Waiting, Some(Wait::Approval { expires })) if !has_come(expires, now) => Next::Person(step),
            _ => Next::Step(step),
        },
    }
}

fn has_come(time: Option<Timestamp>, now: Timestamp) -> bool {
    time.is_some_and(|time| time <= now)
}

/// The events that `command` causes in `state` at the time `now`, to be committed together.
///
/// # Errors
/// The command is not legal in this state; nothing has happened.
pub fn decide(state: &TaskState, command: &Command, now: Timestamp) -> Result<Vec<Event>, Refused> {
    match command {
        Command::Retry => return retry(state),
        Command::Rebind { home, completion } => {
            return Ok(vec![Event::TaskRebound { home: home.clone(), completion: completion.clone() }]);
        }
        _ if state.status.is_over() => return Err(Refused::Over(state.status)),
        _ => {}
    }
    let one = |event| Ok(vec![event]);
    match command.clone() {
        Command::Begin(terms) => Ok(begin(state, terms, now)),
        Command::Start { step, tool, budget, intent } => one(start(state, step, tool, budget, intent, now)?),
        Command::Finish { step, tool, adopted } => {
            one(in_attempt(state, Some(step), Event::StepFinished { step, tool, adopted })?)
        }
        Command::Fail { step, failure, goes_on } => fail(state, step, failure, goes_on),
        Command::Release { step, reason } => one(in_attempt(state, Some(step), Event::StepReleased { step, reason })?),
        Command::Doubt { step, known } => one(in_attempt(state, Some(step), Event::StepInDoubt { step, known })?),
        Command::Checkpoint { step, checkpoint } => {
            one(in_attempt(state, Some(step), Event::StepCheckpoint { step, checkpoint })?)
        }
        Command::Skip { step } => {
            expect(state, Some(step), StepStatus::Pending)?;
            if state.current.attempts > 0 { Err(Refused::Begun(step)) } else { one(Event::StepSkipped { step }) }
        }
        Command::Wait { step, wait, shown } => one(wait_for(state, step, wait, shown, now)?),
        Command::Answer { step, answer, by, why, shown, goes_on } => {
            check_question(state, step, shown, now)?;
            let rejected = answer.is_none();
            let answer = answer.unwrap_or_else(|| "false".to_owned());
            let given = Event::AnswerGiven { step, answer, rejected, by, why, shown };
            let end = rejected.then(|| failed(step, FailReason::Rejected, goes_on, Vec::new(), false));
            Ok([given].into_iter().chain(end).collect())
        }
        Command::Resolve { step, word, by, why, goes_on } => {
            expect(state, Some(step), StepStatus::InDoubt)?;
            let resolved = Event::DoubtResolved { step, word, by, why };
            let end = (word == Word::Abandon).then(|| failed(step, FailReason::Abandoned, goes_on, Vec::new(), true));
            Ok([resolved].into_iter().chain(end).collect())
        }
        Command::StartCompletion(budget) => one(start_completion(state, budget)?),
        Command::FailCompletion { error } => one(in_attempt(state, None, Event::CompletionError { error })?),
        Command::Complete => match state.step() {
            Some(step) => Err(Refused::StepsLeft(step)),
            None => one(Event::TaskDone),
        },
        Command::Cancel { by, why } => Ok(cancel(state, by, why)),
        Command::Retry | Command::Rebind { .. } => unreachable!("answered above"),
    }
}

/// Recovery is explicit: what a dead run left running is set back and says so, before the run that found it says that
/// it began. It is one decision, so it commits once or not at all.
fn begin(state: &TaskState, terms: Terms, now: Timestamp) -> Vec<Event> {
    let recovered: Vec<u32> = state.running().into_iter().collect();
    if let Some(&step) = recovered.first()
        && state.current.effect() == Effect::Once
    {
        return vec![interrupted(step)];
    }
    let mut events: Vec<Event> = recovered.iter().map(|&step| Event::StepRecovered { step }).collect();
    if state.is_completing() {
        events.push(Event::CompletionRecovered);
    }
    if !matches!(next(state, now), Next::Until(_) | Next::Person(_)) {
        events.push(Event::RunStarted { recovered, terms });
    }
    events
}

/// A person ends the task, and nobody will find out any more what an attempt that may have had its effect has done.
fn cancel(state: &TaskState, by: String, why: Option<String>) -> Vec<Event> {
    let closed = match state.running() {
        Some(step) if state.current.effect() == Effect::Pure => Some(Event::StepRecovered { step }),
        Some(step) => Some(interrupted(step)),
        None => state.is_completing().then_some(Event::CompletionRecovered),
    };
    closed.into_iter().chain([Event::TaskCancelled { by, why }]).collect()
}

fn interrupted(step: u32) -> Event {
    Event::StepInDoubt { step, known: "its process ended in the middle of the attempt".to_owned() }
}

fn start(
    state: &TaskState,
    step: u32,
    tool: String,
    budget: Budget,
    given: Option<Intent>,
    now: Timestamp,
) -> Result<Event, Refused> {
    let current = state.current;
    match (current.status, current.wait) {
        (StepStatus::Waiting, Some(Wait::Approval { expires })) if state.step() == Some(step) => {
            let expired =
                has_come(expires, now).then(|| failed(step, FailReason::Expired, budget.goes_on, vec![], false));
            return expired.ok_or(Refused::NotDue(step));
        }
        (StepStatus::Waiting, Some(Wait::Until(due))) if state.step() == Some(step) => {
            if due > now {
                return Err(Refused::NotDue(step));
            }
        }
        _ => expect(state, Some(step), StepStatus::Pending)?,
    }
    if current.answered && given.is_none_or(|given| !current.is_answered(given.digest)) {
        return Err(Refused::OtherQuestion(step));
    }
    if budget.is_used_up(state) {
        return Ok(failed(step, FailReason::MaxAttempts, budget.goes_on, budget.known, current.may_have_happened()));
    }
    if let Some(known) = doubt_before(&current, given) {
        return Ok(Event::StepInDoubt { step, known });
    }
    let intent = current.in_force(given);
    Ok(Event::StepStarted { step, tool, attempt: current.attempts.saturating_add(1), intent })
}

/// Why a further attempt could double an effect that an earlier one may have had; none where it could not.
fn doubt_before(current: &StepState, given: Option<Intent>) -> Option<String> {
    let first = current.intent.filter(|_| current.may_have_happened())?;
    if first.effect == Effect::Once {
        return Some("an earlier attempt may have had its effect, and a further one would have it again".to_owned());
    }
    let now = given.map(|given| given.digest);
    (now != Some(first.digest)).then(|| {
        let now = now.map_or_else(|| "nothing".to_owned(), |now| now.to_string());
        format!(
            "an earlier attempt may have had its effect with the input {}, and the input is {now} by now, which is not \
             sent (each by its SHA-256)",
            first.digest
        )
    })
}

/// A failure for good: of the task, or of the step alone.
fn failed(step: u32, reason: FailReason, goes_on: bool, known: Vec<String>, unknown: bool) -> Event {
    if goes_on {
        Event::StepFailed { step, reason, unknown }
    } else {
        Event::TaskFailed { step: Some(step), reason, known, unknown }
    }
}

/// The class decides: `once` is in doubt as soon as its effect may have happened. Of the others an error for good says
/// nothing where an effect may have happened, now or before: "it exists already" may be our own.
fn fail(state: &TaskState, step: u32, failure: Failure, goes_on: bool) -> Result<Vec<Event>, Refused> {
    expect(state, Some(step), StepStatus::Running)?;
    let effect = state.current.effect();
    let unknown = failure.unknown && effect != Effect::Pure;
    let earlier = state.current.may_have_happened() && !failure.absent;
    if (unknown && effect == Effect::Once) || (failure.permanent && (unknown || earlier)) {
        return Ok(vec![Event::StepInDoubt { step, known: failure.error }]);
    }
    let permanent = failure.permanent;
    let retry_at = failure.retry_at.filter(|_| !permanent);
    let error = Event::StepError { step, failure: Failure { unknown, retry_at, ..failure } };
    let end = permanent.then(|| failed(step, FailReason::Permanent, goes_on, Vec::new(), false));
    Ok([error].into_iter().chain(end).collect())
}

/// A wait comes before the first attempt. What was answered is not asked again, unless what is shown has changed: an
/// answer to one question does not answer another.
fn wait_for(state: &TaskState, step: u32, wait: Wait, shown: Option<Digest>, now: Timestamp) -> Result<Event, Refused> {
    let current = state.current;
    if state.step() != Some(step) || current.due().is_none_or(|due| due > now) {
        expect(state, Some(step), StepStatus::Pending)?;
    }
    let may = match (wait, shown) {
        (Wait::Until(_), None) => current.wait.is_none() && current.attempts_charged() == 0,
        (Wait::Approval { .. }, Some(shown)) => !current.is_answered(shown) && current.effect() == Effect::Pure,
        _ => return Err(Refused::NoQuestion(step)),
    };
    if may { Ok(Event::StepWaiting { step, wait, shown }) } else { Err(Refused::Begun(step)) }
}

fn check_question(state: &TaskState, step: u32, shown: Option<Digest>, now: Timestamp) -> Result<(), Refused> {
    expect(state, Some(step), StepStatus::Waiting)?;
    let Some(Wait::Approval { expires }) = state.current.wait else { return Err(Refused::NoQuestion(step)) };
    if has_come(expires, now) {
        return Err(Refused::Expired(step));
    }
    if shown != state.current.intent.map(|intent| intent.digest) {
        return Err(Refused::OtherQuestion(step));
    }
    Ok(())
}

fn start_completion(state: &TaskState, budget: Budget) -> Result<Event, Refused> {
    expect(state, None, StepStatus::Pending)?;
    Ok(if budget.is_used_up(state) {
        Event::TaskFailed { step: None, reason: FailReason::MaxAttempts, known: budget.known, unknown: false }
    } else {
        Event::CompletionStarted { attempt: state.current.attempts.saturating_add(1) }
    })
}

fn retry(state: &TaskState) -> Result<Vec<Event>, Refused> {
    if state.status != TaskStatus::Failed {
        return Err(Refused::NotFailed(state.status));
    }
    expect(state, state.step(), StepStatus::Failed)?;
    Ok(vec![Event::TaskRetried { step: state.step(), forgiven: state.current.attempts }])
}

/// What is recorded of an attempt is recorded while it is under way.
fn in_attempt(state: &TaskState, at: Option<u32>, event: Event) -> Result<Event, Refused> {
    expect(state, at, StepStatus::Running).map(|()| event)
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

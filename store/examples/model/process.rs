//! What a process does next, and what becomes of the world when it does.
//!
//! This is the agent's loop, one action for every moment at which it can be stopped or overtaken. What it decides and
//! what it writes is not modelled: `next`, `decide`, `evolve` and `Commit` are the shipped ones.

use std::fmt;

use store::machine::{Budget, Command, Illegal, Next, Refused, decide, next};
use store::model::{Event, Failure, RunId, StepStatus, TaskId, TaskState, TaskStatus, Terms, Timestamp};
use store::{Commit, Fence, FencingToken};

use crate::config::Config;
use crate::sabotage::{self, Planted};
use crate::state::{Guard, Runner, State};

pub(crate) const TOOL: &str = "tool";
pub(crate) const NOW: Timestamp = Timestamp::from_micros(0);

/// What a process was started for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Job {
    /// `agent run`
    Run,
    /// `agent retry`
    Retry,
}

/// Where a process stands: what it has done last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Pc {
    /// There is no process.
    Idle,
    /// It has looked at the task, without the lock.
    Looked(Job),
    /// It has the lock.
    Locked(Job),
    /// It has a new fencing token.
    Leased(Job),
    /// It has loaded the task's state.
    Loaded(Job),
    /// It has committed something and asks what is next.
    Ready,
    /// It has committed the start of an attempt.
    Started,
    /// The tool has done its effect.
    Sent,
    /// The tool has told its output.
    Answered,
    /// The tool has told an error.
    Erred,
    /// It was asked to stop before the effect.
    Stopped,
    /// It has nothing more to do.
    Leaving,
    /// Where only a planted bug gets.
    Planted(Planted),
}

/// One thing that happens: to one process, or to the world around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Action {
    /// The process, from 0.
    pub(crate) who: u8,
    /// What it does or what befalls it.
    pub(crate) what: What,
}

/// See [`Action`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum What {
    /// A process is started and looks at the task.
    Look,
    /// It finds the lock held and ends.
    TurnAway,
    /// It takes the lock.
    Lock,
    /// It takes a new fencing token.
    TakeToken,
    /// It loads the state.
    Load,
    /// It commits what is due.
    Commit,
    /// The tool does its effect.
    Send,
    /// The tool tells its output.
    Answer,
    /// It ends and frees the lock.
    Leave,
    /// Fault: the tool tells an error, with its effect done or not.
    Err,
    /// Fault: it is asked to stop before the effect.
    Stop,
    /// Fault: it is killed.
    Crash,
    /// Fault: the lock is freed under it.
    Expire,
}

/// Why a commit did not go through. The process ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The machine says that it is not legal.
    Machine(Refused),
    /// The machine decides what, by its own account, cannot happen.
    Illegal(Illegal),
    /// The token is old.
    Fenced,
    /// The rows are not as this process left them.
    Conflict,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Machine(why) => write!(f, "{why}"),
            Self::Illegal(why) => write!(f, "{why}"),
            Self::Fenced => f.write_str("its token is old"),
            Self::Conflict => f.write_str("the rows are not as it left them"),
        }
    }
}

/// What an action comes to.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    pub(crate) state: State,
    /// What was journaled.
    pub(crate) events: Vec<Event>,
    /// Why nothing was.
    pub(crate) refused: Option<Refusal>,
}

/// Everything that can happen in a state.
pub(crate) fn actions(config: &Config, state: &State, list: &mut Vec<Action>) {
    for who in 0..config.runners {
        let Runner { pc, .. } = state.runners[usize::from(who)];
        list.extend(progress(config, state, who).map(|what| Action { who, what }));
        // A process without a lock leaves nothing behind: its death is that of one that is turned away.
        let at_work = !matches!(pc, Pc::Idle | Pc::Looked(_));
        let faults = [
            (What::Err, state.left.errors > 0 && matches!(pc, Pc::Started | Pc::Sent)),
            (
                What::Stop,
                state.left.stops > 0 && pc == Pc::Started && state.runners[usize::from(who)].state.running().is_some(),
            ),
            (What::Crash, state.left.crashes > 0 && at_work),
            (What::Expire, state.left.expiries > 0 && state.lock == Some(who)),
        ];
        list.extend(faults.into_iter().filter(|fault| fault.1).map(|(what, _)| Action { who, what }));
    }
}

/// What a process does next where no fault befalls it. `None` where there is nothing for it to do.
pub(crate) fn progress(config: &Config, state: &State, who: u8) -> Option<What> {
    if let Some(what) = sabotage::progress(config, state, who) {
        return Some(what);
    }
    let runner = &state.runners[usize::from(who)];
    match runner.pc {
        Pc::Idle => match state.tables.task {
            TaskStatus::Pending | TaskStatus::Running => Some(What::Look),
            TaskStatus::Failed if state.left.retries > 0 => Some(What::Look),
            _ => None,
        },
        Pc::Looked(_) if state.lock.is_some() => Some(What::TurnAway),
        Pc::Looked(_) => Some(What::Lock),
        Pc::Locked(_) => Some(What::TakeToken),
        Pc::Leased(_) => Some(What::Load),
        Pc::Loaded(Job::Run) if runner.state.status.is_over() => Some(What::Leave),
        Pc::Ready if matches!(next(&runner.state, NOW), Next::Over(_)) => Some(What::Leave),
        Pc::Loaded(_) | Pc::Ready | Pc::Answered | Pc::Erred | Pc::Stopped => Some(What::Commit),
        Pc::Started => Some(What::Send),
        Pc::Sent => Some(What::Answer),
        Pc::Leaving => Some(What::Leave),
        Pc::Planted(_) => None,
    }
}

/// What becomes of the world.
pub(crate) fn act(config: &Config, before: &State, Action { who, what }: Action) -> Outcome {
    if let Some(outcome) = sabotage::act(config, before, who, what) {
        return outcome;
    }
    let mut state = *before;
    match (what, before.runners[usize::from(who)].pc) {
        (What::Look, _) => look(config, &mut state, who),
        (What::Lock, Pc::Looked(job)) => {
            state.lock = Some(who);
            state.runner(who).pc = Pc::Locked(job);
        }
        (What::TakeToken, Pc::Locked(job)) => {
            state.tables.fence += 1;
            state.runner(who).token = state.tables.fence;
            state.runner(who).pc = Pc::Leased(job);
        }
        (What::Load, Pc::Leased(job)) => {
            state.runner(who).state = state.tables.load();
            state.runner(who).pc = Pc::Loaded(job);
        }
        (What::Commit, pc) => return commit(config, state, who, pc),
        (What::Send, _) => {
            let TaskState { cursor, current, .. } = state.runner(who).state;
            send(config, &mut state, who, cursor, current.attempts);
            state.runner(who).pc = Pc::Sent;
        }
        (What::Answer, _) => state.runner(who).pc = Pc::Answered,
        (What::Err, _) => {
            state.left.errors -= 1;
            state.runner(who).pc = Pc::Erred;
        }
        (What::Stop, _) => {
            state.left.stops -= 1;
            state.runner(who).pc = Pc::Stopped;
        }
        (What::Crash, _) => {
            state.left.crashes -= 1;
            end(&mut state, who);
        }
        (What::Expire, _) => {
            state.left.expiries -= 1;
            state.lock = None;
            state.runner(who).expired = true;
        }
        (What::TurnAway | What::Leave | What::Lock | What::TakeToken | What::Load, _) => end(&mut state, who),
    }
    Outcome { state, events: Vec::new(), refused: None }
}

fn look(config: &Config, state: &mut State, who: u8) {
    let job = if state.tables.task == TaskStatus::Failed { Job::Retry } else { Job::Run };
    let seen = state.tables.load();
    let runner = state.runner(who);
    runner.pc = Pc::Looked(job);
    if sabotage::keeps_what_it_saw(config) {
        runner.state = seen;
    }
}

/// The process is gone, and with it its lock.
pub(crate) fn end(state: &mut State, who: u8) {
    if state.lock == Some(who) {
        state.lock = None;
    }
    *state.runner(who) = Runner::idle();
}

/// The effect of a step is done under the step's key, or that of the completion.
pub(crate) fn send(config: &Config, state: &mut State, who: u8, place: u32, attempt: u32) {
    let fenced = state.runner(who).token != state.tables.fence;
    state.history.reran |= !fenced && state.tables.place(place).status == StepStatus::Done;
    state.effects[place as usize].request(sabotage::key(config, attempt));
}

/// Decides and commits what is due at `pc`, as `TaskSession` does.
fn commit(config: &Config, mut state: State, who: u8, pc: Pc) -> Outcome {
    let before = state.runner(who).state;
    let (step, tool) = (before.cursor, TOOL.to_owned());
    let command = match pc {
        Pc::Loaded(Job::Run) => Command::Begin(Terms::limit(config.max_attempts)),
        Pc::Loaded(Job::Retry) => Command::Retry,
        Pc::Answered if before.is_completing() => Command::Complete,
        Pc::Answered => Command::Finish { step, tool, adopted: false },
        Pc::Erred if before.is_completing() => Command::FailCompletion { error: String::new() },
        Pc::Erred => Command::Fail { step, failure: Failure::plain(String::new()), goes_on: false },
        Pc::Stopped => Command::Release { step, reason: String::new() },
        _ if next(&before, NOW) != Next::Complete => {
            Command::Start { step, tool, budget: Budget::of(sabotage::limit(config)), intent: None }
        }
        _ if config.completion => Command::StartCompletion(Budget::of(sabotage::limit(config))),
        _ => Command::Complete,
    };
    let events = match decide(&before, &command, NOW) {
        Ok(events) => events,
        Err(why) => {
            state.history.beaten |= command == Command::Retry;
            end(&mut state, who);
            return Outcome { state, events: Vec::new(), refused: Some(Refusal::Machine(why)) };
        }
    };
    let mut outcome = write(config, state, who, events);
    if outcome.refused.is_none() {
        let state = &mut outcome.state;
        if command == Command::Retry {
            state.left.retries = state.left.retries.saturating_sub(1);
        }
        let runner = state.runner(who);
        runner.pc = match command {
            Command::Start { .. } | Command::StartCompletion(_) if !runner.state.status.is_over() => Pc::Started,
            Command::Retry | Command::Release { .. } | Command::FailCompletion { .. } => Pc::Leaving,
            _ => Pc::Ready,
        };
    }
    outcome
}

/// One transaction. A process that is refused ends.
pub(crate) fn write(config: &Config, mut state: State, who: u8, events: Vec<Event>) -> Outcome {
    let Runner { token, state: before, .. } = *state.runner(who);
    let guard = sabotage::guard(config, Guard { fence: true, rows: true }, &events);
    let rows = state.tables;
    let stored = match Commit::new(fence(token), NOW, before, events.clone(), None) {
        Ok(commit) => state.tables.apply(&commit, guard).map(|()| commit.next()),
        // The shipped session panics here, which the model takes for a claim that is broken and not for its own end.
        Err(illegal) => Err(Refusal::Illegal(illegal)),
    };
    match stored {
        Ok(after) => {
            let begins = matches!(events.last(), Some(Event::RunStarted { .. }));
            let changes = state.tables.places() != rows.places() || state.tables.task != rows.task || events.len() > 1;
            state.history.unstable |= begins && state.journal.just_begun && changes;
            state.history.trespassed |= token != state.tables.fence;
            for event in &events {
                state.journal.append(token, event);
            }
            state.runner(who).state = after;
            Outcome { state, events, refused: None }
        }
        Err(why) => {
            state.history.fenced |= why == Refusal::Fenced;
            state.history.disagreed |= matches!(why, Refusal::Illegal(_));
            end(&mut state, who);
            Outcome { state, events: Vec::new(), refused: Some(why) }
        }
    }
}

fn fence(token: u8) -> Fence {
    let task = TaskId::new("t").unwrap_or_else(|bad| unreachable!("{bad}"));
    Fence { task, run: RunId::from_stored(""), token: FencingToken(i64::from(token)) }
}

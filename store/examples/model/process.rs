//! What a process does next, and what becomes of the world when it does.
//!
//! This is the agent's loop, one action for every moment at which it can be stopped or overtaken. What it decides and
//! what it writes is not modelled: `next`, `decide`, `evolve` and `Commit` are the shipped ones.

use std::fmt;

use store::machine::{Command, Illegal, Next, Refused, decide, next};
use store::model::{Effect, Event, RunId, StepStatus, TaskId, TaskState, TaskStatus, Timestamp};
use store::{Commit, Fence, FencingToken};

use crate::command::command;
use crate::config::Config;
use crate::sabotage::{self, Planted};
use crate::state::{Guard, Runner, State};

pub(crate) const TOOL: &str = "tool";

/// What a process was started for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Job {
    /// `agent run`
    Run,
    /// `agent retry`
    Retry,
    /// `agent approve` or `agent resolve`, by somebody who looks what has happened and says so.
    Speak,
    /// `agent cancel`
    Cancel,
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
    /// The receiver says that the effect is there already.
    Adopts,
    /// The receiver does not know whether the effect has happened.
    Doubts,
    /// The receiver wants to be asked again later.
    Deferred,
    /// Nobody knows what has become of the effect.
    Lost,
    /// The receiver refuses for good.
    Refused,
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
    /// A person's command is started where a person has to speak.
    Speak,
    /// Fault: a person wants to end the task.
    Cancel,
    /// Fault: a run is started although a person has to speak first.
    Idle,
    /// Fault: a later plan and program are installed.
    Upgrade,
    /// Time passes.
    Tick,
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
    /// It asks the receiver whether the effect has happened.
    Probe,
    /// The tool does its effect.
    Send,
    /// The tool tells its output.
    Answer,
    /// It ends and frees the lock.
    Leave,
    /// Fault: the tool tells an error, with its effect done or not.
    Err,
    /// Fault: the receiver that it asks does not know.
    Blind,
    /// Fault: the reply, or the request, is lost.
    Lose,
    /// Fault: the receiver refuses for good.
    Refuse,
    /// Fault: the receiver wants to be asked again later.
    Defer,
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
        list.extend(progress(config, state, who).map(|what| Action { who, what }));
        list.extend(
            faults(config, state, who).into_iter().filter(|fault| fault.1).map(|(what, _)| Action { who, what }),
        );
    }
    let left = state.left;
    let world =
        [(What::Tick, state.promised > state.now), (What::Upgrade, left.upgrades > 0 && state.journal.starts[0] > 0)];
    list.extend(world.into_iter().filter(|event| event.1).map(|(what, _)| Action { who: 0, what }));
}

/// What can befall a process, and whether it can now.
fn faults(config: &Config, state: &State, who: u8) -> [(What, bool); 11] {
    let runner = &state.runners[usize::from(who)];
    let (pc, left) = (runner.pc, state.left);
    // A process without a lock leaves nothing behind: its death is that of one that is turned away.
    let at_work = !matches!(pc, Pc::Idle | Pc::Looked(_));
    let in_step = pc == Pc::Started && runner.state.running().is_some();
    let calls = in_step && config.effect.is_some() && !asks_first(runner);
    let task = state.tables.task;
    [
        (What::Err, left.errors > 0 && matches!(pc, Pc::Started | Pc::Sent)),
        (What::Stop, left.stops > 0 && (in_step || sabotage::stops_late(config, pc))),
        (What::Crash, left.crashes > 0 && at_work),
        (What::Expire, left.expiries > 0 && state.lock == Some(who)),
        (What::Lose, left.lost > 0 && config.effect.is_some() && (calls || pc == Pc::Sent)),
        (What::Refuse, left.refusals > 0 && calls),
        (What::Defer, left.deferrals > 0 && calls),
        (What::Blind, left.blinds > 0 && in_step && asks_first(runner)),
        (What::Cancel, left.cancels > 0 && pc == Pc::Idle && !task.is_over()),
        (What::Idle, left.idles > 0 && pc == Pc::Idle && needs_a_person(state)),
        (What::Upgrade, false),
    ]
}

/// Whether an attempt that has begun is to ask before it sends.
fn asks_first(runner: &Runner) -> bool {
    runner.state.current.asks_first() && !runner.absent
}

fn needs_a_person(state: &State) -> bool {
    matches!(next(&state.tables.load(), time(state.now)), Next::Person(_))
}

/// What a process does next where no fault befalls it. `None` where there is nothing for it to do.
pub(crate) fn progress(config: &Config, state: &State, who: u8) -> Option<What> {
    if let Some(what) = sabotage::progress(config, state, who) {
        return Some(what);
    }
    let runner = &state.runners[usize::from(who)];
    let due = next(&runner.state, time(state.now));
    match runner.pc {
        Pc::Idle if state.tables.task.is_over() => {
            (state.tables.task == TaskStatus::Failed && state.left.retries > 0).then_some(What::Look)
        }
        Pc::Idle => Some(if needs_a_person(state) { What::Speak } else { What::Look }),
        Pc::Looked(_) if state.lock.is_some() => Some(What::TurnAway),
        Pc::Looked(_) => Some(What::Lock),
        Pc::Locked(_) => Some(What::TakeToken),
        Pc::Leased(_) => Some(What::Load),
        Pc::Loaded(Job::Run) if runner.state.status.is_over() => Some(What::Leave),
        // It sleeps, with the lock.
        Pc::Loaded(Job::Run) | Pc::Ready if matches!(due, Next::Until(_)) => None,
        Pc::Ready if matches!(due, Next::Over(_) | Next::Person(_)) => Some(What::Leave),
        Pc::Started if asks_first(runner) => Some(What::Probe),
        Pc::Started => Some(What::Send),
        Pc::Sent => Some(What::Answer),
        Pc::Leaving => Some(What::Leave),
        Pc::Planted(_) => None,
        _ => Some(What::Commit),
    }
}

/// A moment, as the machine has it.
pub(crate) fn time(now: u8) -> Timestamp {
    Timestamp::from_micros(i64::from(now))
}

/// What becomes of the world.
pub(crate) fn act(config: &Config, before: &State, Action { who, what }: Action) -> Outcome {
    if let Some(outcome) = sabotage::act(config, before, who, what) {
        return outcome;
    }
    let mut state = *before;
    match (what, before.runners[usize::from(who)].pc) {
        (What::Look | What::Speak | What::Cancel | What::Idle, _) => look(config, &mut state, who, what),
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
        (What::Probe, _) => {
            let happened = state.effects[state.runner(who).state.cursor as usize].happened() > 0;
            let runner = state.runner(who);
            (runner.pc, runner.absent) = if happened { (Pc::Adopts, false) } else { (Pc::Started, true) };
        }
        (What::Commit, pc) => return commit(config, state, who, pc),
        (What::Send, _) => {
            let TaskState { cursor, current, .. } = state.runner(who).state;
            send(config, &mut state, who, cursor, current.attempts);
            state.runner(who).pc = Pc::Sent;
        }
        (What::Answer, _) => state.runner(who).pc = Pc::Answered,
        (What::TurnAway | What::Leave | What::Lock | What::TakeToken | What::Load, _) => end(&mut state, who),
        (befalls, _) => befall(&mut state, who, befalls),
    }
    Outcome { state, events: Vec::new(), refused: None }
}

/// What befalls a process, or the world.
fn befall(state: &mut State, who: u8, what: What) {
    match what {
        What::Tick => state.now += 1,
        What::Upgrade => {
            state.left.upgrades -= 1;
            state.version += 1;
        }
        What::Blind => {
            state.left.blinds -= 1;
            state.runner(who).pc = Pc::Doubts;
        }
        What::Lose => {
            state.left.lost -= 1;
            state.runner(who).pc = Pc::Lost;
        }
        What::Refuse => {
            state.left.refusals -= 1;
            state.runner(who).pc = Pc::Refused;
        }
        What::Defer => {
            state.left.deferrals -= 1;
            state.runner(who).pc = Pc::Deferred;
        }
        What::Err => {
            state.left.errors -= 1;
            state.runner(who).pc = Pc::Erred;
        }
        What::Stop => {
            state.left.stops -= 1;
            state.runner(who).pc = Pc::Stopped;
        }
        What::Crash => {
            state.left.crashes -= 1;
            end(state, who);
        }
        What::Expire => {
            state.left.expiries -= 1;
            state.lock = None;
            state.runner(who).expired = true;
        }
        honest => unreachable!("{honest:?} is what a process does"),
    }
}

fn look(config: &Config, state: &mut State, who: u8, what: What) {
    let job = match what {
        What::Speak => Job::Speak,
        What::Cancel => Job::Cancel,
        _ if state.tables.task == TaskStatus::Failed => Job::Retry,
        _ => Job::Run,
    };
    state.left.cancels -= u8::from(what == What::Cancel);
    state.left.idles -= u8::from(what == What::Idle);
    let (seen, version) = (state.tables.load(), state.version);
    let runner = state.runner(who);
    (runner.pc, runner.version) = (Pc::Looked(job), version);
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

/// The effect of a step is done under the step's key, or that of the completion; where the class knows no keys, anew.
pub(crate) fn send(config: &Config, state: &mut State, who: u8, place: u32, attempt: u32) {
    let Runner { token, version, .. } = *state.runner(who);
    let fenced = token != state.tables.fence;
    state.history.reran |= !fenced && state.tables.place(place).status == StepStatus::Done;
    state.history.early |= state.now < state.promised;
    state.history.misused |= config.asks && state.journal.answer_for != Some(version);
    let keyless = matches!(config.effect, Some(Effect::Verifiable | Effect::Once));
    let key = if keyless { attempt } else { sabotage::key(config, attempt) };
    let doubled = state.effects[place as usize].request(key, version);
    state.history.doubled |= doubled && config.effect != Some(Effect::Pure);
}

/// Decides and commits what is due at `pc`, as `TaskSession` does.
fn commit(config: &Config, mut state: State, who: u8, pc: Pc) -> Outcome {
    let before = state.runner(who).state;
    let command = command(config, &state, who, pc);
    let events = match decide(&before, &command, time(state.now)) {
        Ok(events) => events,
        Err(why) => {
            let by_hand = matches!(command, Command::Retry | Command::Answer { .. } | Command::Resolve { .. });
            state.history.beaten |= by_hand;
            end(&mut state, who);
            return Outcome { state, events: Vec::new(), refused: Some(Refusal::Machine(why)) };
        }
    };
    let mut outcome = write(config, state, who, events);
    if outcome.refused.is_none() {
        let state = &mut outcome.state;
        if pc == Pc::Deferred {
            state.promised = state.now + 1;
        }
        state.history.resolved |= matches!(command, Command::Resolve { .. });
        state.history.asked_anew |= matches!(command, Command::Wait { .. }) && before.current.wait.is_some();
        if command == Command::Retry {
            state.left.retries = state.left.retries.saturating_sub(1);
        }
        let runner = state.runner(who);
        runner.absent = false;
        runner.pc = match command {
            Command::Start { .. } | Command::StartCompletion(_)
                if runner.state.current.status == StepStatus::Running =>
            {
                Pc::Started
            }
            Command::Retry
            | Command::Release { .. }
            | Command::FailCompletion { .. }
            | Command::Answer { .. }
            | Command::Resolve { .. }
            | Command::Cancel { .. } => Pc::Leaving,
            _ => Pc::Ready,
        };
    }
    outcome
}

/// One transaction. A process that is refused ends.
pub(crate) fn write(config: &Config, mut state: State, who: u8, events: Vec<Event>) -> Outcome {
    let Runner { token, state: before, .. } = *state.runner(who);
    if events.is_empty() {
        return Outcome { state, events, refused: None };
    }
    let guard = sabotage::guard(config, Guard { fence: true, rows: true }, &events);
    let rows = state.tables;
    let stored = match Commit::new(fence(token), time(state.now), before, events.clone(), None) {
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
                conceals(config, &mut state, event);
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

/// Whether a failure for good says nothing of an effect that has happened.
fn conceals(config: &Config, state: &mut State, event: &Event) {
    if let Event::TaskFailed { step: Some(step), unknown, .. } = *event
        && config.effect != Some(Effect::Pure)
        && config.effect.is_some()
    {
        let happened = state.effects[step as usize].happened() > 0;
        state.history.concealed |= happened && !unknown;
        state.history.admitted |= happened && unknown;
    }
}

fn fence(token: u8) -> Fence {
    let task = TaskId::new("t").unwrap_or_else(|bad| unreachable!("{bad}"));
    Fence { task, run: RunId::from_stored(""), token: FencingToken(i64::from(token)) }
}

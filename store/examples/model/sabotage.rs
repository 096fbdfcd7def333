//! The planted bugs: each takes the place of one honest action, or bends one value that the honest one uses.

use store::machine::{Next, next};
use store::model::{Effect, Event, FailReason, Failure, Intent, StepState, StepStatus, TaskState, TaskStatus, Terms};

use crate::bug::Bug;
use crate::command::rendered;
use crate::config::Config;
use crate::process::{Job, Outcome, Pc, Refusal, TOOL, What, end, send, time, write};
use crate::state::{Guard, State, Tables};

/// Where only a process with a bug gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Planted {
    /// The step is committed as done, its effect is still to be done.
    Owes(u32),
    /// The effect is done, its attempt is still to be committed.
    Ahead,
    /// The effect of this finished step is to be sent again.
    Replays(u32),
    /// The recovery of this step is committed, `run_started` is not.
    Recovered(u32),
    /// The row of the start is committed, its event is not.
    Unjournaled,
    /// The completion's effect is done, and nothing says that it was begun.
    Completed,
    /// It waits for a time that nobody else knows.
    Sleeps,
}

/// What a process does next because of the bug; `None` where that is what an honest one does.
pub(crate) fn progress(config: &Config, state: &State, who: u8) -> Option<What> {
    let bug = config.bug?;
    let runner = &state.runners[usize::from(who)];
    let completes = next(&runner.state, time(state.now)) == Next::Complete && runner.state.current.attempts == 0;
    match (bug, runner.pc) {
        (Bug::NoLock, Pc::Looked(_)) => Some(What::Lock),
        (Bug::DoneTwice, Pc::Loaded(Job::Run)) if runner.state.status == TaskStatus::Done => Some(What::Commit),
        (Bug::RecoveryBeforeLock, Pc::Looked(Job::Run)) if runner.state.running().is_some() => Some(What::Commit),
        (Bug::DoneBeforeEffect, Pc::Started) if runner.state.running().is_some() => Some(What::Commit),
        (Bug::CompletionUnrecorded, Pc::Ready) if completes => Some(What::Send),
        (Bug::EffectBeforeStart, Pc::Ready) if matches!(next(&runner.state, time(state.now)), Next::Step(_)) => {
            Some(What::Send)
        }
        (Bug::SendsUnasked, Pc::Started) => Some(What::Send),
        (Bug::DueInMemory, Pc::Planted(Planted::Sleeps)) => (state.now >= state.promised).then_some(What::Commit),
        (_, Pc::Planted(Planted::Owes(_) | Planted::Replays(_))) => Some(What::Send),
        (_, Pc::Planted(_)) => Some(What::Commit),
        _ => None,
    }
}

/// What the bug makes of an action; `None` where that is what it honestly comes to.
pub(crate) fn act(config: &Config, before: &State, who: u8, what: What) -> Option<Outcome> {
    let bug = config.bug?;
    let mut state = *before;
    let mine = *state.runner(who);
    let step = mine.state.cursor;
    match (bug, what, mine.pc) {
        (Bug::NoRecovery, What::Commit, Pc::Loaded(Job::Run)) if mine.state.running().is_some() => {
            let event = Event::RunStarted { recovered: Vec::new(), terms: Terms::default() };
            Some(commit(config, state, who, Pc::Ready, vec![event]))
        }
        (Bug::RecoveryBeforeLock, What::Commit, Pc::Looked(_)) => {
            Some(raw(state, who, mine.pc, vec![Event::StepRecovered { step }], |rows| {
                rows.place(step).status = StepStatus::Pending;
            }))
        }
        (Bug::RecoveryApart, What::Commit, Pc::Loaded(Job::Run)) if mine.state.running().is_some() => {
            Some(commit(config, state, who, Pc::Planted(Planted::Recovered(step)), vec![Event::StepRecovered { step }]))
        }
        (_, What::Commit, Pc::Planted(Planted::Recovered(step))) => {
            let event = Event::RunStarted { recovered: vec![step], terms: Terms::default() };
            Some(commit(config, state, who, Pc::Ready, vec![event]))
        }
        (Bug::LoadBeforeLock, What::Load, Pc::Leased(job)) => Some(silent(state, who, Pc::Loaded(job))),
        (Bug::BlindRetry, What::Load, Pc::Leased(Job::Retry)) => Some(silent(state, who, Pc::Loaded(Job::Retry))),
        (Bug::DoneBeforeEffect, What::Commit, Pc::Started) if mine.state.running().is_some() => {
            let event = Event::StepFinished { step, tool: TOOL.to_owned(), adopted: false };
            Some(commit(config, state, who, Pc::Planted(Planted::Owes(step)), vec![event]))
        }
        (_, What::Send, Pc::Planted(Planted::Owes(step))) => {
            send(config, &mut state, who, step, 0);
            Some(silent(state, who, Pc::Ready))
        }
        (Bug::EffectBeforeStart, What::Send, Pc::Ready) => {
            send(config, &mut state, who, step, 0);
            Some(silent(state, who, Pc::Planted(Planted::Ahead)))
        }
        (_, What::Commit, Pc::Planted(Planted::Ahead)) => {
            Some(commit(config, state, who, Pc::Answered, vec![started(step, mine.state.current)]))
        }
        (Bug::CompletionUnrecorded, What::Send, Pc::Ready) => {
            send(config, &mut state, who, step, 0);
            Some(silent(state, who, Pc::Planted(Planted::Completed)))
        }
        (_, What::Commit, Pc::Planted(Planted::Completed)) => {
            Some(commit(config, state, who, Pc::Ready, vec![Event::TaskDone]))
        }
        (Bug::RerunDone, What::Commit, Pc::Loaded(Job::Run)) if step > 0 => {
            Some(commit(config, state, who, Pc::Planted(Planted::Replays(0)), begun(mine.state)))
        }
        (_, What::Send, Pc::Planted(Planted::Replays(again))) => {
            send(config, &mut state, who, again, 0);
            let rest = if again + 1 < step { Pc::Planted(Planted::Replays(again + 1)) } else { Pc::Ready };
            Some(silent(state, who, rest))
        }
        _ => act_on_recovery(bug, state, who, what)
            .or_else(|| act_on_rows(config, bug, state, who, what))
            .or_else(|| act_on_effects(config, bug, state, who, what)),
    }
}

/// The bugs of a run that begins, and of a retry.
fn act_on_recovery(bug: Bug, mut state: State, who: u8, what: What) -> Option<Outcome> {
    let mine = *state.runner(who);
    let (step, current) = (mine.state.cursor, mine.state.current);
    let run_started = |recovered: Vec<u32>| Event::RunStarted { recovered, terms: Terms::default() };
    let is_begun = what == What::Commit && mine.pc == Pc::Loaded(Job::Run);
    match bug {
        Bug::SilentRecovery if is_begun && mine.state.running().is_some() => {
            Some(raw(state, who, Pc::Ready, vec![run_started(Vec::new())], |rows| {
                rows.place(step).status = StepStatus::Pending;
            }))
        }
        Bug::IdleRecovery if is_begun && mine.state.running().is_none() && mine.state.step().is_some() => {
            Some(raw(state, who, Pc::Ready, vec![Event::StepRecovered { step }, run_started(vec![step])], |_| {}))
        }
        Bug::Restarts if is_begun && mine.state.running().is_none() && step > 0 => {
            Some(raw(state, who, Pc::Ready, vec![run_started(Vec::new())], |rows| {
                (0..=step).for_each(|place| *rows.place(place) = StepState::default());
            }))
        }
        Bug::DoneTwice if is_begun && mine.state.status == TaskStatus::Done => {
            Some(raw(state, who, Pc::Leaving, vec![Event::TaskDone], |_| {}))
        }
        Bug::RetryShort if what == What::Commit && mine.pc == Pc::Loaded(Job::Retry) => {
            if mine.state.status != TaskStatus::Failed {
                return None;
            }
            let forgiven = current.attempts - 1;
            state.left.retries = state.left.retries.saturating_sub(1);
            Some(raw(state, who, Pc::Leaving, vec![Event::TaskRetried { step: mine.state.step(), forgiven }], |rows| {
                *rows.place(step) = StepState { status: StepStatus::Pending, forgiven, ..current };
                rows.task = TaskStatus::Pending;
            }))
        }
        _ => None,
    }
}

/// The bugs that write something else than the machine says.
fn act_on_rows(config: &Config, bug: Bug, mut state: State, who: u8, what: What) -> Option<Outcome> {
    let mine = *state.runner(who);
    let (step, current) = (mine.state.cursor, mine.state.current);
    let starts = mine.pc == Pc::Ready && matches!(next(&mine.state, time(state.now)), Next::Step(_));
    match (bug, what, mine.pc) {
        (Bug::ErrorsOnlyCounted, What::Commit, Pc::Ready)
            if starts && current.attempts_charged() < config.max_attempts =>
        {
            Some(raw(state, who, Pc::Started, vec![started(step, current)], |rows| {
                rows.place(step).status = StepStatus::Running;
                rows.task = TaskStatus::Running;
            }))
        }
        (Bug::ErrorsOnlyCounted, What::Commit, Pc::Erred) => Some(raw(
            state,
            who,
            Pc::Ready,
            vec![Event::StepError { step, failure: Failure::plain(String::new()) }],
            |rows| {
                *rows.place(step) =
                    StepState { status: StepStatus::Pending, attempts: current.attempts + 1, ..current };
            },
        )),
        (Bug::BeginCounted, What::Commit, Pc::Loaded(Job::Run)) => {
            state.history.unstable |= state.journal.just_begun && !mine.state.no_step_left();
            Some(raw(state, who, Pc::Ready, begun(mine.state), |rows| {
                if !mine.state.no_step_left() {
                    let attempts = current.attempts + 1;
                    *rows.place(step) = StepState { status: StepStatus::Pending, attempts, ..current };
                }
            }))
        }
        (Bug::ReleasedCounted, What::Commit, Pc::Stopped) => {
            let event = Event::StepReleased { step, reason: String::new() };
            Some(raw(state, who, Pc::Leaving, vec![event], |rows| rows.place(step).status = StepStatus::Pending))
        }
        (Bug::FailEarly, What::Commit, Pc::Erred) if mine.state.running().is_some() => {
            let reason = FailReason::MaxAttempts;
            let events = vec![
                Event::StepError { step, failure: Failure::plain(String::new()) },
                Event::TaskFailed { step: Some(step), reason, known: Vec::new(), unknown: false },
            ];
            Some(commit(config, state, who, Pc::Ready, events))
        }
        (Bug::CompleteEarly, What::Commit, Pc::Ready) if starts && step > 0 => {
            Some(raw(state, who, Pc::Ready, vec![Event::TaskDone], |rows| rows.task = TaskStatus::Done))
        }
        (Bug::JournalApart, What::Commit, Pc::Ready) if starts && current.attempts_charged() < config.max_attempts => {
            Some(raw(state, who, Pc::Planted(Planted::Unjournaled), Vec::new(), |rows| {
                let attempts = current.attempts + 1;
                *rows.place(step) = StepState { status: StepStatus::Running, attempts, ..current };
                rows.task = TaskStatus::Running;
            }))
        }
        (_, What::Commit, Pc::Planted(Planted::Unjournaled)) => {
            let event = Event::StepStarted { step, tool: TOOL.to_owned(), attempt: current.attempts, intent: None };
            Some(raw(state, who, Pc::Started, vec![event], |_| {}))
        }
        _ => None,
    }
}

/// The bugs about classes, doubts, questions and due times.
fn act_on_effects(config: &Config, bug: Bug, mut state: State, who: u8, what: What) -> Option<Outcome> {
    let mine = *state.runner(who);
    let (step, current) = (mine.state.cursor, mine.state.current);
    let waits = matches!(next(&mine.state, time(state.now)), Next::Person(_));
    match (bug, what, mine.pc) {
        (Bug::UnknownForAbsent, What::Blind, _) => {
            state.left.blinds -= 1;
            state.runner(who).absent = true;
            Some(silent(state, who, Pc::Started))
        }
        (Bug::DueInMemory, What::Commit, Pc::Deferred) => {
            let failure = Failure::plain(String::new());
            state.promised = state.now + 1;
            let events = vec![Event::StepError { step, failure }];
            Some(commit(config, state, who, Pc::Planted(Planted::Sleeps), events))
        }
        (Bug::DueInMemory, What::Commit, Pc::Planted(Planted::Sleeps)) => Some(silent(state, who, Pc::Ready)),
        (Bug::ClassReplaced, What::Commit, Pc::Ready)
            if mine.version > 0 && current.intent.is_some() && current.status == StepStatus::Pending =>
        {
            let intent = Some(Intent { digest: rendered(mine.version), effect: Effect::Pure });
            let attempt = current.attempts + 1;
            let event = Event::StepStarted { step, tool: TOOL.to_owned(), attempt, intent };
            Some(raw(state, who, Pc::Started, vec![event], |rows| {
                *rows.place(step) = StepState { status: StepStatus::Running, attempts: attempt, intent, ..current };
                rows.task = TaskStatus::Running;
            }))
        }
        (Bug::AnnouncesInVain, What::Commit, Pc::Loaded(Job::Run)) if waits => {
            let event = Event::RunStarted { recovered: Vec::new(), terms: Terms::default() };
            Some(raw(state, who, Pc::Leaving, vec![event], |_| {}))
        }
        (Bug::AnsweredTwice, What::Load, Pc::Leased(Job::Speak)) => Some(silent(state, who, Pc::Loaded(Job::Speak))),
        (Bug::CancelLeavesOpen, What::Commit, Pc::Loaded(Job::Cancel)) if mine.state.running().is_some() => {
            let event = Event::TaskCancelled { by: String::new(), why: None };
            Some(raw(state, who, Pc::Leaving, vec![event], |rows| rows.task = TaskStatus::Cancelled))
        }
        _ => None,
    }
}

/// What an attempt says that it does.
pub(crate) fn intent(config: &Config, current: &StepState, honest: Intent) -> Intent {
    let held = current.intent.unwrap_or(honest);
    match config.bug {
        Some(Bug::OnceAsKeyed) => Intent { effect: Effect::Keyed, ..honest },
        Some(Bug::DigestNotCompared) if current.unknown => Intent { digest: held.digest, ..honest },
        Some(Bug::AnswerBoundToNothing) if current.answered => Intent { digest: held.digest, ..honest },
        _ => honest,
    }
}

/// Whether the process says that no earlier attempt had its effect.
pub(crate) fn absent(config: &Config, honest: bool) -> bool {
    honest || config.has(Bug::ExistsIsFailure)
}

/// What is said of a failed attempt.
pub(crate) fn failure(config: &Config, honest: Failure) -> Failure {
    let unknown = honest.unknown && !config.has(Bug::LostIsNothing);
    Failure { unknown, ..honest }
}

/// Whether an attempt is given up in order although its effect may have happened.
pub(crate) fn stops_late(config: &Config, pc: Pc) -> bool {
    config.has(Bug::ReleasedLate) && pc == Pc::Sent
}

/// The attempt limit that a run goes by.
pub(crate) fn limit(config: &Config) -> u32 {
    match config.bug {
        Some(Bug::LimitOneMore) => config.max_attempts + 1,
        Some(Bug::LimitOneLess) => config.max_attempts - 1,
        _ => config.max_attempts,
    }
}

/// The key of an attempt's effect, as the receiver's bit.
pub(crate) fn key(config: &Config, attempt: u32) -> u32 {
    if config.has(Bug::KeyPerAttempt) { attempt } else { 0 }
}

/// What the store asks before it writes.
pub(crate) fn guard(config: &Config, honest: Guard, events: &[Event]) -> Guard {
    let retries = matches!(events, [Event::TaskRetried { .. }]);
    let answers = matches!(events, [Event::AnswerGiven { .. }]);
    let blind = (config.has(Bug::BlindRetry) && retries) || (config.has(Bug::AnsweredTwice) && answers);
    Guard { fence: honest.fence && !config.has(Bug::UnfencedCommit), rows: honest.rows && !blind }
}

/// Whether a process remembers what it saw before it had the lock.
pub(crate) fn keeps_what_it_saw(config: &Config) -> bool {
    [Bug::LoadBeforeLock, Bug::BlindRetry, Bug::RecoveryBeforeLock, Bug::AnsweredTwice]
        .iter()
        .any(|&bug| config.has(bug))
}

fn started(step: u32, current: StepState) -> Event {
    Event::StepStarted { step, tool: TOOL.to_owned(), attempt: current.attempts + 1, intent: None }
}

/// What an honest run begins with.
fn begun(state: TaskState) -> Vec<Event> {
    let recovered: Vec<u32> = state.running().into_iter().collect();
    let mut events: Vec<Event> = recovered.iter().map(|&step| Event::StepRecovered { step }).collect();
    if state.is_completing() {
        events.push(Event::CompletionRecovered);
    }
    events.push(Event::RunStarted { recovered, terms: Terms::default() });
    events
}

/// Nothing is written.
fn silent(mut state: State, who: u8, pc: Pc) -> Outcome {
    state.runner(who).pc = pc;
    Outcome { state, events: Vec::new(), refused: None }
}

/// Through the store, past `decide`.
fn commit(config: &Config, state: State, who: u8, pc: Pc, events: Vec<Event>) -> Outcome {
    let mut outcome = write(config, state, who, events);
    if outcome.refused.is_none() {
        outcome.state.runner(who).pc = pc;
    }
    outcome
}

/// Past `decide`, `evolve` and the rows that must be there; the token is asked of whoever has one.
fn raw(mut state: State, who: u8, pc: Pc, events: Vec<Event>, edit: impl FnOnce(&mut Tables)) -> Outcome {
    let token = state.runner(who).token;
    if token != 0 && token != state.tables.fence {
        state.history.fenced = true;
        end(&mut state, who);
        return Outcome { state, events: Vec::new(), refused: Some(Refusal::Fenced) };
    }
    edit(&mut state.tables);
    state.history.trespassed |= token != state.tables.fence;
    for event in &events {
        state.journal.append(token, event);
    }
    let after = state.tables.load();
    let runner = state.runner(who);
    runner.state = after;
    runner.pc = pc;
    Outcome { state, events, refused: None }
}

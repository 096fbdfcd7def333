//! What a process, or a person, wants to be written: the agent's loop and its commands, as far as they decide anything.

use store::machine::{Budget, Command, Next, next};
use store::model::{Digest, Effect, Failure, Intent, StepStatus, TaskState, Terms, Wait, Word};

use crate::config::Config;
use crate::process::{Job, Pc, TOOL, time};
use crate::sabotage;
use crate::state::{Runner, State};

/// The digest of what a version renders.
pub(crate) fn rendered(version: u8) -> Digest {
    Digest([version; 32])
}

/// What an attempt is said to do: the first version names the class, a later one another.
fn intent(config: &Config, runner: &Runner) -> Option<Intent> {
    let first = config.effect?;
    let effect = if runner.version == 0 { first } else { Effect::Pure };
    let honest = Intent { digest: rendered(runner.version), effect };
    Some(sabotage::intent(config, &runner.state.current, honest))
}

/// What the process wants to be written at `pc`.
pub(crate) fn command(config: &Config, state: &State, who: u8, pc: Pc) -> Command {
    let runner = &state.runners[usize::from(who)];
    let before = runner.state;
    let (step, tool) = (before.cursor, TOOL.to_owned());
    match pc {
        Pc::Loaded(Job::Run) => Command::Begin(Terms::limit(config.max_attempts)),
        Pc::Loaded(Job::Retry) => Command::Retry,
        Pc::Loaded(Job::Cancel) => Command::Cancel { by: String::new(), why: None },
        Pc::Loaded(Job::Speak) => word(state, before),
        Pc::Answered if before.is_completing() => Command::Complete,
        Pc::Answered => Command::Finish { step, tool, adopted: false },
        Pc::Adopts => Command::Finish { step, tool, adopted: true },
        Pc::Doubts => Command::Doubt { step, known: String::new() },
        Pc::Erred if before.is_completing() => Command::FailCompletion { error: String::new() },
        Pc::Erred | Pc::Lost | Pc::Refused | Pc::Deferred => {
            let failure = Failure {
                unknown: pc == Pc::Lost,
                permanent: pc == Pc::Refused,
                absent: sabotage::absent(config, runner.absent),
                retry_at: (pc == Pc::Deferred).then(|| time(state.now + 1)),
                ..Failure::default()
            };
            Command::Fail { step, failure: sabotage::failure(config, failure), goes_on: false }
        }
        Pc::Stopped => Command::Release { step, reason: String::new() },
        _ => match next(&before, time(state.now)) {
            Next::Complete if config.completion => Command::StartCompletion(Budget::of(sabotage::limit(config))),
            Next::Complete => Command::Complete,
            _ => start(config, runner),
        },
    }
}

/// A question comes before the first attempt, and again where what is shown has changed since it was answered.
fn start(config: &Config, runner: &Runner) -> Command {
    let (step, intent) = (runner.state.cursor, intent(config, runner));
    let shown = intent.map(|intent| intent.digest);
    let unasked = shown.is_none_or(|shown| !runner.state.current.is_answered(shown));
    if config.asks && unasked {
        return Command::Wait { step, wait: Wait::Approval { expires: None }, shown };
    }
    Command::Start { step, tool: TOOL.to_owned(), budget: Budget::of(sabotage::limit(config)), intent }
}

/// Whoever resolves a doubt has looked, and nobody sends any more: they hold the lock.
fn word(state: &State, before: TaskState) -> Command {
    let (step, by, why) = (before.cursor, String::new(), None);
    if before.current.status == StepStatus::InDoubt {
        let happened = state.effects[step as usize].happened() > 0;
        let word = if happened { Word::Happened } else { Word::Absent };
        return Command::Resolve { step, word, by, why, goes_on: false };
    }
    let shown = before.current.intent.map(|intent| intent.digest);
    Command::Answer { step, answer: Some("true".to_owned()), by, why, shown, goes_on: false }
}

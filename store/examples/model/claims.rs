//! What must hold in every state, and what must be reached in some.

use stateright::Property;
use store::model::{Effect, StepStatus, TaskStatus};

use crate::check::World;
use crate::config::Config;
use crate::process::{Action, Pc, act, progress};
use crate::state::State;

pub(crate) const EFFECT_ONCE: &str = "an effect happens once";
pub(crate) const EFFECT_IN_ATTEMPT: &str = "an effect is only asked for within an attempt";
pub(crate) const DONE_HAS_EFFECT: &str = "what is done has its effect";
pub(crate) const NEVER_AGAIN: &str = "what is committed never runs again";
pub(crate) const BALANCED: &str = "the journal is balanced, in order";
pub(crate) const REPLAYS: &str = "the journal replayed is the state in the tables";
pub(crate) const AGREE: &str = "what is decided can happen";
pub(crate) const ATTEMPTS_ARE_STARTS: &str = "attempts are starts";
pub(crate) const LIMIT_KEPT: &str = "a task fails at the limit, no sooner and no later";
pub(crate) const ONE_AT_A_TIME: &str = "one runner at a time changes the task";
pub(crate) const RECOVERY_STABLE: &str = "recovery is idempotent";
pub(crate) const SAME_INPUT: &str = "what has happened is not asked for with another input";
pub(crate) const CLASS_HELD: &str = "the class that was named first holds";
pub(crate) const FAILURE_ADMITS: &str = "a task that fails says so where its effect has happened";
pub(crate) const NOT_EARLY: &str = "nobody is asked again before the time at which they wanted to be";
pub(crate) const AGREED_TO: &str = "what needs an answer is done as it was agreed to";
pub(crate) const NO_DEAD_END: &str = "an open task can be brought to its end";
pub(crate) const RUNS_END: &str = "runs do not hinder each other for ever";

/// More runs than the few faults of these worlds can cause; the deep ones have up to a dozen.
pub(crate) const MOST_RUNS: u8 = 20;
/// The longest way to the end that a run without faults may need, with everything that is undone first.
const LONGEST_WAY: u32 = 120;

type Claim = Property<World>;

/// Every claim about a world of this kind.
pub(crate) fn all(config: &Config) -> Vec<Claim> {
    let reached = match config.effect {
        None => reached_under_keys(),
        Some(_) if config.asks => reached_with_questions(),
        Some(effect) => reached_by_class(effect),
    };
    always().into_iter().chain(reached).collect()
}

/// What must hold in every world.
pub(crate) fn always() -> Vec<Claim> {
    vec![
        Claim::always(EFFECT_ONCE, |_, state| state.effects.iter().all(|effect| effect.happened() <= 1)),
        Claim::always(EFFECT_IN_ATTEMPT, effect_in_attempt),
        Claim::always(DONE_HAS_EFFECT, done_has_effect),
        Claim::always(NEVER_AGAIN, never_again),
        Claim::always(BALANCED, |_, state| state.journal.balanced),
        Claim::always(REPLAYS, |_, state| state.journal.replay == Some(state.tables.load())),
        Claim::always(AGREE, |_, state| !state.history.disagreed),
        Claim::always(ATTEMPTS_ARE_STARTS, attempts_are_starts),
        Claim::always(LIMIT_KEPT, limit_kept),
        Claim::always(ONE_AT_A_TIME, one_at_a_time),
        Claim::always(RECOVERY_STABLE, |_, state| !state.history.unstable),
        Claim::always(SAME_INPUT, |_, state| !state.history.doubled),
        Claim::always(CLASS_HELD, |_, state| state.journal.class_held),
        Claim::always(FAILURE_ADMITS, |_, state| !state.history.concealed),
        Claim::always(NOT_EARLY, |_, state| !state.history.early),
        Claim::always(AGREED_TO, |_, state| !state.history.misused),
        Claim::always(NO_DEAD_END, no_dead_end),
        Claim::always(RUNS_END, |_, state| state.tables.fence <= MOST_RUNS),
    ]
}

fn reached_under_keys() -> Vec<Claim> {
    vec![
        Claim::sometimes("done after a crash", |world, state| {
            done(state) && state.left.crashes < world.config.faults.crashes
        }),
        Claim::sometimes("done after every kind of fault", |world, state| {
            let (left, at_first) = (state.left, world.config.faults);
            let met = left.crashes < at_first.crashes && left.errors < at_first.errors && left.stops < at_first.stops;
            done(state) && met && left.expiries < at_first.expiries && left.retries < at_first.retries
        }),
        Claim::sometimes("an effect is asked for again under its key", |_, state| {
            state.effects.iter().any(|effect| effect.requested > 1 && effect.happened() == 1)
        }),
        Claim::sometimes("failed", |_, state| state.tables.task == TaskStatus::Failed),
        Claim::sometimes("failed at its completion", |_, state| {
            state.tables.places().last().is_some_and(|completion| completion.status == StepStatus::Failed)
        }),
        Claim::sometimes("done after its completion was recovered", |_, state| {
            done(state) && state.tables.places().last().is_some_and(|completion| completion.attempts_charged() > 1)
        }),
        Claim::sometimes("retried", |world, state| state.left.retries < world.config.faults.retries),
        Claim::sometimes("done after a retry", |world, state| {
            done(state) && state.left.retries < world.config.faults.retries
        }),
        Claim::sometimes("somebody's retry comes second", |_, state| state.history.beaten),
        Claim::sometimes("a stale holder is fenced", |_, state| state.history.fenced),
    ]
}

fn reached_by_class(effect: Effect) -> Vec<Claim> {
    let mut claims = vec![
        Claim::sometimes("done after all that can go wrong with an effect", |world, state| {
            let (left, at_first) = (state.left, world.config.faults);
            let deferred = at_first.deferrals == 0 || left.deferrals < at_first.deferrals;
            done(state) && deferred && left.lost < at_first.lost && left.upgrades == 0
        }),
        Claim::sometimes("in doubt", |_, state| state.tables.task == TaskStatus::InDoubt),
        Claim::sometimes("done after a person's word", |_, state| done(state) && state.history.resolved),
        Claim::sometimes("somebody's word comes second", |_, state| state.history.beaten),
        Claim::sometimes("cancelled", |_, state| state.tables.task == TaskStatus::Cancelled),
        Claim::sometimes("failed for good", |_, state| {
            state.tables.task == TaskStatus::Failed && !state.journal.at_limit
        }),
    ];
    if effect != Effect::Once {
        claims.push(Claim::sometimes("failed, and said to have its effect perhaps", |_, state| state.history.admitted));
    }
    claims
}

fn reached_with_questions() -> Vec<Claim> {
    vec![
        Claim::sometimes("done after an upgrade and a crash", |_, state| {
            done(state) && state.left.upgrades == 0 && state.left.crashes == 0
        }),
        Claim::sometimes("asked anew since what is shown has changed", |_, state| state.history.asked_anew),
        Claim::sometimes("somebody's answer comes second", |_, state| state.history.beaten),
        Claim::sometimes("waits for its time", |_, state| state.tables.load().current.due().is_some()),
        Claim::sometimes("cancelled", |_, state| state.tables.task == TaskStatus::Cancelled),
    ]
}

fn done(state: &State) -> bool {
    state.tables.task == TaskStatus::Done
}

/// A holder that does not know that its lock is gone still asks, once for its own attempt.
fn effect_in_attempt(_: &World, state: &State) -> bool {
    state.effects.iter().zip(state.journal.starts).all(|(effect, starts)| effect.requested <= starts)
}

fn done_has_effect(world: &World, state: &State) -> bool {
    let (steps, places) = (state.tables.steps(), state.tables.places());
    let each = places
        .iter()
        .zip(state.effects)
        .all(|(place, effect)| place.status != StepStatus::Done || effect.happened() > 0);
    let all = if world.config.completion { places } else { steps };
    each && (!done(state) || all.iter().all(|place| place.status == StepStatus::Done))
}

fn never_again(_: &World, state: &State) -> bool {
    let kept = state.tables.places().iter().zip(state.journal.finishes);
    let kept = kept.into_iter().all(|(place, finishes)| finishes == u8::from(place.status == StepStatus::Done));
    kept && !state.history.reran
}

fn attempts_are_starts(_: &World, state: &State) -> bool {
    state.tables.places().iter().zip(state.journal.starts).all(|(place, starts)| place.attempts == u32::from(starts))
}

fn limit_kept(world: &World, state: &State) -> bool {
    let limit = world.config.max_attempts;
    let places = state.tables.places();
    let failed = places.iter().filter(|step| step.status == StepStatus::Failed);
    places.iter().all(|place| place.attempts_charged() <= limit)
        && failed.clone().all(|step| step.attempts_charged() == limit || !state.journal.at_limit)
        && failed.count() == usize::from(state.tables.task == TaskStatus::Failed)
}

fn one_at_a_time(_: &World, state: &State) -> bool {
    let held = state.runners.iter().filter(|runner| !runner.expired && !matches!(runner.pc, Pc::Idle | Pc::Looked(_)));
    held.count() <= 1 && !state.history.trespassed
}

/// With no further fault, whoever holds the lock, or else the next to come, gets the task done or failed. With bounded
/// faults that is progress: there is no state that only a fault leads out of.
fn no_dead_end(world: &World, state: &State) -> bool {
    let mut state = *state;
    for _ in 0..LONGEST_WAY {
        if state.tables.task.is_over() {
            return true;
        }
        if state.promised > state.now {
            state.now += 1;
        }
        let free = |who: &u8| matches!(state.runners[usize::from(*who)].pc, Pc::Idle | Pc::Looked(_));
        let who = state.lock.or_else(|| (0..world.config.runners).find(free)).unwrap_or(0);
        let Some(what) = progress(&world.config, &state, who) else { return false };
        state = act(&world.config, &state, Action { who, what }).state;
    }
    false
}

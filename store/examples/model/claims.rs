//! What must hold in every state, and what must be reached in some.

use stateright::Property;
use store::model::{StepStatus, TaskStatus};

use crate::check::World;
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
pub(crate) const NO_DEAD_END: &str = "an open task can be brought to its end";
pub(crate) const RUNS_END: &str = "runs do not hinder each other for ever";

/// More runs than the few faults of these worlds can cause; the deep ones have up to a dozen.
pub(crate) const MOST_RUNS: u8 = 20;
/// The longest way to the end that a run without faults may need, with everything that is undone first.
const LONGEST_WAY: u32 = 120;

type Claim = Property<World>;

/// Every claim.
pub(crate) fn all() -> Vec<Claim> {
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
        Claim::always(NO_DEAD_END, no_dead_end),
        Claim::always(RUNS_END, |_, state| state.tables.fence <= MOST_RUNS),
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
        && failed.clone().all(|step| step.attempts_charged() == limit)
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
        let free = |who: &u8| matches!(state.runners[usize::from(*who)].pc, Pc::Idle | Pc::Looked(_));
        let who = state.lock.or_else(|| (0..world.config.runners).find(free)).unwrap_or(0);
        let Some(what) = progress(&world.config, &state, who) else { return false };
        state = act(&world.config, &state, Action { who, what }).state;
    }
    false
}

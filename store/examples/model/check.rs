//! Exploring a world: all of it, or up to the shortest way to a broken claim.

use std::thread;
use std::time::{Duration, Instant};

use stateright::{Checker, Expectation, HasDiscoveries, Model, Path, Property};

use crate::claims;
use crate::config::{Config, Faults};
use crate::process::{Action, act, actions};
use crate::state::State;

/// A world with the claims about it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct World {
    pub(crate) config: Config,
    /// The only claim that counts; `None` for all.
    pub(crate) only: Option<&'static str>,
}

impl Model for World {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State::created(&self.config)]
    }

    fn actions(&self, state: &State, list: &mut Vec<Action>) {
        actions(&self.config, state, list);
    }

    fn next_state(&self, state: &State, action: Action) -> Option<State> {
        Some(act(&self.config, state, action).state)
    }

    /// One run beyond what is claimed to be the most, so that more are seen and the world is finite whatever is wrong.
    fn within_boundary(&self, state: &State) -> bool {
        state.tables.fence <= claims::MOST_RUNS + 1
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let counts = |property: &Property<Self>| self.only.is_none_or(|only| only == property.name);
        claims::all(&self.config).into_iter().filter(counts).collect()
    }
}

/// What a whole exploration found.
#[derive(Clone, Debug)]
pub(crate) struct Explored {
    /// Different states.
    pub(crate) states: usize,
    /// Actions tried, including those that led to a state that was known.
    pub(crate) actions: usize,
    /// Wall-clock time.
    pub(crate) took: Duration,
    /// Claims that are broken in some state.
    pub(crate) broken: Vec<&'static str>,
    /// What should be reached and is not.
    pub(crate) missed: Vec<&'static str>,
}

/// Visits every state that can be reached.
pub(crate) fn explore(config: Config) -> Explored {
    let start = Instant::now();
    let world = World { config, only: None };
    let threads = thread::available_parallelism().map_or(1, usize::from);
    // Depth first keeps few states in memory; the order does not matter where all are visited.
    let checker = world.checker().threads(threads).spawn_dfs().join();
    let found = checker.discoveries();
    let names = |expectation: Expectation, discovered: bool| {
        let properties = world.properties().into_iter().filter(|property| property.expectation == expectation);
        properties.map(|property| property.name).filter(|name| found.contains_key(name) == discovered).collect()
    };
    Explored {
        states: checker.unique_state_count(),
        actions: checker.state_count(),
        took: start.elapsed(),
        broken: names(Expectation::Always, true),
        missed: names(Expectation::Sometimes, false),
    }
}

/// A way from the start to a broken claim.
#[derive(Clone, Debug)]
pub(crate) struct Counterexample {
    /// What happens, in order.
    pub(crate) actions: Vec<Action>,
    /// The claims that are broken at its end.
    pub(crate) broken: Vec<&'static str>,
}

/// The shortest way to a broken claim, if there is one.
///
/// The checker goes on for a while after a discovery and keeps the last one, so it is asked again for a shorter way. Of
/// equally short ways one without a lost lock is taken, as a kill is what everybody knows.
pub(crate) fn counterexample(world: World) -> Option<Counterexample> {
    let mut shortest = search(world, usize::MAX)?;
    while let Some(shorter) = search(world, shortest.len() - 1) {
        shortest = shorter;
    }
    let plain = Config { faults: Faults { expiries: 0, ..world.config.faults }, ..world.config };
    let mut actions = search(World { config: plain, ..world }, shortest.len()).unwrap_or(shortest);
    name_in_order(&mut actions);
    let mut end = State::created(&world.config);
    for action in &actions {
        end = act(&world.config, &end, *action).state;
    }
    let broken = invariants(&world).filter(|claim| !(claim.condition)(&world, &end)).map(|claim| claim.name).collect();
    Some(Counterexample { actions, broken })
}

/// Processes are alike, so whichever acts first may be called A.
fn name_in_order(actions: &mut [Action]) {
    let mut names: Vec<u8> = Vec::new();
    for action in actions {
        if !names.contains(&action.who) {
            names.push(action.who);
        }
        action.who = (0..).zip(&names).find(|(_, who)| **who == action.who).map_or(0, |(name, _)| name);
    }
}

/// A way of at most `longest` actions to a broken claim.
fn search(world: World, longest: usize) -> Option<Vec<Action>> {
    let builder = world.checker().finish_when(HasDiscoveries::AnyFailures);
    // The checker counts states, from 1, and does not look at those at its target depth.
    let checker = builder.target_max_depth(longest.saturating_add(2)).spawn_bfs().join();
    let found = checker.discoveries();
    let paths = invariants(&world).filter_map(|claim| found.get(claim.name).cloned());
    paths.map(Path::into_actions).min_by_key(Vec::len)
}

fn invariants(world: &World) -> impl Iterator<Item = Property<World>> + use<> {
    world.properties().into_iter().filter(|property| property.expectation == Expectation::Always)
}

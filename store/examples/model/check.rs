//! Exploring a world: all of it, or up to the shortest way to a broken claim.

use std::thread;
use std::time::{Duration, Instant};

use stateright::{Checker, Expectation, HasDiscoveries, Model, Property};

use crate::claims;
use crate::config::Config;
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
        claims::all().into_iter().filter(counts).collect()
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
pub(crate) fn counterexample(world: World) -> Option<Counterexample> {
    let mut shortest: Option<Vec<Action>> = None;
    // The checker goes on for a while after a discovery and keeps the last one, so it is asked again for a shorter one.
    loop {
        let mut builder = world.checker().finish_when(HasDiscoveries::AnyFailures);
        if let Some(actions) = &shortest {
            // Depths count states, from 1; states at the target depth are not looked at.
            builder = builder.target_max_depth(actions.len() + 1);
        }
        let checker = builder.spawn_bfs().join();
        let failures = world.properties().into_iter().filter(|property| property.expectation == Expectation::Always);
        let found = checker.discoveries();
        let paths = failures.filter_map(|property| found.get(property.name).cloned());
        match paths.map(stateright::Path::into_actions).min_by_key(Vec::len) {
            Some(actions) => shortest = Some(actions),
            None => break,
        }
    }
    let actions = shortest?;
    let mut end = State::created(&world.config);
    for action in &actions {
        end = act(&world.config, &end, *action).state;
    }
    let failures = world.properties().into_iter().filter(|property| property.expectation == Expectation::Always);
    let broken =
        failures.filter(|property| !(property.condition)(&world, &end)).map(|property| property.name).collect();
    Some(Counterexample { actions, broken })
}

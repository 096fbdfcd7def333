//! The model itself under test: it must hold for what ships, and see what is planted.

use std::collections::BTreeSet;

use stateright::{Checker, Expectation, Model};

use crate::bug::Bug;
use crate::check::{World, counterexample, explore};
use crate::claims;
use crate::config::{Config, Faults};
use crate::trace;

fn names(expectation: &Expectation) -> BTreeSet<&'static str> {
    let claims = claims::all(&Config::SMALL).into_iter().filter(|claim| claim.expectation == *expectation);
    claims.map(|claim| claim.name).collect()
}

#[test]
fn what_ships_holds_in_every_state_and_reaches_what_it_should() {
    let explored = explore(Config::SMALL);
    assert_eq!(explored.broken, [""; 0]);
    assert_eq!(explored.missed, [""; 0]);
    assert!(explored.states > 50_000, "{explored:?}");
}

#[test]
fn every_claim_is_broken_by_some_bug() {
    let first: BTreeSet<_> = Bug::ALL.into_iter().map(Bug::breaks).collect();
    let rest: BTreeSet<_> = names(&Expectation::Always).difference(&first).copied().collect();
    // Whatever breaks these breaks another claim sooner.
    let later = [
        (claims::AGREE, Bug::NoRecovery),
        (claims::RECOVERY_STABLE, Bug::BeginCounted),
        (claims::RUNS_END, Bug::NoLock),
    ];
    assert_eq!(rest, BTreeSet::from(later.map(|(claim, _)| claim)));
    // Two processes fence each other for ever without any fault, and with faults that takes long to find.
    let faults = Faults { errors: 0, stops: 0, expiries: 0, retries: 0, ..Config::SMALL.faults };
    let config = Config { faults, ..Config::SMALL };
    for (claim, bug) in later {
        let found = counterexample(World { config: config.with(bug), only: Some(claim) });
        assert_eq!(found.expect("is found").broken, [claim]);
    }
}

/// What breaks first only says whose turn it was not; this is the harm that is done.
#[test]
fn an_unfenced_commit_ruins_the_journal() {
    let config = Config::SMALL.with(Bug::UnfencedCommit);
    let found = counterexample(World { config, only: Some(claims::REPLAYS) }).expect("is found");
    assert_eq!(found.broken, [claims::REPLAYS]);
}

/// What the fence and the rows guard, they guard alone; the lock is what lets a run get on.
#[test]
fn without_the_lock_only_progress_is_lost() {
    let faults = Faults { errors: 0, stops: 0, expiries: 0, retries: 0, ..Config::SMALL.faults };
    let explored = explore(Config { faults, ..Config::SMALL }.with(Bug::NoLock));
    assert_eq!(explored.broken, [claims::ONE_AT_A_TIME, claims::RUNS_END], "{explored:?}");
}

#[test]
fn without_faults_nothing_is_reached_that_needs_one() {
    let faults = Faults::NONE;
    let explored = explore(Config { faults, ..Config::SMALL });
    assert_eq!(explored.missed.into_iter().collect::<BTreeSet<_>>(), names(&Expectation::Sometimes));
}

/// The search is parallel and depth first; that must not lose a state.
#[test]
fn another_order_of_search_visits_the_same_states() {
    let config = Config { faults: Faults { expiries: 0, ..Config::SMALL.faults }, ..Config::SMALL };
    let breadth_first = World { config, only: None }.checker().spawn_bfs().join();
    assert_eq!(explore(config).states, breadth_first.unique_state_count());
}

#[test]
fn a_trace_tells_one_action_a_line_with_what_it_changed() {
    let config = Config::FULL.with(Bug::EffectBeforeStart);
    let found = counterexample(World { config, only: None }).expect("is found");
    let expected = "
  1  A  starts `run`, sees the task pending
  2  A  takes the lock                                lock with A
  3  A  takes token 1
  4  A  loads the task: pending, step 0 pending
  5  A  commits run_started
  6  A  sends the effect                              effect 0 asked for 1x, happened 1x
     broken: an effect is only asked for within an attempt
";
    assert_eq!(trace::render(&config, &found), expected.trim_start_matches('\n'));
}

#[test]
fn a_bug_is_found_by_its_name() {
    assert_eq!(Bug::NoRecovery.name(), "no-recovery");
    for bug in Bug::ALL {
        assert_eq!(Bug::named(&bug.name()), Some(bug));
    }
}

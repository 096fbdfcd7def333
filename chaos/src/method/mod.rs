//! The methods: one file each, saying what it does to the agent, which scenarios
//! that makes for a plan, and what it expects beyond the invariants.

mod baseline;
mod control;
mod drift;
mod exhaust;
mod external;
mod faults;
pub mod fuzz;
mod neighbours;
mod nested;
mod observe;
mod pause;
mod points;
mod poison;
mod power;
mod race;
mod random;
mod real;
mod rerun;

use std::sync::Arc;

use crate::bench::Bench;
use crate::error::LabError;
use crate::scenario::Scenario;

/// One way to test an agent.
pub struct Method {
    /// The name for `--method` and in scenario ids.
    pub name: &'static str,
    /// What it does, in one sentence.
    pub about: &'static str,
    /// Its scenarios for a plan, in a stable order.
    pub scenarios: fn(&Arc<Bench>) -> Result<Vec<Scenario>, LabError>,
}

/// Every method, in the order in which they run.
pub const ALL: [Method; 17] = [
    baseline::METHOD,
    points::METHOD,
    nested::METHOD,
    external::METHOD,
    random::METHOD,
    race::METHOD,
    neighbours::METHOD,
    drift::METHOD,
    rerun::METHOD,
    poison::METHOD,
    observe::METHOD,
    exhaust::METHOD,
    power::METHOD,
    faults::METHOD,
    pause::METHOD,
    control::METHOD,
    fuzz::METHOD,
];

/// The method that all others are compared with.
pub const BASELINE: &str = baseline::METHOD.name;

/// The method of this name.
#[must_use]
pub fn named(name: &str) -> Option<&'static Method> {
    static METHODS: &[Method] = &ALL;
    METHODS.iter().find(|method| method.name == name)
}

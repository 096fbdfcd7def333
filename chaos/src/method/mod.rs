//! The methods: one file each, saying what it does to the agent, which scenarios that makes for a plan, and what it
//! expects beyond the properties.

pub mod aim;
mod baseline;
mod clock;
mod commands;
mod control;
mod drift;
mod exhaust;
mod external;
mod faults;
pub mod fuzz;
mod large;
mod log;
mod neighbours;
mod nested;
mod observe;
mod pause;
mod people;
mod points;
mod poison;
mod power;
mod race;
mod random;
mod replies;
mod rerun;

use std::sync::Arc;

use crate::agent::target::Target;
use crate::case::plan::PlanCase;
use crate::case::world;
use crate::error::LabError;
use crate::play::method::Method;
use crate::play::prepared::Prepared;
use crate::play::scenario::Scenario;

/// Every method, in the order in which they run.
pub const ALL: [Method; 23] = [
    baseline::METHOD,
    points::METHOD,
    nested::METHOD,
    external::METHOD,
    random::METHOD,
    race::METHOD,
    neighbours::METHOD,
    drift::METHOD,
    clock::METHOD,
    rerun::METHOD,
    poison::METHOD,
    observe::METHOD,
    commands::METHOD,
    large::METHOD,
    log::METHOD,
    people::METHOD,
    replies::METHOD,
    exhaust::METHOD,
    power::METHOD,
    faults::METHOD,
    pause::METHOD,
    control::METHOD,
    fuzz::METHOD,
];

/// More than random schedules kill one step.
const KILLS: u64 = 8;

/// Why a method has nothing to do with a case.
#[must_use]
pub fn why_not(method: &Method, target: &Target, case: &PlanCase) -> Option<&'static str> {
    let left_out = case.methods.is_some_and(|methods| !methods.contains(&method.name));
    match method.name {
        BASELINE => None,
        name if left_out && world::could_play(name) => Some("an everyday run leaves it to `--deep` and `--plan`"),
        _ if left_out => Some("it is not about effects in the world"),
        "replies" if !case.kind.is_served() => Some("it sends no requests to a server of the lab"),
        "people" if !case.kind.has_person() => Some("it asks nobody"),
        "log" if case.kind.log().is_none() => Some("it has no action log"),
        "random" | "fuzz" if !case.stands(KILLS) => Some("its plan allows a step fewer attempts than it kills"),
        "fuzz" if !case.is_straight() => Some("its plan has conditions, which random schedules pay no heed to"),
        "control" => control::why_not(target, case),
        _ => None,
    }
}

/// Why a method has nothing to do with a case that is made ready.
#[must_use]
pub fn why_not_ready(method: &Method, ready: &Prepared) -> Option<&'static str> {
    match method.name {
        "clock" if ready.case.is_played_whole() => ready.clock.stands(),
        _ => why_not(method, &ready.lab.target, &ready.case),
    }
}

/// A method's scenarios for a plan; none where [`why_not_ready`] says so.
///
/// # Errors
/// The lab's own failures.
pub fn scenarios_for(method: &Method, ready: &Arc<Prepared>) -> Result<Vec<Scenario>, LabError> {
    match why_not_ready(method, ready) {
        Some(_) => Ok(Vec::new()),
        None => (method.scenarios)(ready),
    }
}

pub use baseline::RUNS_CLEAN;

/// The method that all others are compared with.
pub const BASELINE: &str = baseline::METHOD.name;

/// The method of this name.
#[must_use]
pub fn named(name: &str) -> Option<&'static Method> {
    static METHODS: &[Method] = &ALL;
    METHODS.iter().find(|method| method.name == name)
}

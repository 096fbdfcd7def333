//! The methods: one file each, saying what it does to the agent, which scenarios
//! that makes for a plan, and what it expects beyond the invariants.

mod baseline;
mod control;
mod drift;
mod exhaust;
mod external;
mod faults;
pub mod fuzz;
mod log;
mod neighbours;
mod nested;
mod observe;
mod pause;
mod points;
mod poison;
mod power;
mod race;
mod random;
mod rerun;

use std::sync::Arc;

use crate::case::plan::PlanCase;
use crate::error::LabError;
use crate::play::prepared::Bench;
use crate::play::scenario::Scenario;

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
pub const ALL: [Method; 18] = [
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
    log::METHOD,
    exhaust::METHOD,
    power::METHOD,
    faults::METHOD,
    pause::METHOD,
    control::METHOD,
    fuzz::METHOD,
];

/// Methods that leave the inbox case out, and why.
const NOT_FOR_INBOX: [(&str, &str); 1] =
    [(control::METHOD.name, "its steps have no effect of their own that could double")];

impl Method {
    /// Its scenarios for a plan; none where [`Method::why_not`] says so.
    ///
    /// # Errors
    /// The lab's own failures.
    pub fn scenarios_for(&self, bench: &Arc<Bench>) -> Result<Vec<Scenario>, LabError> {
        match self.why_not(&bench.case) {
            Some(_) => Ok(Vec::new()),
            None => (self.scenarios)(bench),
        }
    }

    /// Why the method has nothing to do with a case.
    #[must_use]
    pub fn why_not(&self, case: &PlanCase) -> Option<&'static str> {
        if !case.is_inbox() {
            return (self.name == log::METHOD.name).then_some("it has no action log");
        }
        let not = NOT_FOR_INBOX.iter().find(|(name, _)| *name == self.name);
        not.map(|(_, why)| *why)
    }
}

/// The method that all others are compared with.
pub const BASELINE: &str = baseline::METHOD.name;

/// The method of this name.
#[must_use]
pub fn named(name: &str) -> Option<&'static Method> {
    static METHODS: &[Method] = &ALL;
    METHODS.iter().find(|method| method.name == name)
}

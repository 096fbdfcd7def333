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
use crate::play::prepared::Prepared;
use crate::play::scenario::{Played, Scenario};

/// One way to test an agent.
pub struct Method {
    /// The name for `--method` and in scenario ids.
    pub name: &'static str,
    /// What it does, in one sentence.
    pub about: &'static str,
    /// Its scenarios for a plan, in a stable order.
    pub scenarios: fn(&Arc<Prepared>) -> Result<Vec<Scenario>, LabError>,
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

impl Method {
    /// Its scenarios for a plan; none where [`Method::why_not`] says so.
    ///
    /// # Errors
    /// The lab's own failures.
    pub fn scenarios_for(&self, ready: &Arc<Prepared>) -> Result<Vec<Scenario>, LabError> {
        match self.why_not(&ready.case) {
            Some(_) => Ok(Vec::new()),
            None => (self.scenarios)(ready),
        }
    }

    /// Why the method has nothing to do with a case.
    #[must_use]
    pub fn why_not(&self, case: &PlanCase) -> Option<&'static str> {
        let kind = case.kind;
        if self.name == log::METHOD.name && kind.log().is_none() {
            return Some("it has no action log");
        }
        let no_effect = self.name == control::METHOD.name && !kind.is_created();
        no_effect.then_some("its steps have no effect of their own that could double")
    }
}

/// What a method of the tracer is on a system without one.
fn not_here(ready: &Arc<Prepared>, method: &'static str) -> Scenario {
    let title = "not available here: the tracer needs Linux on x86-64 or aarch64".to_owned();
    let note = title.clone();
    let play = move |_: &Prepared| Ok(Played { note: Some(note.clone()), ..Played::default() });
    Scenario::new(method, ready, "not-available", title, play)
}

/// The method that all others are compared with.
pub const BASELINE: &str = baseline::METHOD.name;

/// The method of this name.
#[must_use]
pub fn named(name: &str) -> Option<&'static Method> {
    static METHODS: &[Method] = &ALL;
    METHODS.iter().find(|method| method.name == name)
}

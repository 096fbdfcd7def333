//! A method as a value.

use std::sync::Arc;

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

/// What a method of the tracer is on a system without one.
#[must_use]
pub fn not_here(ready: &Arc<Prepared>, method: &'static str) -> Scenario {
    let title = "not available here: the tracer needs Linux on x86-64 or aarch64".to_owned();
    let note = title.clone();
    let play = move |_: &Prepared| Ok(Played { note: Some(note.clone()), ..Played::default() });
    Scenario::new(method, ready, "not-available", title, play)
}

//! A whole run on tape, with what came before it.

use super::resume::Past;
use super::tape::{Tape, record};
use crate::bench::Bench;
use crate::error::LabError;
use crate::sandbox::Sandbox;
use crate::stage::{Env, TASK};

/// A task created as usual, and its undisturbed run on tape.
#[derive(Debug, Clone)]
pub struct Reel {
    /// What came before the run.
    pub past: Past,
    /// The run.
    pub tape: Tape,
}

impl Reel {
    /// Creates the task of the case and records its run.
    ///
    /// # Errors
    /// The lab's own failures.
    pub fn of_run(bench: &Bench) -> Result<Self, LabError> {
        let mut sandbox = Sandbox::new(&bench.lab.root, &bench.case)?;
        let create = sandbox.create(&bench.lab.target, TASK)?;
        let tape = record(&bench.lab, &mut sandbox, &["run", TASK], &Env::new())?;
        Ok(Self { past: Past::created(create, tape.found.clone()), tape })
    }
}

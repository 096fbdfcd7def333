//! A whole run on tape, with what came before it.

use super::resume::Past;
use crate::crash::{Tape, record};
use crate::error::LabError;
use crate::look::facts::TaskEnd;
use crate::play::prepared::Bench;
use crate::play::stage::{Env, Stage, TASK};

/// A task created as usual, and its undisturbed run on tape.
#[derive(Debug, Clone)]
pub struct Reel {
    /// What came before the run.
    pub past: Past,
    /// The run.
    pub tape: Tape,
}

impl Reel {
    /// Creates the task of the case and records its run, which may do both.
    ///
    /// # Errors
    /// The lab's own failures.
    pub fn of_run(bench: &Bench) -> Result<Self, LabError> {
        let mut stage = Stage::single(&bench.lab, &bench.case)?;
        let words = bench.case.words(TASK);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let tape = record(&bench.lab, &mut stage.sandbox, &words, &Env::new())?;
        Ok(Self { past: Past::of(stage.close(TaskEnd::Done)), tape })
    }
}

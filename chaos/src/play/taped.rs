//! A process on tape, with what came before it.

use std::collections::BTreeSet;

use crate::agent::process::Env;
use crate::case::TASK;
use crate::contract::PLAN_FILE;
use crate::crash::{Tape, record, record_from};
use crate::error::LabError;
use crate::look::evidence::TaskEnd;
use crate::look::sandbox::Sandbox;
use crate::look::tables::Tables;
use crate::play::ask::ask;
use crate::play::prepared::Prepared;
use crate::play::resume::{Past, Resumed, create_again, run_again};
use crate::play::stage::Stage;
use crate::schedule::{CallPoint, Kill, KillSchedule};

/// A process that went to its end undisturbed.
#[derive(Debug, Clone)]
pub struct Taped {
    /// What came before it.
    pub past: Past,
    /// The process.
    pub tape: Tape,
    /// Kills that came before it, for the addresses.
    before: Vec<CallPoint>,
}

impl Taped {
    /// Creates the task of the case and records its run, which may do both.
    ///
    /// # Errors
    /// The lab's own failures.
    pub fn of_run(ready: &Prepared) -> Result<Self, LabError> {
        Self::of_next(ready.stage()?)
    }

    /// Records the next run in a stage.
    ///
    /// # Errors
    /// The lab's own failures.
    pub fn of_next(mut stage: Stage<'_>) -> Result<Self, LabError> {
        let words = stage.case().kind.words(TASK);
        let tape = record(stage.lab, &mut stage.sandbox, &words, &Env::new())?;
        Ok(Self { past: Past::of(stage.close(TaskEnd::Done)), tape, before: Vec::new() })
    }

    /// Records how the task is created.
    ///
    /// # Errors
    /// The lab's own failures.
    pub fn of_create(ready: &Prepared) -> Result<Self, LabError> {
        let mut sandbox = Sandbox::new(&ready.lab.root, &ready.case)?;
        let tape = record(&ready.lab, &mut sandbox, &["create", TASK, PLAN_FILE], &Env::new())?;
        let past = Past::created(tape.outcome.clone(), sandbox.look()?);
        Ok(Self { past, tape, before: Vec::new() })
    }

    /// The places after which the folder was one that was never there before.
    #[must_use]
    pub fn states(&self) -> Vec<usize> {
        let mut seen = BTreeSet::from([self.tape.images[0].key()]);
        let frames = self.tape.frames.iter().enumerate();
        let new = frames.filter(|(_, frame)| frame.changed && seen.insert(self.tape.images[frame.image].key()));
        new.map(|(at, _)| at).collect()
    }

    /// The kills that lead to the place, with the one there.
    #[must_use]
    pub fn kills(&self, at: usize) -> KillSchedule {
        let points = self.before.iter().chain([&self.tape.frames[at].at]);
        KillSchedule(points.cloned().map(Kill::Call).collect())
    }

    /// The tables after the call at this place.
    #[must_use]
    pub fn tables(&self, at: usize) -> &Tables {
        &self.tape.seen[self.tape.frames[at].image].0
    }

    /// Resumes the run that was cut at this place.
    ///
    /// # Errors
    /// The lab's own failures.
    pub fn resumed(&self, ready: &Prepared, at: usize) -> Result<Resumed, LabError> {
        let frame = &self.tape.frames[at];
        let (image, seen) = (&self.tape.images[frame.image], &self.tape.seen[frame.image]);
        run_again(ready, &self.past, &frame.at, &self.tape.outcome, image, seen, &Env::new())
    }

    /// What is wrong with what the agent says while the folder is as it was left at this place; where there is no task,
    /// nothing is asked.
    ///
    /// # Errors
    /// The lab's own failures.
    pub fn asked(&self, ready: &Prepared, at: usize) -> Result<Vec<String>, LabError> {
        let tables = self.tables(at);
        if tables.task(TASK).is_none() {
            return Ok(Vec::new());
        }
        let mut sandbox = Sandbox::empty(&ready.lab.root, &ready.case)?;
        self.tape.images[self.tape.frames[at].image].write(&sandbox.world())?;
        ask(&ready.lab.target, &mut sandbox, tables)
    }

    /// Goes on after a `create` that was cut at this place.
    ///
    /// # Errors
    /// The lab's own failures.
    pub fn created_again(&self, ready: &Prepared, at: usize) -> Result<Resumed, LabError> {
        let image = self.tape.frames[at].image;
        create_again(ready, &self.tape.images[image], &self.tape.seen[image], &Env::new())
    }

    /// The resume after a cut at this place, on tape.
    ///
    /// # Errors
    /// The lab's own failures.
    pub fn resume(&self, ready: &Prepared, at: usize) -> Result<Self, LabError> {
        let frame = &self.tape.frames[at];
        let words = ready.case.kind.words(TASK);
        let tape = record_from(&ready.lab, &ready.case, &self.tape.images[frame.image], &words, &Env::new())?;
        let past = self.past.and_killed(&frame.at, &self.tape.outcome, Some(tape.found.clone()));
        let before = self.before.iter().chain([&frame.at]).cloned().collect();
        Ok(Self { past, tape, before })
    }

    /// What a reader should know of the tape, beside a verdict.
    #[must_use]
    pub fn remark(&self) -> Option<String> {
        remark(self.tape.threads, &self.tape.blind)
    }
}

/// What a reader should know of traced processes, beside a verdict.
#[must_use]
pub fn remark(threads: usize, blind: &[String]) -> Option<String> {
    let mut remarks = blind.to_vec();
    if threads > 1 {
        remarks.push(format!("{threads} threads or children: the order of calls may differ from run to run"));
    }
    (!remarks.is_empty()).then(|| remarks.join("; "))
}

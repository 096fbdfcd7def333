//! What a run has, and how it commits.

use std::collections::VecDeque;
use std::time::Duration;

use store::machine::{Budget, Command};
use store::model::Event;
use store::{Crash, StepRow, TaskSession, limits};
use tools::{Registry, Stop, World};

use super::completion::{Completion, Replace};
use super::history::History;
use super::prepared::{Prepared, no_such_step};
use super::rules::Rules;
use super::{EngineError, Observer};

/// What a run goes by.
#[derive(Clone, Debug)]
pub struct Settings {
    /// What tools may know.
    pub world: World,
    /// Attempts per step before it fails, where that is said; a step's plan comes before it, its tool after it.
    pub max_attempts: Option<u32>,
    /// Whether a run ends where it would have to wait for a time.
    pub no_wait: bool,
    /// Pause inside every step, before its effect.
    pub step_delay: Duration,
    /// Negative control only: a fresh idempotency key for every attempt.
    pub unsafe_keys: bool,
}

/// A run of a task under lease.
pub(crate) struct Runner<'a, 's> {
    /// The task.
    pub(crate) session: TaskSession<'s>,
    /// What it goes by.
    pub(crate) settings: &'a Settings,
    /// The home that is to be stored with the task, where it has none yet.
    pub(crate) keep_home: Option<String>,
    /// Its crash points.
    pub(crate) crash: &'a Crash,
    /// Whether it has to stop.
    pub(crate) stop: &'a Stop,
    /// Who hears of its progress.
    pub(crate) observer: &'a mut dyn Observer,
    /// Where its tools come from.
    pub(crate) tools: &'a Registry,
    /// Puts the report into the world.
    pub(crate) replace: Replace<'a>,
}

impl Runner<'_, '_> {
    pub(super) fn completion(&mut self) -> Result<Option<Completion>, EngineError> {
        let task = self.session.task().clone();
        Completion::of(self.session.reader(), &task)
    }

    /// The step with what it needs; `page` holds the rows that were read ahead.
    pub(super) fn prepare(&mut self, step: u32, page: &mut VecDeque<StepRow>) -> Result<Prepared, EngineError> {
        let task = self.session.task().clone();
        if page.is_empty() {
            page.extend(self.session.reader().steps(&task, step, limits::STEP_PAGE)?);
        }
        match page.pop_front() {
            Some(row) if row.idx == step => {
                let Settings { max_attempts, world, .. } = self.settings;
                Prepared::read(self.session.reader(), &task, row, self.tools, *max_attempts, &world.secrets)
            }
            _ => Err(no_such_step(&task, step)),
        }
    }

    /// How much a step may be tried; where that is used up, with what is known of each attempt.
    pub(super) fn budget(&mut self, step: Option<u32>, rules: &Rules) -> Result<Budget, EngineError> {
        let Rules { max_attempts, goes_on, .. } = *rules;
        self.budget_of(step, Budget { goes_on, ..Budget::of(max_attempts) })
    }

    /// The same for the completion.
    pub(super) fn budget_at_the_end(&mut self) -> Result<Budget, EngineError> {
        self.budget_of(None, Budget::of(self.settings.max_attempts.unwrap_or(limits::ATTEMPTS)))
    }

    fn budget_of(&mut self, step: Option<u32>, mut budget: Budget) -> Result<Budget, EngineError> {
        if budget.is_used_up(&self.session.state()) {
            let task = self.session.task().clone();
            budget.known = History::of(self.session.reader(), &task, step)?.known();
        }
        Ok(budget)
    }

    pub(super) fn commit(&mut self, command: &Command) -> Result<(), EngineError> {
        let events = self.session.apply(command)?;
        self.tell(&events)
    }

    pub(super) fn tell(&mut self, events: &[Event]) -> Result<(), EngineError> {
        let state = self.session.state();
        self.observer.committed(self.session.reader(), state, events).map_err(EngineError::Observer)
    }
}

//! What comes before the first step of a run.

use std::collections::VecDeque;

use store::crash::{RECOVER_SWEPT, RUN_STARTED};
use store::limits;
use store::machine::Command;
use store::model::{Event, EventKind, Terms, codec};
use tools::{Attempt, Engine, Input, ToolContext};

use super::prepared::Prepared;
use super::{EngineError, Remark, Runner};

/// How many events are looked at for the first run. Before it there is but the creation, and what moved the task since.
const HEAD: u32 = 64;

impl Runner<'_, '_> {
    /// Sweeps what a killed attempt left, then sets its step back. In that order: once recovery is committed, nothing
    /// says any more that there may be something to sweep.
    pub(super) fn recover(&mut self) -> Result<(), EngineError> {
        let state = self.session.state();
        if let Some(step) = state.step() {
            let prepared = self.prepare(step, &mut VecDeque::new())?;
            let task = self.session.task().clone();
            prepared.check_artifacts(self.session.reader(), &task, state, &self.settings.world)?;
            if state.running() == Some(step) {
                self.sweep(&prepared)?;
            }
        }
        if state.no_step_left()
            && let Some(completion) = self.completion()?
        {
            completion.sweep(self.session.task(), &self.settings.world)?;
        }
        self.crash.scope(None).point(RECOVER_SWEPT);
        let (engine, model) = match &self.settings.world.engine {
            Engine::Stub => ("stub", None),
            Engine::Ollama(ollama) => ("ollama", Some(ollama.model.clone())),
        };
        let terms = Terms {
            artifacts: self.settings.world.artifacts.to_str().map(str::to_owned),
            home: self.keep_home.take(),
            engine: Some(engine.to_owned()),
            model,
            ..Terms::limit(self.settings.max_attempts.unwrap_or(limits::ATTEMPTS))
        };
        let resumed = Some(self.resumes(&terms)?);
        let terms = Terms { resumed, ..terms };
        self.commit(&Command::Begin(terms))?;
        self.crash.scope(None).point(RUN_STARTED);
        Ok(())
    }

    /// Sees to it that nothing of a dead attempt is left that could still act or be taken for a result.
    fn sweep(&self, prepared: &Prepared) -> Result<(), EngineError> {
        let (step, current) = (prepared.step.idx, self.session.state().current);
        let (key, crash) = (self.key(step), self.crash.scope(Some(step)));
        let attempt = Attempt { number: current.attempts, repeated: true, ..Attempt::first(current.effect()) };
        let (world, outputs, stop) = (&self.settings.world, &prepared.outputs, self.stop);
        let swept = prepared
            .tool
            .sweep(&ToolContext { key: &key, world, outputs, crash, stop, attempt }, Input(&prepared.input));
        swept.map_err(|source| EngineError::Tool { step, source })
    }

    /// Ends the task, for a person.
    ///
    /// # Errors
    /// It is over, or cannot be written.
    pub(crate) fn cancel(mut self, by: String, why: Option<String>) -> Result<(), EngineError> {
        if let Some(step) = self.session.state().running() {
            let prepared = self.prepare(step, &mut VecDeque::new())?;
            self.sweep(&prepared)?;
        }
        self.commit(&Command::Cancel { by, why })
    }

    /// Whether this run goes on with what an earlier process began: there was a run before, or the process that created
    /// the task was to run it too, as `inbox` does, and has died in between.
    fn resumes(&mut self, terms: &Terms) -> Result<bool, EngineError> {
        let task = self.session.task().clone();
        let run = self.session.run().clone();
        let head = self.session.reader().journal(Some(&task), 0, HEAD)?;
        if let Some(first) = head.iter().find(|entry| entry.kind == EventKind::RunStarted.as_str()) {
            if let Ok(Some(Event::RunStarted { terms: first, .. })) = codec::event_from_entry(first) {
                self.say_what_differs(&first, terms);
            }
            return Ok(true);
        }
        let ours = head.first().is_none_or(|created| created.run == run);
        Ok(!ours && self.session.reader().completion(&task)?.is_some())
    }

    /// A resumed run once used the stub where the first one had used the model, without a word.
    fn say_what_differs(&mut self, first: &Terms, now: &Terms) {
        for (what, before, now) in [
            ("engine", &first.engine, &now.engine),
            ("model", &first.model, &now.model),
            ("artifacts folder", &first.artifacts, &now.artifacts),
        ] {
            if let (Some(before), Some(now)) = (before, now)
                && before != now
            {
                self.observer.hears(&Remark::Differs { what, before: before.clone(), now: now.clone() });
            }
        }
    }
}

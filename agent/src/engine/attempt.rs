//! One attempt of one step: its start, its effect, its end.

use store::crash::{AFTER_COMMIT, AFTER_EFFECT, BEFORE_EFFECT};
use store::limits;
use store::machine::{Budget, Command};
use store::model::IdempotencyKey;
use tools::{Input, ToolContext, ToolError};

use super::prepared::Prepared;
use super::{EngineError, Runner};

/// How an attempt ended.
pub(super) enum Attempt {
    /// The step is done.
    Done,
    /// The tool failed, which is journaled; what it said.
    Failed(String),
    /// It was given up before its effect began, since the process is to stop.
    Released,
    /// There was none: the step has used up its attempts, and the task is over.
    Over,
}

impl Runner<'_, '_> {
    pub(super) fn attempt(&mut self, prepared: &Prepared) -> Result<Attempt, EngineError> {
        let step = prepared.step.idx;
        let tool = prepared.tool.spec().name;
        let budget = Budget::of(self.settings.max_attempts);
        self.commit(&Command::Start { step, tool: tool.to_owned(), budget })?;
        if self.session.state().status.is_over() {
            return Ok(Attempt::Over);
        }
        let points = self.crash.scope(Some(step));
        points.point(BEFORE_EFFECT);
        self.stop.sleep(self.settings.step_delay);
        if self.stop.asked() {
            return Ok(Attempt::Released);
        }
        let key = self.key(step);
        let result = prepared.tool.call(&self.context(&key, prepared), Input(&prepared.step.input));
        points.point(AFTER_EFFECT);
        let result = match result {
            Ok(output) => tools::check_output(prepared.tool.spec(), &output).map(|()| output),
            Err(ToolError::Step(why)) => Err(why),
            Err(source @ ToolError::Poison(_)) => return Err(EngineError::Tool { step, source }),
        };
        match result {
            Ok(output) => {
                let events = self.session.finish(step, tool, output)?;
                points.point(AFTER_COMMIT);
                self.tell(&events)?;
                Ok(Attempt::Done)
            }
            Err(why) => {
                let error = one_line(&why);
                self.commit(&Command::Fail { step, error: error.clone() })?;
                Ok(Attempt::Failed(error))
            }
        }
    }

    /// The key of the effect of a step.
    pub(super) fn key(&self, step: u32) -> IdempotencyKey {
        let task = self.session.task().clone();
        if self.settings.unsafe_keys {
            IdempotencyKey::fresh_for_attempt(task, step, self.session.state().current.attempts)
        } else {
            IdempotencyKey::new(task, step)
        }
    }

    pub(super) fn context<'c>(&'c self, key: &'c IdempotencyKey, prepared: &'c Prepared) -> ToolContext<'c> {
        let crash = self.crash.scope(Some(prepared.step.idx));
        ToolContext { key, world: &self.settings.world, outputs: &prepared.outputs, crash, stop: self.stop }
    }
}

/// A message for the journal: one line of bounded length, without control characters, which names of files may have.
fn one_line(text: &str) -> String {
    let parts = text.split(char::is_control).map(str::trim).filter(|part| !part.is_empty());
    let mut line = parts.collect::<Vec<_>>().join(" ");
    if line.len() > limits::ERROR_TEXT_BYTES {
        let end = (0..=limits::ERROR_TEXT_BYTES).rev().find(|&at| line.is_char_boundary(at)).unwrap_or_default();
        line.truncate(end);
        line.push('…');
    }
    line
}

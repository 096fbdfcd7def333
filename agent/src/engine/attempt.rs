//! One attempt of one step: its start, its effect, its end.

use std::io;

use serde_json::{Map, Value};
use store::crash::{AFTER_COMMIT, AFTER_EFFECT, BEFORE_EFFECT};
use store::machine::Command;
use store::model::{Failure, IdempotencyKey};
use store::{ErrorKind, SessionError, limits, line};
use tools::{Attempt as ToolAttempt, Effect, Input, Spec, ToolContext, ToolError};

use super::prepared::Prepared;
use super::{EngineError, Runner};

/// How an attempt ended.
pub(super) enum Attempt {
    /// The step is done.
    Done,
    /// The tool failed, which is journaled with what it said.
    Failed,
    /// It was given up in order, before its effect or without one, which is journaled.
    Released,
    /// There was none: the attempts are used up, and the task is over.
    Over,
}

/// Why an attempt is given up.
const STOPPED: &str = "the process was asked to stop";

impl Runner<'_, '_> {
    pub(super) fn attempt(&mut self, prepared: &Prepared) -> Result<Attempt, EngineError> {
        let step = prepared.step.idx;
        let tool = prepared.tool.spec().name.as_str();
        let budget = self.budget(Some(step))?;
        self.commit(&Command::Start { step, tool: tool.to_owned(), budget, intent: None })?;
        if self.session.state().status.is_over() {
            return Ok(Attempt::Over);
        }
        let points = self.crash.scope(Some(step));
        points.point(BEFORE_EFFECT);
        self.stop.sleep(self.settings.step_delay);
        if self.stop.asked() {
            return self.release(step);
        }
        let key = self.key(step);
        let result = prepared.tool.call(&self.context(&key, prepared), Input(&prepared.step.input));
        points.point(AFTER_EFFECT);
        let result = match result {
            Ok(output) => check_output(prepared.tool.spec(), &output)
                .map(|()| output)
                .map_err(|why| Failure::plain(one_line(&why))),
            Err(ToolError::Step(why) | ToolError::Transient { why, .. } | ToolError::Unknown { why, .. }) => {
                Err(Failure::plain(one_line(&why)))
            }
            Err(ToolError::Permanent(why)) => Err(Failure { permanent: true, ..Failure::plain(one_line(&why)) }),
            Err(ToolError::Stopped) => return self.release(step),
            Err(source @ ToolError::Poison(_)) => return Err(EngineError::Tool { step, source }),
        };
        match result {
            Ok(output) => match self.session.finish(step, tool, output) {
                Ok(events) => {
                    points.point(AFTER_COMMIT);
                    self.tell(&events)?;
                    Ok(Attempt::Done)
                }
                Err(error) => self.not_stored(prepared, error),
            },
            Err(failure) => {
                self.commit(&Command::Fail { step, failure, goes_on: false })?;
                Ok(Attempt::Failed)
            }
        }
    }

    /// The step's end could not be stored, and nothing of it is. Three such runs must not fail the task without a word
    /// in its journal, so the cause is recorded, for which there may still be room.
    fn not_stored(&mut self, prepared: &Prepared, error: SessionError) -> Result<Attempt, EngineError> {
        let step = prepared.step.idx;
        let why = one_line(&format!("the output cannot be stored: {}", line(&error)));
        let SessionError::Store(cause) = &error else { return Err(error.into()) };
        match cause.kind() {
            ErrorKind::TooLarge => {
                self.commit(&Command::Fail { step, failure: Failure::plain(why), goes_on: false })?;
                Ok(Attempt::Failed)
            }
            ErrorKind::Full => {
                let free = prepared.tool.effect(&prepared.step.input) == Effect::Pure;
                let command = if free {
                    Command::Release { step, reason: why }
                } else {
                    Command::Fail { step, failure: Failure::plain(why), goes_on: false }
                };
                if let Ok(events) = self.session.apply(&command) {
                    self.tell(&events)?;
                }
                Err(error.into())
            }
            _ => Err(error.into()),
        }
    }

    /// It does not count: three polite stops must not fail a task.
    fn release(&mut self, step: u32) -> Result<Attempt, EngineError> {
        self.commit(&Command::Release { step, reason: STOPPED.to_owned() })?;
        Ok(Attempt::Released)
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
        let attempt = ToolAttempt::first(prepared.tool.effect(&prepared.step.input));
        ToolContext { key, world: &self.settings.world, outputs: &prepared.outputs, crash, stop: self.stop, attempt }
    }
}

/// Whether an output can be stored: it fits its tool's schema, and it is not larger than what a database holds.
fn check_output(spec: &Spec, output: &Map<String, Value>) -> Result<(), String> {
    tools::check_output(spec, output)?;
    check_size(&spec.name, output, limits::OUTPUT_BYTES)
}

fn check_size(tool: &str, output: &Map<String, Value>, most: usize) -> Result<(), String> {
    let fits = serde_json::to_writer(Room(most), output).is_ok();
    if fits { Ok(()) } else { Err(format!("the output of {tool} is larger than {most} bytes, as JSON")) }
}

/// Takes what is written until there is no room left.
struct Room(usize);

impl io::Write for Room {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self.0.checked_sub(bytes.len()).ok_or(io::ErrorKind::FileTooLarge)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A message for the journal: one line of bounded length, without control characters, which names of files may have.
pub(super) fn one_line(text: &str) -> String {
    let parts = text.split(char::is_control).map(str::trim).filter(|part| !part.is_empty());
    let mut line = parts.collect::<Vec<_>>().join(" ");
    if line.len() > limits::ERROR_TEXT_BYTES {
        let end = (0..=limits::ERROR_TEXT_BYTES).rev().find(|&at| line.is_char_boundary(at)).unwrap_or_default();
        line.truncate(end);
        line.push('…');
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The limit was declared and nobody asked: an output of 900 MB ended in an error of the database, three times
    /// over.
    #[test]
    fn an_output_that_is_too_large_is_an_error_of_its_step() {
        let output = Map::from_iter([("text".to_owned(), Value::from("\u{1}\u{1}"))]);
        let size = Value::Object(output.clone()).to_string().len();
        assert_eq!(check_size("fetch", &output, size), Ok(()));
        let error = check_size("fetch", &output, size - 1).unwrap_err();
        assert!(error.contains("fetch") && error.contains("larger than 22 bytes"), "{error}");
    }
}

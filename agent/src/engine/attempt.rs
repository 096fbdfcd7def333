//! One attempt of one step: what comes before it, its start, its effect, its end.

use std::cell::RefCell;
use std::time::Duration;

use serde_json::{Map, Value};
use store::crash::{AFTER_COMMIT, AFTER_EFFECT, BEFORE_EFFECT};
use store::machine::Command;
use store::model::{Effect, Failure, IdempotencyKey, Intent, Wait};
use store::{ErrorKind, SessionError, StoreError, limits, line};
use tools::{Attempt, Input, Pause, Spec, ToolContext, ToolError};

use super::call::End;
use super::prepared::Prepared;
use super::{EngineError, Runner};

/// Why an attempt is given up.
const STOPPED: &str = "the process was asked to stop";

impl Runner<'_, '_> {
    /// Takes the step on by one attempt, or by what comes before one: what has become of it is in the state.
    pub(super) fn attempt(&mut self, prepared: &Prepared) -> Result<(), EngineError> {
        let step = prepared.step.idx;
        let tool = prepared.tool.spec().name.as_str();
        if prepared.skipped {
            return self.commit(&Command::Skip { step });
        }
        if let Some(wait) = self.wait_before(prepared) {
            return self.commit(&wait);
        }
        let budget = self.budget(Some(step), &prepared.rules)?;
        let intent = self.intent(prepared);
        self.commit(&Command::Start { step, tool: tool.to_owned(), budget, intent })?;
        if self.session.state().running() != Some(step) {
            return Ok(());
        }
        let points = self.crash.scope(Some(step));
        points.point(BEFORE_EFFECT);
        self.stop.sleep(self.settings.step_delay);
        if self.stop.asked() {
            return self.release(step);
        }
        let end = self.call(prepared)?;
        points.point(AFTER_EFFECT);
        match end {
            // What a stop has cut off is not an error: it stays under way, and the next run recovers it by its class.
            End::Failed { failure, .. }
                if self.stop.asked() && failure.unknown && prepared.rules.effect != Effect::Pure =>
            {
                Ok(())
            }
            End::Done { output, adopted } => self.finish(prepared, &output, adopted),
            End::Failed { failure, later, after } => self.fail(prepared, failure, later, after),
            End::Doubt(known) => self.commit(&Command::Doubt { step, known: self.told(&known) }),
            End::Released => self.release(step),
        }
    }

    /// The wait that comes before the first attempt, where it has not been or was for something else.
    fn wait_before(&self, prepared: &Prepared) -> Option<Command> {
        let (step, current, now) = (prepared.step.idx, self.session.state().current, self.session.now());
        // What is wrong with the input is an error of the attempt.
        if prepared.fault.is_some() {
            return None;
        }
        match prepared.tool.wait(Input(&prepared.input)).ok().flatten()? {
            Pause::Until(due) => {
                let until = due.since(now);
                let first = current.wait.is_none() && current.attempts_charged() == 0;
                (first && until > now).then_some(Command::Wait { step, wait: Wait::Until(until), shown: None })
            }
            Pause::Approval { expires, .. } => {
                let shown = prepared.digest(&self.settings.world.secrets);
                let wait = Wait::Approval { expires: expires.map(|expires| expires.since(now)) };
                let asks = current.wait.is_none_or(|wait| !matches!(wait, Wait::Approval { .. }));
                (asks && !current.is_answered(shown)).then_some(Command::Wait { step, wait, shown: Some(shown) })
            }
        }
    }

    /// What the attempt is about to do. Nothing is said of a step that changes nothing and whose input is taken as it
    /// stands: its rows stay small.
    fn intent(&self, prepared: &Prepared) -> Option<Intent> {
        let (current, effect) = (self.session.state().current, prepared.rules.effect);
        let says = effect != Effect::Pure || prepared.scope.is_some() || current.intent.is_some();
        says.then(|| Intent { digest: prepared.digest(&self.settings.world.secrets), effect })
    }

    /// The call of the tool. A checkpoint is committed while it is under way.
    fn call(&mut self, prepared: &Prepared) -> Result<End, EngineError> {
        let step = prepared.step.idx;
        let (key, current) = (self.key(step), self.session.state().current);
        let (settings, stop, crash) = (self.settings, self.stop, self.crash.scope(Some(step)));
        let kept = RefCell::new((&mut *self, None));
        let keep = |checkpoint: &Value| {
            let (runner, failed) = &mut *kept.borrow_mut();
            runner.keep(step, checkpoint).map_err(|error| match error {
                Kept::TooLarge(why) => ToolError::Permanent(why),
                Kept::Engine(error) => {
                    let why = line(&error);
                    *failed = Some(error);
                    ToolError::Poison(why)
                }
            })
        };
        let attempt = Attempt {
            number: current.attempts,
            effect: current.effect(),
            repeated: current.may_have_happened(),
            timeout: prepared.rules.timeout,
            checkpoint: prepared.step.checkpoint.as_ref(),
            keep: Some(&keep),
            answer: prepared.step.answer.as_ref(),
        };
        let outputs = &prepared.outputs;
        let ctx = ToolContext { key: &key, world: &settings.world, outputs, crash, stop, attempt };
        let end = prepared.call(ctx, current.asks_first());
        match kept.into_inner().1 {
            Some(error) => Err(error),
            None => end.map_err(|source| EngineError::Tool { step, source }),
        }
    }

    fn keep(&mut self, step: u32, checkpoint: &Value) -> Result<(), Kept> {
        let hidden = self.settings.world.secrets.hide_in(checkpoint).to_string();
        if hidden.len() > limits::CHECKPOINT_BYTES {
            let why =
                format!("its checkpoint has {} bytes, at most {} are kept", hidden.len(), limits::CHECKPOINT_BYTES);
            return Err(Kept::TooLarge(why));
        }
        self.commit(&Command::Checkpoint { step, checkpoint: hidden }).map_err(Kept::Engine)
    }

    /// The effect has happened, so it is the commit that is repeated where it fails, and never the effect.
    fn finish(&mut self, prepared: &Prepared, output: &Map<String, Value>, adopted: bool) -> Result<(), EngineError> {
        let (step, spec) = (prepared.step.idx, prepared.tool.spec());
        // What a check has found is as its plan has it.
        let as_planned = adopted && prepared.check.is_some();
        let output = match self.checked(spec, output, as_planned) {
            Ok(output) => output,
            // What the effect has given cannot be kept, but it has been.
            Err(why) => {
                let failure = Failure { unknown: true, ..Failure::plain(self.told(&why)) };
                return self.fail(prepared, failure, false, None);
            }
        };
        let (stop, mut tries, mut pause) = (self.stop, 1, limits::COMMIT_PAUSE);
        let mut again = |error: &StoreError| {
            let passes = matches!(error.kind(), ErrorKind::Busy | ErrorKind::Full);
            tries += 1;
            let goes_on = passes && tries <= limits::COMMIT_TRIES && !stop.asked();
            if goes_on {
                stop.sleep(pause);
                pause *= 4;
            }
            goes_on
        };
        let command = Command::Finish { step, tool: spec.name.clone(), adopted };
        match self.session.apply_with(&command, output, &mut again) {
            Ok(events) => {
                self.crash.scope(Some(step)).point(AFTER_COMMIT);
                self.tell(&events)
            }
            Err(error) => self.not_stored(prepared, error),
        }
    }

    /// The output as the text of JSON, if it can be stored: it fits its tool's schema, unless the plan has made it, and
    /// it is not larger than what a database holds.
    fn checked(&self, spec: &Spec, output: &Map<String, Value>, as_planned: bool) -> Result<String, String> {
        if !as_planned {
            tools::check_output(spec, output)?;
        }
        let secrets = &self.settings.world.secrets;
        let text = match secrets.longest() {
            0 => serde_json::to_string(output),
            _ => serde_json::to_string(&secrets.hide_in(&Value::Object(output.clone()))),
        };
        let text = text.map_err(|error| error.to_string())?;
        check_size(&spec.name, text, limits::OUTPUT_BYTES)
    }

    /// The step's end could not be stored, and nothing of it is. Three such runs must not fail the task without a word
    /// in its journal, so the cause is recorded, for which there may still be room.
    fn not_stored(&mut self, prepared: &Prepared, error: SessionError) -> Result<(), EngineError> {
        let step = prepared.step.idx;
        let why = one_line(&format!("the output cannot be stored: {}", line(&error)));
        let SessionError::Store(cause) = &error else { return Err(error.into()) };
        let failure = Failure { unknown: true, ..Failure::plain(why.clone()) };
        match cause.kind() {
            ErrorKind::TooLarge => self.fail(prepared, failure, false, None),
            ErrorKind::Full => {
                let command = match self.session.state().current.effect() {
                    Effect::Pure => Command::Release { step, reason: why },
                    _ => Command::Fail { step, failure, goes_on: prepared.rules.goes_on },
                };
                if let Ok(events) = self.session.apply(&command) {
                    self.tell(&events)?;
                }
                Err(error.into())
            }
            _ => Err(error.into()),
        }
    }

    fn fail(
        &mut self,
        prepared: &Prepared,
        mut failure: Failure,
        later: bool,
        after: Option<Duration>,
    ) -> Result<(), EngineError> {
        let (step, charged) = (prepared.step.idx, self.session.state().current.attempts_charged());
        let rules = &prepared.rules;
        failure.retry_at = rules.retry_at(&self.key(step), charged, later, after, self.session.now());
        failure.error = self.told(&failure.error);
        self.commit(&Command::Fail { step, failure, goes_on: rules.goes_on })
    }

    /// What may be told of an attempt: one line, without secrets.
    fn told(&self, text: &str) -> String {
        one_line(&self.settings.world.secrets.hide(text))
    }

    /// It does not count: three polite stops must not fail a task.
    fn release(&mut self, step: u32) -> Result<(), EngineError> {
        self.commit(&Command::Release { step, reason: STOPPED.to_owned() })
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
}

/// Why a checkpoint is not kept.
enum Kept {
    TooLarge(String),
    Engine(EngineError),
}

fn check_size(tool: &str, text: String, most: usize) -> Result<String, String> {
    let fits = text.len() <= most;
    if fits { Ok(text) } else { Err(format!("the output of {tool} is larger than {most} bytes, as JSON")) }
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
        let text = Value::Object(output).to_string();
        assert_eq!(check_size("fetch", text.clone(), text.len()), Ok(text.clone()));
        let error = check_size("fetch", text.clone(), text.len() - 1).unwrap_err();
        assert!(error.contains("fetch") && error.contains("larger than 22 bytes"), "{error}");
    }
}

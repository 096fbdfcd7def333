//! The call of a tool, and what it says of itself.

use std::time::Duration;

use serde_json::{Map, Value};
use store::model::{Effect, Failure};
use tools::{Input, Probe, ToolContext, ToolError};

use super::prepared::Prepared;

/// What has come of a call. What is to come of that is the machine's to decide.
pub(super) enum End {
    /// The effect has happened.
    Done {
        /// What it gives.
        output: Map<String, Value>,
        /// Whether it was there already.
        adopted: bool,
    },
    /// The tool failed.
    Failed {
        /// What is known.
        failure: Failure,
        /// Whether the tool says that waiting helps.
        later: bool,
        /// How long the other side asks to be left alone.
        after: Option<Duration>,
    },
    /// Nobody but a person can find out what an earlier attempt has done.
    Doubt(String),
    /// It was given up in order, before its effect or without one.
    Released,
}

impl Prepared {
    /// Asks first, where an earlier attempt may have had its effect and that can be found out; then calls the tool.
    ///
    /// # Errors
    /// The process must stop without recording anything.
    pub(super) fn call(&self, mut ctx: ToolContext<'_>, asks_first: bool) -> Result<End, ToolError> {
        if let Some(why) = &self.fault {
            return Ok(failed(Failure { permanent: true, ..Failure::plain(why) }, false, None));
        }
        let input = Input(&self.input);
        if asks_first {
            match self.ask(&ctx) {
                Ok(Probe::Happened(output)) => return Ok(End::Done { output, adopted: true }),
                Ok(Probe::Absent) => ctx.attempt.repeated = false,
                Ok(Probe::Unknown(why)) | Err(ToolError::Permanent(why)) => return Ok(End::Doubt(why)),
                Err(ToolError::Stopped) => return Ok(End::Released),
                Err(poison @ ToolError::Poison(_)) => return Err(poison),
                // Nothing was found out, and nothing was done.
                Err(ToolError::Step(why)) => return Ok(failed(Failure::plain(why), true, None)),
                Err(ToolError::Transient { why, after } | ToolError::Unknown { why, after }) => {
                    return Ok(failed(Failure::plain(why), true, after));
                }
            }
        }
        let failure = |why: String| Failure { absent: asks_first, ..Failure::plain(why) };
        Ok(match self.tool.call(&ctx, input) {
            Ok(output) => self.done(output),
            Err(ToolError::Step(why)) => failed(failure(why), false, None),
            Err(ToolError::Transient { why, after }) => failed(failure(why), true, after),
            Err(ToolError::Permanent(why)) => failed(Failure { permanent: true, ..failure(why) }, false, None),
            Err(ToolError::Unknown { why, after }) => failed(Failure { unknown: true, ..failure(why) }, true, after),
            Err(ToolError::Stopped) => End::Released,
            Err(poison @ ToolError::Poison(_)) => return Err(poison),
        })
    }
}

impl Prepared {
    /// Whether the effect of an earlier attempt has happened.
    fn ask(&self, ctx: &ToolContext<'_>) -> Result<Probe, ToolError> {
        match (&self.check, &self.scope) {
            (Some(check), Some(scope)) => check.ask(ctx, scope),
            _ => self.tool.probe(ctx, Input(&self.input)),
        }
    }

    /// The tool has done its part; whether the step is done may be for its plan to say.
    fn done(&self, output: Map<String, Value>) -> End {
        let until = self.step.setting("until");
        let (Some(until), Some(scope)) = (until, &self.scope) else { return End::Done { output, adopted: false } };
        // What has an effect has had it: the class has to allow that it is asked for once more.
        let failure = |why: String| Failure { unknown: self.rules.effect != Effect::Pure, ..Failure::plain(why) };
        match scope.holds("until", until, Some(&output)) {
            Ok(true) => End::Done { output, adopted: false },
            Ok(false) => failed(failure("what `until` waits for has not come yet".to_owned()), true, None),
            Err(why) => failed(Failure { permanent: true, ..failure(why) }, false, None),
        }
    }
}

fn failed(failure: Failure, later: bool, after: Option<Duration>) -> End {
    End::Failed { failure, later, after }
}

//! What a tool is.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::{Map, Value};
pub use store::model::Effect;
use store::model::{IdempotencyKey, PlanError};
use store::{CrashScope, CrashSite};

use crate::attempt::{Attempt, Audit, Backoff, Pause, Probe};
use crate::error::ToolError;
use crate::schema::{Field, Form};
use crate::stop::Stop;
use crate::world::World;

/// One kind of step.
pub trait Tool: Send + Sync {
    /// What it is.
    fn spec(&self) -> &Spec;

    /// What happens when an attempt with this input is repeated: what [`Spec::effect`] says, or less.
    fn effect(&self, _input: &Map<String, Value>) -> Effect {
        self.spec().effect
    }

    /// The secrets that this input names in a way of its own, beside those that stand in its texts.
    fn secrets(&self, _input: &Map<String, Value>) -> Vec<String> {
        Vec::new()
    }

    /// What the fields cannot say one by one, such as that one of two must be there. They fit [`Spec::input`].
    ///
    /// # Errors
    /// The field at fault.
    fn check(&self, _input: &Map<String, Value>, _form: Form) -> Result<(), PlanError> {
        Ok(())
    }

    /// What a step with this input waits for before its first attempt.
    ///
    /// # Errors
    /// The input names no time that there is.
    fn wait(&self, _input: Input<'_>) -> Result<Option<Pause>, ToolError> {
        Ok(None)
    }

    /// Does one attempt of a step and returns its output, which must fit [`Spec::output`].
    ///
    /// A process may die at any instruction of it and call it again with the same key; then the outcome must be that of
    /// a single call. Places in between that deserve a crash test are marked with [`ToolContext::crash`].
    ///
    /// # Errors
    /// See [`ToolError`]: whether the step may be tried again, or the process must stop.
    fn call(&self, ctx: &ToolContext<'_>, input: Input<'_>) -> Result<Map<String, Value>, ToolError>;

    /// Asks, without changing anything, whether the effect of an earlier attempt has happened. Only for a step whose
    /// class is [`Effect::Verifiable`].
    ///
    /// # Errors
    /// See [`ToolError`]: nothing was found out.
    fn probe(&self, _ctx: &ToolContext<'_>, _input: Input<'_>) -> Result<Probe, ToolError> {
        Ok(Probe::Unknown(format!("{} cannot be asked what it has done", self.spec().name)))
    }

    /// What a step with this input is called where people follow its progress: the tool's name, or what says more.
    fn label(&self, _input: &Map<String, Value>) -> String {
        self.spec().name.clone()
    }

    /// The files that a step with this input reads, which nobody else should write to.
    fn reads(&self, _world: &World, _input: &Map<String, Value>) -> Vec<PathBuf> {
        Vec::new()
    }

    /// Removes what a killed attempt of this step left behind, such as temporary files. Called under the task's lock,
    /// before the step is set back to pending; it may itself be killed and called again.
    ///
    /// # Errors
    /// See [`ToolError`].
    fn sweep(&self, _ctx: &ToolContext<'_>, _input: Input<'_>) -> Result<(), ToolError> {
        Ok(())
    }

    /// Looks at the world, without changing it, whether the effect of a finished step is still what its output
    /// promised.
    fn audit(&self, _ctx: &ToolContext<'_>, input: Input<'_>, _output: &Map<String, Value>) -> Audit {
        if self.effect(input.0) == Effect::Pure { Audit::Sound } else { Audit::NotLookedAt }
    }
}

/// What a tool is, as data.
#[derive(Clone, Debug)]
pub struct Spec {
    /// The name that plans call it by.
    pub name: String,
    /// What it does, one sentence.
    pub about: String,
    /// What happens at most when an attempt is repeated; of one input, see [`Tool::effect`].
    pub effect: Effect,
    /// What it takes.
    pub input: Vec<Field>,
    /// What it gives.
    pub output: Vec<Field>,
    /// Whether what it gives may have further fields.
    pub open: bool,
    /// Its own crash points, beside those that every step has.
    pub crash_points: Vec<CrashSite>,
    /// How it is tried again where neither the plan nor the environment says so; at once and a few times, if not at
    /// all.
    pub retry: Option<Backoff>,
    /// A plan that shows it, and that the crash tests run.
    pub example: Example,
}

/// A whole plan whose last step is the tool.
#[derive(Clone, Debug)]
pub struct Example {
    /// The plan file.
    pub plan: String,
    /// The files that it reads: path relative to the working directory, content.
    pub files: Vec<(String, String)>,
    /// What must be there beside the files, such as a server; without it the example cannot be run.
    pub needs: Option<&'static str>,
}

/// What one attempt may use.
#[derive(Debug)]
pub struct ToolContext<'a> {
    /// Names the effect: the same for every attempt of the step.
    pub key: &'a IdempotencyKey,
    /// Settings of the run.
    pub world: &'a World,
    /// The committed outputs of the earlier steps that the input names, and no others.
    pub outputs: &'a Outputs,
    /// Crash points of this step.
    pub crash: CrashScope<'a>,
    /// Whether the process has been asked to stop. A call that may take long looks at it.
    pub stop: &'a Stop,
    /// What is known of the attempt.
    pub attempt: Attempt<'a>,
}

/// Committed outputs by step index.
pub type Outputs = BTreeMap<u32, Map<String, Value>>;

/// A step's input, with access by kind.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a>(pub &'a Map<String, Value>);

impl<'a> Input<'a> {
    /// A [`crate::Kind::Text`] field.
    ///
    /// # Errors
    /// The field is not there: the task was created by a program that did not check it.
    pub fn text(self, field: &str) -> Result<&'a str, ToolError> {
        self.0.get(field).and_then(Value::as_str).ok_or_else(|| ToolError::step(format!("input has no text `{field}`")))
    }

    /// A [`crate::Kind::Any`] field.
    ///
    /// # Errors
    /// The field is not there.
    pub fn any(self, field: &str) -> Result<&'a Value, ToolError> {
        self.0.get(field).ok_or_else(|| ToolError::step(format!("input has no `{field}`")))
    }

    /// The text that a [`crate::Kind::From`] field points at: the named field of the output of the step it names.
    ///
    /// # Errors
    /// The step, its output or that field is not there.
    pub fn from(self, field: &str, outputs: &'a Outputs, wanted: &str) -> Result<&'a str, ToolError> {
        let step = self.0.get(field).and_then(Value::as_u64).and_then(|step| u32::try_from(step).ok());
        let step = step.ok_or_else(|| ToolError::step(format!("input has no step index `{field}`")))?;
        let output = outputs.get(&step).ok_or_else(|| ToolError::step(format!("step {step} has no output")))?;
        let text = output.get(wanted).and_then(Value::as_str);
        text.ok_or_else(|| ToolError::step(format!("the output of step {step} has no text `{wanted}`")))
    }
}

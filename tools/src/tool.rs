//! What a tool is.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::{Map, Value};
pub use store::model::Effect;
use store::model::IdempotencyKey;
use store::{CrashScope, CrashSite};

use crate::schema::Field;
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

    /// Does one attempt of a step and returns its output, which must fit [`Spec::output`].
    ///
    /// A process may die at any instruction of it and call it again with the same key; then the outcome must be that of
    /// a single call. Places in between that deserve a crash test are marked with [`ToolContext::crash`].
    ///
    /// # Errors
    /// See [`ToolError`]: whether the step may be tried again, or the process must stop.
    fn call(&self, ctx: &ToolContext<'_>, input: Input<'_>) -> Result<Map<String, Value>, ToolError>;

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
    fn sweep(&self, _ctx: &ToolContext<'_>) -> Result<(), ToolError> {
        Ok(())
    }

    /// Looks at the world, without changing it, whether the effect of a finished step is still what its output
    /// promised. The error says what is not, one line.
    ///
    /// # Errors
    /// What is missing or different.
    fn audit(&self, _ctx: &ToolContext<'_>, _input: Input<'_>, _output: &Map<String, Value>) -> Result<(), String> {
        Ok(())
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
    /// Its own crash points, beside those that every step has.
    pub crash_points: Vec<CrashSite>,
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

/// Why an attempt did not succeed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ToolError {
    /// This attempt failed; it is journaled, and tried again while attempts are left.
    #[error("{0}")]
    Step(String),
    /// The attempt was given up since [`ToolContext::stop`] asks for it. Only for a call without effect, or before its
    /// effect has begun: nothing needs to be found out about it.
    #[error("given up, the process has been asked to stop")]
    Stopped,
    /// The disk can no longer be trusted, a sync failed. The process must stop without recording anything: the kernel
    /// may have dropped the very pages that a second sync would report as written.
    #[error("{0}")]
    Poison(String),
}

impl ToolError {
    /// A failed attempt, with what went wrong.
    pub fn step(why: impl Into<String>) -> Self {
        Self::Step(why.into())
    }
}

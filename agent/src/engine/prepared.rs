//! A step with everything that its attempt needs, read before the attempt is counted.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Map, Value};
use store::model::{Digest, StepStatus, TaskId, TaskState};
use store::{Reader, StepRow, StoreError};
use tools::{Effect, Outputs, Registry, Tool, World};

use super::EngineError;
use super::history::History;
use super::rules::Rules;

pub(super) struct Prepared {
    /// Its row, but for the input.
    pub(super) step: StepRow,
    pub(super) tool: Arc<dyn Tool>,
    /// What the tool takes.
    pub(super) input: Map<String, Value>,
    /// Whether that was made from the step's input, and is not the input as it stands.
    pub(super) is_rendered: bool,
    /// The outputs that its input names.
    pub(super) outputs: Outputs,
    /// Why there is not all that its input names, and never will be.
    pub(super) missing: Option<String>,
    /// What it goes by.
    pub(super) rules: Rules,
}

impl Prepared {
    pub(super) fn read(
        reader: &mut dyn Reader,
        task: &TaskId,
        mut step: StepRow,
        tools: &Registry,
        max_attempts: Option<u32>,
    ) -> Result<Self, EngineError> {
        let bad = |why: String| EngineError::Stored { task: task.clone(), step: Some(step.idx), why };
        let Some(tool) = tools.find(&step.tool) else {
            return Err(bad(format!("this program has no tool `{}`; another version created the task", step.tool)));
        };
        let rules = Rules::of(&step, tool.as_ref(), max_attempts).map_err(bad)?;
        let (mut outputs, mut missing) = (Outputs::new(), None);
        for source in tools::named_steps(tool.spec(), &step.input) {
            match stored_output(reader, tools, task, source) {
                Ok(output) => drop(outputs.insert(source, output)),
                Err(Stored::Never(status)) => {
                    missing = Some(format!("it reads step {source}, which is {status} and has no output"));
                }
                Err(Stored::Unreadable(error)) => return Err(error.into()),
                Err(Stored::Wrong(why)) => return Err(bad(format!("it reads step {source}, but {why}"))),
            }
        }
        let (tool, input) = (Arc::clone(tool), std::mem::take(&mut step.input));
        Ok(Self { step, tool, input, is_rendered: false, outputs, missing, rules })
    }

    /// The digest of what the tool takes.
    pub(super) fn digest(&self) -> Digest {
        Digest::of(&self.input)
    }

    /// Refuses to repeat a step with an effect into another artifacts folder, once a process has ended in it: what it
    /// did is in the first one, and would stand in both.
    pub(super) fn check_artifacts(
        &self,
        reader: &mut dyn Reader,
        task: &TaskId,
        state: TaskState,
        world: &World,
    ) -> Result<(), EngineError> {
        if self.rules.effect == Effect::Pure || state.current.attempts == 0 {
            return Ok(());
        }
        let step = self.step.idx;
        let before = reader.task(task)?.and_then(|row| row.artifacts).map(PathBuf::from);
        let Some(before) = before.filter(|before| !same_folder(&world.at(before), &world.at(&world.artifacts))) else {
            return Ok(());
        };
        if state.running() == Some(step) || History::of(reader, task, Some(step))?.was_interrupted() {
            return Err(EngineError::Artifacts { task: task.clone(), step, before, now: world.artifacts.clone() });
        }
        Ok(())
    }
}

pub(super) fn no_such_step(task: &TaskId, step: u32) -> EngineError {
    EngineError::Stored { task: task.clone(), step: None, why: format!("it has no step {step}") }
}

/// Whether the step at the cursor can be run, as far as reading tells: a fault that is found here costs no attempt and
/// changes nothing.
///
/// # Errors
/// It cannot.
pub(crate) fn preflight(
    reader: &mut dyn Reader,
    task: &TaskId,
    state: TaskState,
    tools: &Registry,
    world: &World,
) -> Result<(), EngineError> {
    let Some(step) = state.step().filter(|_| !state.status.is_over()) else { return Ok(()) };
    let row = reader.steps(task, step, 1)?.pop().ok_or_else(|| no_such_step(task, step))?;
    let prepared = Prepared::read(reader, task, row, tools, None)?;
    prepared.check_artifacts(reader, task, state, world)
}

fn same_folder(one: &Path, other: &Path) -> bool {
    one == other || matches!((one.canonicalize(), other.canonicalize()), (Ok(one), Ok(other)) if one == other)
}

/// Why a stored output cannot be used.
pub(crate) enum Stored {
    Unreadable(StoreError),
    Wrong(String),
    /// The step has ended without one.
    Never(StepStatus),
}

/// The committed output of a step, checked against the schema of its tool.
///
/// # Errors
/// It is not there, or not what the tool gives.
pub(crate) fn stored_output(
    reader: &mut dyn Reader,
    tools: &Registry,
    task: &TaskId,
    step: u32,
) -> Result<Map<String, Value>, Stored> {
    let row = reader.steps(task, step, 1).map_err(Stored::Unreadable)?.pop().filter(|row| row.idx == step);
    let row = row.ok_or_else(|| Stored::Wrong("there is no such step".to_owned()))?;
    if matches!(row.state.status, StepStatus::Skipped | StepStatus::Failed) {
        return Err(Stored::Never(row.state.status));
    }
    let output = reader.output(task, step).map_err(Stored::Unreadable)?;
    let output = output.ok_or_else(|| Stored::Wrong("that step has no output".to_owned()))?;
    if let Some(tool) = tools.find(&row.tool) {
        tools::check_output(tool.spec(), &output).map_err(Stored::Wrong)?;
    }
    Ok(output)
}

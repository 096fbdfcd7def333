//! A step with everything that its attempt needs, read before the attempt is counted.

use serde_json::{Map, Value};
use store::model::{TaskId, TaskState};
use store::{Reader, StepRow, StoreError};
use tools::{Outputs, Tool};

use super::EngineError;

/// Finds a tool by the name that plans call it by.
pub(crate) type Lookup<'a> = &'a dyn Fn(&str) -> Option<&'static dyn Tool>;

pub(super) struct Prepared {
    pub(super) step: StepRow,
    pub(super) tool: &'static dyn Tool,
    /// The outputs that its input names.
    pub(super) outputs: Outputs,
}

impl Prepared {
    pub(super) fn read(
        reader: &mut dyn Reader,
        task: &TaskId,
        step: StepRow,
        tools: Lookup<'_>,
    ) -> Result<Self, EngineError> {
        let bad = |why: String| EngineError::Stored { task: task.clone(), step: Some(step.idx), why };
        let Some(tool) = tools(&step.tool) else {
            return Err(bad(format!("this program has no tool `{}`; another version created the task", step.tool)));
        };
        let mut outputs = Outputs::new();
        for source in tools::named_steps(tool.spec(), &step.input) {
            let output = stored_output(reader, task, source).map_err(|error| match error {
                Stored::Unreadable(error) => error.into(),
                Stored::Wrong(why) => bad(format!("it reads step {source}, but {why}")),
            })?;
            outputs.insert(source, output);
        }
        Ok(Self { step, tool, outputs })
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
    tools: Lookup<'_>,
) -> Result<(), EngineError> {
    if state.status.is_over() || state.no_step_left() {
        return Ok(());
    }
    match reader.steps(task, state.cursor, 1)?.pop() {
        Some(row) => Prepared::read(reader, task, row, tools).map(drop),
        None => Err(no_such_step(task, state.cursor)),
    }
}

/// Why a stored output cannot be used.
pub(crate) enum Stored {
    Unreadable(StoreError),
    Wrong(String),
}

/// The committed output of a step, checked against the schema of its tool.
///
/// # Errors
/// It is not there, or not what the tool gives.
pub(crate) fn stored_output(reader: &mut dyn Reader, task: &TaskId, step: u32) -> Result<Map<String, Value>, Stored> {
    let row = reader.steps(task, step, 1).map_err(Stored::Unreadable)?.pop().filter(|row| row.idx == step);
    let row = row.ok_or_else(|| Stored::Wrong("there is no such step".to_owned()))?;
    let output = reader.output(task, step).map_err(Stored::Unreadable)?;
    let output = output.ok_or_else(|| Stored::Wrong("that step has no output".to_owned()))?;
    if let Some(tool) = tools::find(&row.tool) {
        tools::check_output(tool.spec(), &output).map_err(Stored::Wrong)?;
    }
    Ok(output)
}

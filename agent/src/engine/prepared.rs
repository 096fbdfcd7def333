//! A step with everything that its attempt needs, read before the attempt is counted.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Map, Value};
use store::model::{Digest, IdempotencyKey, StepStatus, TaskId, TaskState};
use store::{Reader, StepRow, StoreError, limits};
use tools::{Effect, Form, Outputs, Registry, Secrets, Tool, World};

use super::EngineError;
use super::check::Check;
use super::history::History;
use super::rules::Rules;
use crate::language::{Earlier, READS, SECRETS, Scope};

pub(crate) struct Prepared {
    /// Its row, but for the input.
    pub(super) step: StepRow,
    pub(crate) tool: Arc<dyn Tool>,
    /// What the tool takes.
    pub(crate) input: Map<String, Value>,
    /// The outputs that its input names.
    pub(crate) outputs: Outputs,
    /// Why it cannot be called, and never will be: there is not all that its input names, or it makes no sense.
    pub(super) fault: Option<String>,
    /// What it goes by.
    pub(super) rules: Rules,
    /// What its texts see; none where it has none.
    pub(super) scope: Option<Scope>,
    /// Whether it is not to be done.
    pub(super) skipped: bool,
    /// How it is found out whether its effect has happened, where its plan says so.
    pub(super) check: Option<Check>,
}

impl Prepared {
    /// A step as it is to be done.
    ///
    /// # Errors
    /// It cannot be read, or what is stored makes no sense to this program.
    pub(crate) fn read(
        reader: &mut dyn Reader,
        task: &TaskId,
        mut step: StepRow,
        tools: &Registry,
        max_attempts: Option<u32>,
        secrets: &Secrets,
    ) -> Result<Self, EngineError> {
        let bad = |idx: u32, why: String| EngineError::Stored { task: task.clone(), step: Some(idx), why };
        let Some(tool) = tools.find(&step.tool).map(Arc::clone) else {
            let why = format!("this program has no tool `{}`; another version created the task", step.tool);
            return Err(bad(step.idx, why));
        };
        let scope = scope(reader, tools, task, &step, secrets)?;
        let (mut input, mut fault, mut skipped) = (std::mem::take(&mut step.input), None, false);
        if let Some(scope) = &scope {
            match rendered(scope, &step, tool.as_ref(), &input) {
                Ok(Some(made)) => input = made,
                Ok(None) => skipped = true,
                Err(why) => fault = Some(why),
            }
        }
        let rules = Rules::of(&step, &input, tool.as_ref(), max_attempts).map_err(|why| bad(step.idx, why))?;
        let mut outputs = Outputs::new();
        let check = match &scope {
            Some(scope) => Check::of(scope, &step, tools).unwrap_or_else(|why| {
                fault.get_or_insert(why);
                None
            }),
            None => None,
        };
        let asked = check.as_ref().map(|check| tools::named_steps(check.tool.spec(), &check.input)).unwrap_or_default();
        for source in tools::named_steps(tool.spec(), &input).into_iter().chain(asked) {
            match stored_output(reader, tools, task, source) {
                Ok(output) => drop(outputs.insert(source, output)),
                Err(Stored::Never(status)) => {
                    fault = Some(format!("it reads step {source}, which is {status} and has no output"));
                }
                Err(Stored::Unreadable(error)) => return Err(error.into()),
                Err(Stored::Wrong(why)) => return Err(bad(step.idx, format!("it reads step {source}, but {why}"))),
            }
        }
        Ok(Self { step, tool, input, outputs, fault, rules, scope, skipped, check })
    }

    /// The digest of what the tool takes, in which the name of a secret stands for it.
    pub(super) fn digest(&self, secrets: &Secrets) -> Digest {
        if self.scope.is_some() { Digest::of(&secrets.named_in(&self.input)) } else { Digest::of(&self.input) }
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

/// What the texts of a step see, where it has any. A step that was stored by an earlier version is taken literally.
fn scope(
    reader: &mut dyn Reader,
    tools: &Registry,
    task: &TaskId,
    step: &StepRow,
    secrets: &Secrets,
) -> Result<Option<Scope>, EngineError> {
    let bad = |why: String| EngineError::Stored { task: task.clone(), step: Some(step.idx), why };
    let Some(reads) = step.setting(READS) else { return Ok(None) };
    let mut earlier = Vec::new();
    for (name, index) in reads.as_object().into_iter().flatten() {
        let index = index.as_u64().and_then(|index| u32::try_from(index).ok()).filter(|index| *index < step.idx);
        let index = index.ok_or_else(|| bad(format!("its text names `{name}`, which is not an earlier step")))?;
        let (status, output) = match stored_output(reader, tools, task, index) {
            Ok(output) => (StepStatus::Done, Some(output)),
            Err(Stored::Never(status)) => (status, None),
            Err(Stored::Unreadable(error)) => return Err(error.into()),
            Err(Stored::Wrong(why)) => return Err(bad(format!("its text names `{name}`, but {why}"))),
        };
        earlier.push(Earlier { name: name.clone(), status, output });
    }
    let row = reader.task(task)?.ok_or_else(|| bad("the task is gone".to_owned()))?;
    Ok(Some(Scope::new(&row, &IdempotencyKey::new(task.clone(), step.idx), &earlier, secrets)))
}

/// The input as the tool takes it; none where the step is to be skipped. That is asked once: it has begun, or not.
fn rendered(
    scope: &Scope,
    step: &StepRow,
    tool: &dyn Tool,
    input: &Map<String, Value>,
) -> Result<Option<Map<String, Value>>, String> {
    let state = step.state;
    let is_new = state.status == StepStatus::Pending && state.attempts == 0 && state.wait.is_none();
    if let Some(when) = step.setting("when").filter(|_| is_new)
        && !scope.holds("when", when, None)?
    {
        return Ok(None);
    }
    let made = scope.input(input)?;
    tools::check_input(tool, &made, Form::Literal).map_err(|error| error.to_string())?;
    Ok(Some(made))
}

/// Says which secrets are not there, before anything is done that needs them later.
///
/// # Errors
/// One of them is not set.
pub(super) fn check_secrets(
    reader: &mut dyn Reader,
    task: &TaskId,
    from: u32,
    secrets: &Secrets,
) -> Result<(), EngineError> {
    // Most plans have none, and the plan says so.
    let source = reader.source(task)?;
    if source.is_some_and(|source| !source.contains("secret") && !source.contains("env")) {
        return Ok(());
    }
    let mut from = from;
    loop {
        let page = reader.steps(task, from, limits::STEP_PAGE)?;
        let Some(last) = page.last() else { return Ok(()) };
        from = last.idx + 1;
        for row in &page {
            let named = row.setting(SECRETS).and_then(Value::as_array);
            let missing = named.into_iter().flatten().filter_map(Value::as_str).find(|name| !secrets.is_set(name));
            if let Some(name) = missing {
                return Err(EngineError::Secret { step: row.idx, name: name.to_owned() });
            }
        }
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
    let is_of_plan = reader.task(task)?.is_some_and(|row| row.origin.language.is_some());
    if is_of_plan {
        check_secrets(reader, task, step, &world.secrets)?;
    }
    let prepared = Prepared::read(reader, task, row, tools, None, &world.secrets)?;
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
    // What a check has found is as its plan has it.
    let asks = row.setting("check").is_some();
    if let Some(tool) = tools.find(&row.tool).filter(|_| !asks) {
        tools::check_output(tool.spec(), &output).map_err(Stored::Wrong)?;
    }
    Ok(output)
}

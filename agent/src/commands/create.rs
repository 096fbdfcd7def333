//! `agent create`

use std::path::Path;
use std::sync::Arc;

use serde_json::{Map, Value};
use store::model::{PlanSource, TaskId, codec};
use store::sqlite::SqliteStore;
use store::{ErrorKind, Store, SystemClock};

use super::{Parts, counted, say, task_id};
use crate::arm::{self, Course};
use crate::config::Config;
use crate::exit::{Exit, Failure};
use crate::home::text_of_here;
use crate::language::Given;
use crate::plan_file::{Checked, PlanFile};

/// A task that is to be.
#[derive(Clone, Copy, Debug)]
pub struct NewTask<'a> {
    /// Its plan; `-` is standard input.
    pub plan: &'a Path,
    /// Inputs of the plan, each a name with a text that is read as the input's type says.
    pub inputs: &'a [(String, String)],
    /// A file of inputs: a JSON map.
    pub inputs_file: Option<&'a Path>,
    /// Labels of the task, before those of the plan.
    pub labels: &'a [(String, String)],
    /// Whether it is fine that the same task is there already.
    pub exists_ok: bool,
}

impl<'a> NewTask<'a> {
    /// One of which nothing is said but its plan.
    #[must_use]
    pub fn of(plan: &'a Path) -> Self {
        Self { plan, inputs: &[], inputs_file: None, labels: &[], exists_ok: false }
    }
}

pub(crate) fn create(db: &Path, task: &str, new: NewTask<'_>) -> Result<Exit, Failure> {
    create_with(db, task, new, &Config::from_env()?, &Parts::right())
}

/// `agent create` with these settings and parts.
///
/// # Errors
/// As the command: what went wrong, for `main` to print.
pub fn create_with(
    db: &Path,
    task: &str,
    new: NewTask<'_>,
    config: &Config,
    parts: &Parts<'_>,
) -> Result<Exit, Failure> {
    let task = task_id(task)?;
    // The whole plan is checked before the database is touched, so that a bad one leaves no trace.
    let mut checked = PlanFile::open(new.plan, parts.tools)?;
    checked.give(&given(new.inputs, new.inputs_file)?, new.labels)?;
    let Checked { plan, tools: calls, .. } = checked;
    let steps = plan.count();
    if let Some(point) = &config.crash_at {
        let tool_of = |step: u32| Ok(calls.spec_of(step).map_or_else(String::new, |spec| spec.name.clone()));
        arm::check(point, Course { tools: parts.tools, steps, log: false, completion: false }, tool_of)?;
    }
    drop(calls);
    let home = text_of_here(db)?;
    let crash = arm::arm(config)?;
    let mut store = (parts.store)(SqliteStore::open_or_create(db, crash.clone())?, &crash);
    let plan = Arc::new(plan);
    match store::create(store.as_mut(), &SystemClock, &task, plan.clone(), Some(home)) {
        Ok(()) => say!("task `{task}` is created with {}; `agent run` runs it", counted(steps, "step")),
        Err(error) if error.kind() == ErrorKind::Exists && new.exists_ok => {
            same(store.as_mut(), &task, plan.as_ref())?;
            say!("task `{task}` is there already, with this plan and these inputs");
        }
        Err(error) => return Err(plan.failure().unwrap_or_else(|| error.into())),
    }
    Ok(Exit::Done)
}

/// What is given to a plan, as options have it.
pub(super) fn given(texts: &[(String, String)], file: Option<&Path>) -> Result<Given, Failure> {
    let mut values = Map::new();
    if let Some(file) = file {
        let shown = file.display();
        let text = tools::read_text(file)
            .map_err(|error| Failure::new(Exit::NoInput, format!("cannot read the inputs: {}", store::line(&error))))?;
        match codec::value_from_json(&text) {
            Ok(Value::Object(map)) => values = map,
            Ok(other) => {
                return Err(Failure::new(
                    Exit::BadPlan,
                    format!("the inputs {shown}: must be a JSON map, this is {}", codec::kind_of(&other)),
                ));
            }
            Err(why) => return Err(Failure::new(Exit::BadPlan, format!("the inputs {shown}: {why}"))),
        }
    }
    Ok(Given { texts: texts.to_vec(), values })
}

/// Refuses a task that is there with another plan or other inputs.
fn same(store: &mut dyn Store, task: &TaskId, plan: &PlanFile) -> Result<(), Failure> {
    let found = store.task(task)?.map(|row| row.origin).unwrap_or_default();
    let wanted = plan.origin();
    let what = match () {
        () if found.digest != wanted.digest => "another plan",
        () if found.inputs != wanted.inputs => "other inputs",
        () => return Ok(()),
    };
    Err(Failure::new(Exit::CannotCreate, format!("there is a task `{task}` already, with {what}; nothing is stored")))
}

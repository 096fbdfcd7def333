//! `agent create`

use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use store::model::{Plan, codec};
use store::sqlite::SqliteStore;
use store::{SystemClock, limits};
use tools::Registry;

use super::{Parts, counted, say, task_id};
use crate::arm::{self, Course};
use crate::config::Config;
use crate::exit::{Exit, Failure};
use crate::home::text_of_here;

pub(crate) fn create(db: &Path, task: &str, plan_file: &Path) -> Result<Exit, Failure> {
    create_with(db, task, plan_file, &Config::from_env()?, &Parts::right())
}

/// `agent create` with these settings and parts.
///
/// # Errors
/// As the command: what went wrong, for `main` to print.
pub fn create_with(
    db: &Path,
    task: &str,
    plan_file: &Path,
    config: &Config,
    parts: &Parts<'_>,
) -> Result<Exit, Failure> {
    let task = task_id(task)?;
    // The whole plan is checked before the database is touched, so that a bad one leaves no trace.
    let plan = read_plan(plan_file, parts.tools)?;
    let steps = u32::try_from(plan.steps.len()).unwrap_or(u32::MAX);
    if let Some(point) = &config.crash_at {
        let tool_of = |step: u32| Ok(plan.steps[step as usize].tool.clone());
        arm::check(point, Course { tools: parts.tools, steps, log: false, completion: false }, tool_of)?;
    }
    let home = text_of_here(db)?;
    let crash = arm::arm(config)?;
    let mut store = (parts.store)(SqliteStore::open_or_create(db, crash.clone())?, &crash);
    store::create(store.as_mut(), &SystemClock, &task, Arc::new(plan), Some(home))?;
    say!("task `{task}` is created with {}; `agent run` runs it", counted(steps, "step"));
    Ok(Exit::Done)
}

fn read_plan(path: &Path, tools: &Registry) -> Result<Plan, Failure> {
    let shown = path.display();
    let unreadable =
        |error: std::io::Error| Failure::new(Exit::NoInput, format!("cannot read the plan {shown}: {error}"));
    let mut bytes = Vec::new();
    tools::open_regular(path)
        .and_then(|file| file.take(limits::PLAN_FILE_BYTES + 1).read_to_end(&mut bytes))
        .map_err(unreadable)?;
    let bad = |why: String| Failure::new(Exit::BadPlan, format!("plan {shown}: {why}"));
    if bytes.len() as u64 > limits::PLAN_FILE_BYTES {
        return Err(bad(format!("more than {} bytes", limits::PLAN_FILE_BYTES)));
    }
    let text = String::from_utf8(bytes)
        .map_err(|error| bad(format!("not UTF-8: invalid byte at offset {}", error.utf8_error().valid_up_to())))?;
    // Some editors begin a file with a mark that it is UTF-8.
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let plan = codec::plan_from_json(text).map_err(|error| bad(error.to_string()))?;
    tools::check_plan(tools, &plan).map_err(|error| bad(error.to_string()))?;
    Ok(plan)
}

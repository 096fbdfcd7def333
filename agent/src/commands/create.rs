//! `agent create`

use std::path::Path;
use std::sync::Arc;

use store::SystemClock;
use store::model::PlanSource;
use store::sqlite::SqliteStore;

use super::{Parts, counted, say, task_id};
use crate::arm::{self, Course};
use crate::config::Config;
use crate::exit::{Exit, Failure};
use crate::home::text_of_here;
use crate::plan_file::PlanFile;

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
    let (plan, check) = PlanFile::open(plan_file, parts.tools)?;
    let steps = plan.count();
    if let Some(point) = &config.crash_at {
        let tool_of = |step: u32| Ok(check.tool_of(step).unwrap_or_default().to_owned());
        arm::check(point, Course { tools: parts.tools, steps, log: false, completion: false }, tool_of)?;
    }
    drop(check);
    let home = text_of_here(db)?;
    let crash = arm::arm(config)?;
    let mut store = (parts.store)(SqliteStore::open_or_create(db, crash.clone())?, &crash);
    let plan = Arc::new(plan);
    let created = store::create(store.as_mut(), &SystemClock, &task, plan.clone(), Some(home));
    created.map_err(|error| plan.failure().unwrap_or_else(|| error.into()))?;
    say!("task `{task}` is created with {}; `agent run` runs it", counted(steps, "step"));
    Ok(Exit::Done)
}

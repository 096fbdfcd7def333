//! `agent run`

use std::path::Path;

use store::Reader;
use store::model::{RunId, TaskId, TaskState};
use store::sqlite::SqliteStore;

use super::work::{Log, LogChoice, Work, check_ahead, over, report};
use super::{Parts, open_for, task_id, unknown};
use crate::arm::{self, Course};
use crate::completion::Completion;
use crate::config::Config;
use crate::exit::{Exit, Failure};
use crate::places::check_apart;
use crate::signals::Stop;

pub(crate) fn run(db: &Path, task: &str, log: Option<LogChoice<'_>>) -> Result<Exit, Failure> {
    run_logged(db, task, &Config::from_env()?, &Parts::RIGHT, log)
}

/// `agent run` with these settings and parts.
///
/// # Errors
/// As the command: what went wrong, for `main` to print.
pub fn run_with(db: &Path, task: &str, config: &Config, parts: &Parts<'_>) -> Result<Exit, Failure> {
    run_logged(db, task, config, parts, None)
}

fn run_logged(
    db: &Path,
    task: &str,
    config: &Config,
    parts: &Parts<'_>,
    log: Option<LogChoice<'_>>,
) -> Result<Exit, Failure> {
    let task = task_id(task)?;
    if let Some(log) = log {
        check_apart(db, "--log", log.path)?;
    }
    // Looked at without a trace first: a task that is unknown, or over with nothing to look after, gets no lock file
    // and no migration.
    let (state, completion) = look(db, &task, config, log.is_some())?;
    if let (Some(log), Some(completion)) = (log, &completion) {
        completion.check_log(log.path)?;
    }
    if state.status.is_over() && completion.is_none() && log.is_none() {
        return Ok(report(&task, &over(state), "already "));
    }
    let stop = Stop::on_signals()?;
    let crash = arm::arm(config)?;
    let run = RunId::random();
    let log = Log::open(log, &task, &run, &crash, parts.log)?;
    let mut store = (parts.store)(SqliteStore::open(db, crash.clone())?, &crash);
    let work = Work { task: &task, run: &run, config, crash: &crash, stop: &stop, parts, log };
    work.take_up(store.as_mut())
}

/// The task's state and completion, once everything that can be checked by reading is in order.
fn look(db: &Path, task: &TaskId, config: &Config, log: bool) -> Result<(TaskState, Option<Completion>), Failure> {
    let mut reader = open_for(db, task)?;
    let state = reader.load(task)?.ok_or_else(|| unknown(db, task))?;
    let completion = check_ahead(&mut reader, task, state)?;
    if let Some(point) = &config.crash_at {
        let course = Course { steps: state.steps, log, completion: completion.is_some() };
        arm::check(point, course, |step| {
            Ok(reader.steps(task, step, 1)?.pop().map(|row| row.tool).unwrap_or_default())
        })?;
    }
    Ok((state, completion))
}

//! `agent run`

use std::path::Path;

use store::model::{RunId, TaskId, TaskState, TaskStatus};
use store::sqlite::SqliteStore;
use store::{Reader, SystemClock, TaskSession};

use super::{open_for, say, task_id, unknown};
use crate::arm;
use crate::config::Config;
use crate::exit::{Exit, Failure};
use crate::progress::Progress;
use crate::runner::{Outcome, Runner, preflight};
use crate::signals::Stop;

pub(crate) fn run(db: &Path, task: &str) -> Result<Exit, Failure> {
    let config = Config::from_env()?;
    let task = task_id(task)?;
    // Looked at without a trace first: a task that is unknown or over gets no lock file and no migration.
    let state = look(db, &task, &config)?;
    if state.status.is_over() {
        return Ok(report(&task, &over(state), "already "));
    }
    let stop = Stop::on_signals()?;
    let crash = arm::arm(&config)?;
    let mut store = SqliteStore::open(db, crash.clone())?;
    let session = TaskSession::open(&mut store, &SystemClock, &task, &RunId::random())?;
    let mut progress = Progress::new(session.state());
    let runner = Runner { session, config: &config, crash: &crash, stop: &stop, observer: &mut progress };
    let outcome = runner.run()?;
    drop(progress);
    Ok(report(&task, &outcome, ""))
}

/// The task's state, once everything that can be checked by reading is in order.
fn look(db: &Path, task: &TaskId, config: &Config) -> Result<TaskState, Failure> {
    let mut reader = open_for(db, task)?;
    let state = reader.load(task)?.ok_or_else(|| unknown(db, task))?;
    if let Some(point) = &config.crash_at {
        arm::check(point, state.steps, |step| {
            Ok(reader.steps(task, step, 1)?.pop().map(|row| row.tool).unwrap_or_default())
        })?;
    }
    if !state.status.is_over() {
        preflight(&mut reader, task, state)?;
    }
    Ok(state)
}

fn over(state: TaskState) -> Outcome {
    match state.status {
        TaskStatus::Failed => Outcome::Failed { step: state.cursor, error: None },
        _ => Outcome::Done,
    }
}

fn report(task: &TaskId, outcome: &Outcome, already: &str) -> Exit {
    match outcome {
        Outcome::Done => {
            say!("task `{task}` is {already}done");
            Exit::Done
        }
        Outcome::Failed { step, error } => {
            let why = match error {
                Some(error) => format!("step {step} used up its attempts: {error}"),
                None => format!("step {step} used up its attempts"),
            };
            say!("task `{task}` has {already}failed: {why}; `agent retry` gives it new ones");
            Exit::TaskFailed
        }
        Outcome::Stopped(exit) => {
            say!("task `{task}` is stopped by a signal; `agent run` goes on with it");
            *exit
        }
    }
}

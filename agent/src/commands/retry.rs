//! `agent retry`

use std::path::Path;

use store::machine::{Command, decide};
use store::model::RunId;
use store::sqlite::SqliteStore;
use store::{Reader, SystemClock, TaskSession};

use super::{open_for, say, task_id, unknown};
use crate::arm::{self, Course};
use crate::config::Config;
use crate::exit::{Exit, Failure};

pub(crate) fn retry(db: &Path, task: &str) -> Result<Exit, Failure> {
    let config = Config::from_env()?;
    let task = task_id(task)?;
    // Asked without a trace first. What counts is the answer under the lock, where one of several callers wins.
    let mut reader = open_for(db, &task)?;
    let state = reader.load(&task)?.ok_or_else(|| unknown(db, &task))?;
    if let Some(point) = &config.crash_at {
        let course = Course { steps: state.steps, log: false, completion: false };
        arm::check(point, course, |step| {
            Ok(reader.steps(&task, step, 1)?.pop().map(|row| row.tool).unwrap_or_default())
        })?;
    }
    drop(reader);
    let refused = |refused: store::machine::Refused| Failure::new(Exit::Refused, format!("task `{task}`: {refused}"));
    decide(&state, &Command::Retry).map_err(refused)?;
    let mut store = SqliteStore::open(db, arm::arm(&config)?)?;
    let mut session = TaskSession::open(&mut store, &SystemClock, &task, &RunId::random())?;
    session.apply(&Command::Retry).map_err(|error| match error {
        store::SessionError::Refused(why) => refused(why),
        store::SessionError::Store(error) => error.into(),
    })?;
    let step = session.state().cursor;
    say!("task `{task}` has a fresh attempt budget for step {step}; `agent run` runs it");
    Ok(Exit::Done)
}

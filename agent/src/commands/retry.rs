//! `agent retry`

use std::path::Path;

use store::machine::{Command, decide};
use store::model::RunId;
use store::sqlite::SqliteStore;
use store::{Reader, SystemClock, TaskSession};

use super::{open_for, say, task_id, unknown};
use crate::arm;
use crate::config::Config;
use crate::exit::{Exit, Failure};

pub(crate) fn retry(db: &Path, task: &str) -> Result<Exit, Failure> {
    let config = Config::from_env()?;
    let task = task_id(task)?;
    // Asked without a trace first. What counts is the answer under the lock, where one of several callers wins.
    let state = open_for(db, &task)?.load(&task)?.ok_or_else(|| unknown(db, &task))?;
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

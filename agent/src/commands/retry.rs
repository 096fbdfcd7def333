//! `agent retry`

use std::path::Path;

use store::machine::{Command, Refused, decide};
use store::sqlite::SqliteStore;
use store::{Clock as _, SessionError, SystemClock};

use super::opening::Opening;
use super::{Parts, say};
use crate::config::Config;
use crate::exit::{Exit, Failure};

pub(crate) fn retry(db: &Path, task: &str) -> Result<Exit, Failure> {
    let config = Config::from_env()?;
    let parts = Parts::right();
    let opening = Opening::new(db, task, &config, &parts, None)?;
    let task = &opening.task;
    // What counts is the answer under the lock, where one of several callers wins.
    let refused = |refused: Refused| Failure::new(Exit::Refused, format!("task `{task}`: {refused}"));
    decide(&opening.look()?.state, &Command::Retry, SystemClock.now()).map_err(refused)?;
    let (mut store, work) = opening.open(SqliteStore::open)?;
    let mut session = work.session(store.as_mut())?;
    session.apply(&Command::Retry).map_err(|error| match error {
        SessionError::Refused(why) => refused(why),
        SessionError::Store(error) => error.into(),
    })?;
    let what = session.state().step().map_or("its report".to_owned(), |step| format!("step {step}"));
    say!("task `{task}` has a fresh attempt budget for {what}; `agent run` runs it");
    Ok(Exit::Done)
}

//! `agent run`

use std::path::Path;
use std::time::Duration;

use store::machine::{Next, next};
use store::sqlite::SqliteStore;
use store::{Clock as _, SystemClock};

use super::Parts;
use super::log::LogChoice;
use super::opening::Opening;
use super::work::{needs_a_person, report};
use crate::config::Config;
use crate::exit::{Exit, Failure};

pub(crate) fn run(
    db: &Path,
    task: &str,
    log: Option<LogChoice<'_>>,
    grace: Option<Duration>,
    no_wait: bool,
) -> Result<Exit, Failure> {
    let mut config = Config::from_env()?;
    config.grace = grace.unwrap_or(config.grace);
    config.settings.no_wait = no_wait;
    run_logged(db, task, &config, &Parts::right(), log)
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
    let opening = Opening::new(db, task, config, parts, log)?;
    let mut seen = opening.look()?;
    if let (Some(ended), None, None) = (&seen.ended, &seen.completion, log) {
        return Ok(report(&opening.task, ended, "already "));
    }
    // Nothing is due before a person has spoken, and so nothing is locked.
    if let Next::Person(step) = next(&seen.state, SystemClock.now()) {
        return needs_a_person(db, &opening.task, step, parts);
    }
    if seen.ended.is_none() || seen.completion.is_some() {
        opening.check_ahead(&mut seen)?;
    } else if let Ok(bound) = opening.bind_seen(&mut seen) {
        opening.check_log(&mut seen, &bound.world)?;
    }
    drop(seen);
    let (mut store, work) = opening.open(SqliteStore::open)?;
    work.take_up(store.as_mut())
}

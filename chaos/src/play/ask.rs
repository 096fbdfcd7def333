//! Asks `status` and `export` and compares their words with the tables.

use crate::agent::process::{Env, Outcome};
use crate::agent::target::Target;
use crate::case::TASK;
use crate::error::LabError;
use crate::judge::told;
use crate::look::sandbox::Sandbox;
use crate::look::tables::Tables;

/// Plays a command to its end.
///
/// # Errors
/// An agent that cannot be started.
pub fn command(target: &Target, sandbox: &mut Sandbox, words: &[&str], env: &Env) -> Result<Outcome, LabError> {
    let running = sandbox.start(target, words, env)?;
    sandbox.finish(running)
}

/// What is wrong with what the agent says of [`TASK`], whose tables are known.
///
/// # Errors
/// See [`command`].
pub fn ask(target: &Target, sandbox: &mut Sandbox, tables: &Tables) -> Result<Vec<String>, LabError> {
    let mut say = |word| command(target, sandbox, &[word, TASK], &Env::new());
    let mut wrong = told::status(&say("status")?, tables, TASK);
    wrong.extend(told::export(&say("export")?, tables, TASK));
    Ok(wrong)
}

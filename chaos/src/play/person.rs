//! The lab as the person who is asked: it looks at the world, and says what it has seen.

use crate::agent::process::{Ended, Env};
use crate::agent::target::Target;
use crate::case::plan::Kind;
use crate::case::world;
use crate::contract::code::PERSON;
use crate::error::LabError;
use crate::look::evidence::{Expect, RunRecord};
use crate::look::sandbox::Sandbox;
use crate::look::snapshot::Snapshot;

/// A person who has said so much in one scenario answers no more: an agent that asks for ever is a finding.
const PATIENCE: usize = 8;

/// Answers what the last run has left for a person, where the plan has one and it ended like that; whether there was
/// anything. That run had to end so, then.
///
/// # Errors
/// The lab's own failures.
pub fn answers(target: &Target, sandbox: &mut Sandbox, runs: &mut Vec<RunRecord>) -> Result<bool, LabError> {
    let said = runs.iter().filter(|run| run.expect == Expect::Heard).count();
    let Some(last) = runs.last_mut().filter(|run| run.outcome.ended == Ended::Exited(PERSON)) else {
        return Ok(false);
    };
    let kind = sandbox.case().kind;
    let asked = last.after.as_ref().and_then(|left| words(kind, left, &last.task));
    let Some(words) = asked.filter(|_| kind.has_person() && said < PATIENCE) else {
        return Ok(false);
    };
    if last.expect != Expect::Faulted {
        last.expect = Expect::Ends(PERSON);
    }
    let task = last.task.clone();
    let running = sandbox.start(target, &words, &Env::new())?;
    let outcome = sandbox.finish(running)?;
    let after = Some(sandbox.look()?);
    runs.push(RunRecord { task, kill: None, expect: Expect::Heard, outcome, signalled: false, after });
    Ok(true)
}

/// Runs the task, answers what it asks, and goes on like that until it has come to its end.
///
/// # Errors
/// The lab's own failures.
pub fn to_the_end(
    target: &Target,
    sandbox: &mut Sandbox,
    runs: &mut Vec<RunRecord>,
    task: &str,
    env: &Env,
) -> Result<(), LabError> {
    let words = sandbox.case().kind.words(task);
    loop {
        let running = sandbox.start(target, &words, env)?;
        let outcome = sandbox.finish(running)?;
        let (task, after) = (task.to_owned(), Some(sandbox.look()?));
        runs.push(RunRecord { task, kill: None, expect: Expect::Ends(0), outcome, signalled: false, after });
        if !answers(target, sandbox, runs)? {
            return Ok(());
        }
    }
}

/// The command of a person who has looked at the world.
#[must_use]
pub fn words(kind: &dyn Kind, left: &Snapshot, task: &str) -> Option<Vec<String>> {
    let step = left.tables.steps_of(task).find(|row| matches!(row.status.as_str(), "in_doubt" | "waiting"))?;
    let idx = step.idx.to_string();
    let why = "looked at the world";
    let words = match (step.status.as_str(), world::count(&left.world, task, step.idx)) {
        ("waiting", _) => vec!["approve", task, &idx, "--why", why],
        (_, 0) => vec!["resolve", task, &idx, "--absent", "--why", why],
        _ => {
            let output = world::output_of(kind, task, step.idx).to_string();
            return Some(["resolve", task, &idx, "--happened", &output, "--why", why].map(str::to_owned).to_vec());
        }
    };
    Some(words.into_iter().map(str::to_owned).collect())
}

//! From the folder that a cut left to the end: the agent is started again on it, and the whole story becomes evidence
//! for the properties.

use std::sync::Arc;

use crate::agent::process::{Ended, Env, Outcome};
use crate::case::TASK;
use crate::contract::PLAN_FILE;
use crate::crash::{Image, Seen};
use crate::error::LabError;
use crate::judge::verdict::Verdict;
use crate::look::evidence::{Evidence, Expect, RunRecord, TaskEnd};
use crate::look::sandbox::Sandbox;
use crate::look::snapshot::Snapshot;
use crate::play::person;
use crate::play::prepared::Prepared;
use crate::schedule::{CallPoint, Kill};

/// What happened before the process that was cut.
#[derive(Debug, Clone)]
pub struct Past {
    /// The `create`.
    pub creates: Vec<Outcome>,
    /// The folder after it.
    pub created: Snapshot,
    /// Runs that were cut before.
    pub runs: Vec<RunRecord>,
}

impl Past {
    /// What was seen so far.
    #[must_use]
    pub fn of(seen: Evidence) -> Self {
        Self { creates: seen.creates, created: seen.created, runs: seen.runs }
    }

    /// A past in which only the task was created.
    #[must_use]
    pub fn created(create: Outcome, created: Snapshot) -> Self {
        Self { creates: vec![create], created, runs: Vec::new() }
    }

    /// This past and one more run, killed at `at`. Where the folder after it is not known for sure, `after` is nothing.
    #[must_use]
    pub fn and_killed(&self, at: &CallPoint, whole: &Outcome, after: Option<Snapshot>) -> Self {
        let mut past = self.clone();
        past.runs.push(killed(at, whole, after));
        past
    }
}

fn killed(at: &CallPoint, whole: &Outcome, after: Option<Snapshot>) -> RunRecord {
    let outcome = Outcome {
        ended: Ended::Signaled(nix::sys::signal::Signal::SIGKILL as i32),
        stdout: String::new(),
        stderr: String::new(),
        survivors: Vec::new(),
        ..whole.clone()
    };
    let kill = Some(Kill::Call(at.clone()));
    RunRecord { task: TASK.to_owned(), kill, expect: Expect::MayDie, outcome, signalled: true, after }
}

/// A story from its beginning to the end after the resume.
pub struct Resumed {
    /// The story.
    pub evidence: Evidence,
    /// For a cut `create`, whether it had stored the whole task or nothing, and whether the second one knew.
    pub create: Verdict,
}

/// Resumes a run that was cut at `at` and left `image`.
///
/// # Errors
/// The lab's own failures.
pub fn run_again(
    ready: &Prepared,
    past: &Past,
    at: &CallPoint,
    whole: &Outcome,
    image: &Image,
    seen: &Seen,
    env: &Env,
) -> Result<Resumed, LabError> {
    let mut sandbox = Sandbox::empty(&ready.lab.root, &ready.case)?;
    image.write(&sandbox.world())?;
    let left = sandbox.look_around(seen.0.clone(), seen.1.clone())?;
    let past = past.and_killed(at, whole, Some(left));
    let evidence = to_the_end(ready, &mut sandbox, past, env)?;
    Ok(Resumed { evidence, create: Verdict::Holds })
}

/// Goes on after a `create` that was cut and left `image`: created again, and run.
///
/// # Errors
/// The lab's own failures.
pub fn create_again(ready: &Prepared, image: &Image, seen: &Seen, env: &Env) -> Result<Resumed, LabError> {
    let mut sandbox = Sandbox::empty(&ready.lab.root, &ready.case)?;
    image.write(&sandbox.world())?;
    let running = sandbox.start(&ready.lab.target, &["create", TASK, PLAN_FILE], env)?;
    let again = sandbox.finish(running)?;
    let stored = seen.0.task(TASK).is_some();
    let create = whole_or_nothing(ready.case.steps.len(), seen, &again);
    // Refused with reason, it is not a process that the properties should judge.
    let creates = if stored && create.holds() { Vec::new() } else { vec![again] };
    let past = Past { creates, created: sandbox.look()?, runs: Vec::new() };
    Ok(Resumed { evidence: to_the_end(ready, &mut sandbox, past, env)?, create })
}

/// Runs the agent once more on the folder of `sandbox`; the whole story.
///
/// # Errors
/// The lab's own failures.
pub fn to_the_end(ready: &Prepared, sandbox: &mut Sandbox, past: Past, env: &Env) -> Result<Evidence, LabError> {
    let mut runs = past.runs;
    person::to_the_end(&ready.lab.target, sandbox, &mut runs, TASK, env)?;
    Ok(Evidence {
        case: Arc::clone(&ready.case),
        tasks: vec![TASK.to_owned()],
        end: TaskEnd::Done,
        creates: past.creates,
        created: past.created,
        runs,
        observed: Vec::new(),
        strays: sandbox.strays(),
    })
}

/// A `create` stores a task with all that belongs to it or nothing of it, and the next one finds out which.
fn whole_or_nothing(steps: usize, left: &Seen, again: &Outcome) -> Verdict {
    let tables = &left.0;
    let stored = (tables.task(TASK).is_some(), tables.steps_of(TASK).count(), tables.events_of(TASK).count());
    let mut complaints = Vec::new();
    match stored {
        (false, 0, 0) if again.ended == Ended::Exited(0) => {}
        (false, 0, 0) => complaints.push(format!("nothing was stored, and create again: {}", again.describe())),
        (true, count, 1) if count == steps => match again.ended {
            Ended::Exited(code) if code != 0 => {}
            _ => complaints.push(format!("the task was stored, and create again: {}", again.describe())),
        },
        (task, count, events) => complaints
            .push(format!("half a task was stored: its row {task}, {count} of {steps} steps, {events} of 1 events")),
    }
    Verdict::of(&complaints)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Story;

    #[test]
    fn a_whole_task_and_no_task_are_accepted_and_half_a_one_is_rejected() {
        let mut story = Story::clean();
        let mut again = story.evidence.creates[0].clone();
        let nothing: Seen = Default::default();
        assert!(whole_or_nothing(3, &nothing, &again).holds());
        let whole = (story.evidence.created.tables.clone(), Vec::new());
        assert!(!whole_or_nothing(3, &whole, &again).holds(), "stored twice");
        again.ended = Ended::Exited(73);
        assert!(whole_or_nothing(3, &whole, &again).holds());
        assert!(!whole_or_nothing(3, &nothing, &again).holds(), "refused without a reason");
        let mut half = whole.clone();
        half.0.steps.pop();
        assert!(!whole_or_nothing(3, &half, &again).holds());
        let mut half = whole;
        half.0.events.clear();
        assert!(!whole_or_nothing(3, &half, &again).holds());
        let _ = story.last();
    }
}

//! The method `pause` with a neighbour: the run is frozen at each call of its last step while a run of another task,
//! which was killed in that step, recovers and goes to its end. The frozen one must not notice.

use std::sync::Arc;

use super::freeze::{NAME, freeze, is_of_database, missed};
use crate::agent::process::{Ended, Env, Outcome};
use crate::case::names;
use crate::contract::code::PERSON;
use crate::crash::{Frame, Tape, record};
use crate::error::LabError;
use crate::judge::undisturbed;
use crate::look::evidence::{Evidence, Expect, RunRecord, TaskEnd};
use crate::look::sandbox::Sandbox;
use crate::look::snapshot::Snapshot;
use crate::play::person;
use crate::play::prepared::Prepared;
use crate::play::scenario::{Played, Scenario};
use crate::play::stage::Stage;
use crate::schedule::{CrashPoint, Kill};

/// The run of a task whose neighbour was killed before.
struct Beside {
    before: Evidence,
    tape: Tape,
}

/// See the file's head.
///
/// # Errors
/// The lab's own failures.
pub(super) fn scenarios(ready: &Arc<Prepared>) -> Result<Vec<Scenario>, LabError> {
    let beside = Arc::new(beside(ready)?);
    // Of the last step's tool, what it does outside the database.
    let tool = format!(":{}", ready.last_step());
    let of_tool = |at: &Frame| at.at.phase.ends_with(&tool) && !at.at.phase.starts_with("next:");
    let own = |frame: &Frame| ready.lab.deep || of_tool(frame) && !is_of_database(frame);
    let places = beside.tape.frames.iter().enumerate().filter(|(_, frame)| own(frame));
    Ok(places.map(|(at, _)| scenario(ready, &beside, at)).collect())
}

fn beside(ready: &Prepared) -> Result<Beside, LabError> {
    // What belongs to the frozen one begins with the other's id.
    let tasks = names::prefixed();
    let mut stage = Stage::new(&ready.lab, &ready.case, &tasks)?;
    let kill = Kill::Point(CrashPoint::new("before_effect", ready.last_step()));
    stage.run(&tasks[1], Some(&kill), Expect::Dies, &[])?;
    let tape = record(&ready.lab, &mut stage.sandbox, &["run", &tasks[0]], &Env::new())?;
    Ok(Beside { before: stage.close(TaskEnd::Done), tape })
}

fn scenario(ready: &Arc<Prepared>, beside: &Arc<Beside>, at: usize) -> Scenario {
    let point = &beside.tape.frames[at].at;
    let title = format!("frozen before {point} while a killed neighbour recovers and goes to its end, then let go");
    let what = format!("neighbour, {point}");
    let beside = Arc::clone(beside);
    Scenario::new(NAME, ready, &what, title, move |ready| play(ready, &beside, at))
}

fn play(ready: &Prepared, beside: &Beside, at: usize) -> Result<Played, LabError> {
    let mut sandbox = Sandbox::empty(&ready.lab.root, &ready.case)?;
    beside.tape.images[0].write(&sandbox.world())?;
    let mut evidence = beside.before.clone();
    let (first, neighbour) = (evidence.tasks[0].clone(), evidence.tasks[1].clone());
    let Some(pair) = freeze(ready, &mut sandbox, at, [&first, &neighbour])? else { return Ok(missed(at)) };
    evidence.runs.push(run(&neighbour, pair.other, None));
    evidence.runs.push(run(&first, pair.frozen, Some(sandbox.look()?)));
    let asks = |run: &&mut RunRecord| run.task == neighbour && run.outcome.ended == Ended::Exited(PERSON);
    if let Some(asked) = evidence.runs.iter_mut().rfind(asks) {
        asked.expect = Expect::Ends(PERSON);
        person::to_the_end(&ready.lab.target, &mut sandbox, &mut evidence.runs, &neighbour, &Env::new())?;
    }
    evidence.strays = sandbox.strays();
    let baseline = ready.baseline_of_tasks(&evidence.tasks)?;
    let undisturbed = undisturbed(&evidence, &baseline);
    let mut played = Played::judged(evidence, &baseline);
    played.and("undisturbed", undisturbed);
    played.cycles = 1;
    played.note = pair.stalled;
    Ok(played)
}

fn run(task: &str, outcome: Outcome, after: Option<Snapshot>) -> RunRecord {
    RunRecord { task: task.to_owned(), kill: None, expect: Expect::Ends(0), outcome, signalled: false, after }
}

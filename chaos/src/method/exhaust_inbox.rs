//! The method `exhaust` for the inbox case: one traced `inbox` that creates and
//! runs, and two that mend a torn and rebuild a lost log; the folder after each
//! call that changed it, resumed and judged.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::exhaust::{METHOD, remark};
use crate::bench::Bench;
use crate::damage::Damage;
use crate::discover::damage_point;
use crate::disk::{Tape, record};
use crate::error::LabError;
use crate::facts::{Evidence, Expect, RunRecord, Snapshot, TaskEnd};
use crate::process::{Ended, Outcome};
use crate::sandbox::Sandbox;
use crate::scenario::{Played, Scenario};
use crate::schedule::{Kill, KillSchedule};
use crate::stage::{Env, Stage, TASK};

/// A tape with what came before it.
pub(super) struct Reel {
    before: Evidence,
    pub(super) tape: Tape,
}

/// See the file's head.
///
/// # Errors
/// The lab's own failures.
pub(super) fn scenarios(bench: &Arc<Bench>) -> Result<Vec<Scenario>, LabError> {
    let mut all = Vec::new();
    for damage in [None, Some(Damage::Torn), Some(Damage::Lost)] {
        let reel = Arc::new(reel(bench, damage)?);
        all.extend(states(&reel.tape).into_iter().map(|at| scenario(bench, &reel, damage, at)));
    }
    Ok(all)
}

/// `inbox` on tape: from nothing, or on a damaged log.
///
/// # Errors
/// The lab's own failures.
pub(super) fn reel(bench: &Bench, damage: Option<Damage>) -> Result<Reel, LabError> {
    let mut stage = Stage::single(&bench.lab, &bench.case)?;
    if let Some(damage) = damage {
        stage.run(TASK, Some(&Kill::Point(damage_point(&bench.case))), Expect::Dies, &[])?;
        stage.damage_log(|sandbox| damage.apply(sandbox))?;
    }
    let words = bench.case.words(TASK);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let tape = record(&bench.lab, &mut stage.sandbox, &words, &Env::new())?;
    Ok(Reel { before: stage.close(TaskEnd::Done), tape })
}

/// The places on a tape after which the folder was one that was never there before.
fn states(tape: &Tape) -> Vec<usize> {
    let mut seen = BTreeSet::from([tape.images[0].key()]);
    let frames = tape.frames.iter().enumerate();
    let new = frames.filter(|(_, frame)| frame.changed && seen.insert(tape.images[frame.image].key()));
    new.map(|(at, _)| at).collect()
}

fn scenario(bench: &Arc<Bench>, reel: &Arc<Reel>, damage: Option<Damage>, at: usize) -> Scenario {
    let frame = &reel.tape.frames[at];
    let did: Vec<String> = frame.ops.iter().map(ToString::to_string).collect();
    let (what, found) = match damage {
        None => (frame.at.to_string(), String::new()),
        Some(damage) => (format!("{}, {}", damage.word(), frame.at), format!("{}, ", damage.about())),
    };
    let title = format!("{found}killed after {} ({}), resumed", frame.at, did.join(", "));
    let reel = Arc::clone(reel);
    let schedule = KillSchedule(vec![Kill::Call(frame.at.clone())]);
    Scenario::new(METHOD.name, bench, &what, title, move |bench| play(bench, &reel, at)).kills(schedule)
}

fn play(bench: &Bench, reel: &Reel, at: usize) -> Result<Played, LabError> {
    let frame = &reel.tape.frames[at];
    let sandbox = Sandbox::empty(&bench.lab.root, &bench.case)?;
    reel.tape.images[frame.image].write(&sandbox.world())?;
    let seen = &reel.tape.seen[frame.image];
    let left = sandbox.look_around(seen.0.clone(), seen.1.clone())?;
    let outcome = Outcome { ended: Ended::Signaled(9), survivors: None, ..reel.tape.outcome.clone() };
    let kill = Some(Kill::Call(frame.at.clone()));
    let killed = run(kill, Expect::MayDie, outcome, left);
    let mut played = to_the_end(bench, reel, sandbox, killed)?;
    played.note = remark(reel.tape.threads, &reel.tape.blind);
    Ok(played)
}

/// A run of the task, and what it has left.
pub(super) fn run(kill: Option<Kill>, expect: Expect, outcome: Outcome, after: Snapshot) -> RunRecord {
    RunRecord { task: TASK.to_owned(), signalled: kill.is_some(), kill, expect, outcome, after: Some(after) }
}

/// The same line once more after a run that went wrong, and the verdict on all of it.
///
/// # Errors
/// The lab's own failures.
pub(super) fn to_the_end(
    bench: &Bench,
    reel: &Reel,
    mut sandbox: Sandbox,
    wrong: RunRecord,
) -> Result<Played, LabError> {
    let words = bench.case.words(TASK);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let running = sandbox.start(&bench.lab.target, &words, &[])?;
    let outcome = sandbox.finish(running)?;
    let mut evidence = reel.before.clone();
    evidence.runs.push(wrong);
    evidence.runs.push(run(None, Expect::Ends(0), outcome, sandbox.look()?));
    Ok(Played::judged(evidence, &bench.baseline))
}

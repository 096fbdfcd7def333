//! The method `faults` for the run: each call of it fails once, or writes half.

use std::sync::Arc;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use super::ways::{NAME, STOPPED, each, ways};
use crate::agent::process::{Ended, Env, Outcome};
use crate::case::TASK;
use crate::contract::{DB_FILE, STARTER};
use crate::crash::power::acks::lost;
use crate::crash::power::enumerate::Limits;
use crate::crash::power::trail::{Blow, Scribe, strike};
use crate::crash::power::{Trail, What, states};
use crate::crash::{Frame, Image, database};
use crate::error::LabError;
use crate::judge::verdict::Verdict;
use crate::look::evidence::{Expect, RunRecord};
use crate::look::sandbox::Sandbox;
use crate::look::snapshot::Snapshot;
use crate::play::prepared::Prepared;
use crate::play::resume::{run_again, to_the_end};
use crate::play::scenario::{Played, Scenario};
use crate::play::taped::Taped;
use crate::play::taped::remark;
use crate::trace::{Class, Verb};

/// What the disks after a success are taken from.
const LIMITS: Limits = Limits { all_up_to: 4, samples: 8, tears: 1, most: usize::MAX };

/// So many calls of a plan are failed in an everyday run; more where it makes more than that outside the database.
const BOUNDED: usize = 25;

/// The method for the run of a plan.
///
/// # Errors
/// The lab's own failures.
pub(super) fn scenarios(ready: &Arc<Prepared>) -> Result<Vec<Scenario>, LabError> {
    let taped = Arc::new(Taped::of_run(ready)?);
    Ok(chosen(ready, &taped.tape.frames).into_iter().map(|at| scenario(ready, &taped, at)).collect())
}

/// The calls to fail: all; or in an everyday run some of the plan's own, and of these all that are outside the
/// database, whose calls are the same in every plan.
fn chosen(ready: &Prepared, frames: &[Frame]) -> Vec<usize> {
    let mut places: Vec<usize> = (0..frames.len()).collect();
    if ready.lab.deep {
        return places;
    }
    places.retain(|at| ready.is_own(&frames[*at].at));
    let mut luck = StdRng::seed_from_u64(ready.lab.seed_for(&format!("faults/{}", ready.case.name)));
    let (mut of_database, mut places): (Vec<usize>, Vec<usize>) =
        places.into_iter().partition(|at| frames[*at].call.path.starts_with(DB_FILE));
    while !of_database.is_empty() && places.len() + of_database.len() > BOUNDED {
        of_database.remove(luck.random_range(0..of_database.len()));
    }
    places.extend(of_database);
    places.sort_unstable();
    places
}

fn scenario(ready: &Arc<Prepared>, taped: &Arc<Taped>, at: usize) -> Scenario {
    let frame = taped.tape.frames[at].clone();
    let ways = ways(ready, &frame);
    let names: Vec<&str> = ways.iter().map(|(name, _)| name.as_str()).collect();
    let title =
        format!("{} on {} fails with {}, then a run without faults", frame.at, frame.call.path, names.join(", "));
    let what = frame.at.to_string();
    let taped = Arc::clone(taped);
    let play = move |ready: &Prepared| {
        let note = remark(taped.tape.threads, &taped.tape.blind);
        each(&ways, &frame, note, |verb| fail(ready, &taped, &frame, Blow { call: at, verb }))
    };
    Scenario::new(NAME, ready, &what, title, play)
}

fn fail(ready: &Prepared, taped: &Taped, frame: &Frame, blow: Blow) -> Result<Played, LabError> {
    let mut sandbox = Sandbox::empty(&ready.lab.root, &ready.case)?;
    let base = &taped.tape.images[0];
    base.write(&sandbox.world())?;
    let words = ready.case.kind.words(TASK);
    // Only a sync that failed leads to the question what a power cut could take back. On the way to a stored task it is
    // not asked: SQLite makes the database's files there, and tells nobody that the sync of their folder has failed.
    let stored = taped.tape.before(blow.call).task(TASK).is_some();
    let promised = stored && frame.call.class == Class::Sync && matches!(blow.verb, Verb::Fail(_));
    let promised = promised && !is_of_a_program(taped, frame);
    let (outcome, trail) = if promised {
        let mut scribe = Scribe::new(&ready.lab, &sandbox, base)?;
        scribe.process(&mut sandbox, &words, &Env::new(), Some(blow))?;
        let trail = scribe.finish();
        (trail.processes[0].1.clone(), Some(trail))
    } else {
        (strike(&ready.lab, &mut sandbox, &words, &Env::new(), blow)?, None)
    };
    let (succeeded, stopped) = (outcome.ended == Ended::Exited(0), outcome.stopped_loudly());
    let mut past = taped.past.clone();
    past.runs.push(faulted(outcome, sandbox.look()?));
    let evidence = to_the_end(ready, &mut sandbox, past, &Env::new())?;
    let mut played = Played::judged(evidence, &ready.baseline);
    played.note = stopped.then(|| STOPPED.to_owned());
    if let (true, Some(trail)) = (succeeded, trail) {
        played.and("no_false_success", no_false_success(ready, taped, &trail)?);
    }
    Ok(played)
}

/// Whether a program makes the call that a step has started. Its failed syncs are its own to tell of, and an agent that
/// hears "try again later" does.
fn is_of_a_program(taped: &Taped, frame: &Frame) -> bool {
    let first = taped.tape.frames.first().map_or(frame.call.thread, |first| first.call.thread);
    frame.at.phase.starts_with(&format!("{STARTER}:")) && frame.call.thread != first
}

/// What is known of a run with a fault.
fn faulted(outcome: Outcome, after: Snapshot) -> RunRecord {
    let expect = Expect::Faulted;
    RunRecord { task: TASK.to_owned(), kill: None, expect, outcome, signalled: false, after: Some(after) }
}

/// Says so where the process has synced again what it could not sync: the kernel may call the pages clean by then, and
/// the second sync succeeds without writing anything.
fn retried(trail: &Trail) -> Option<String> {
    let mut syncs = trail.entries.iter().skip_while(|entry| !matches!(entry.what, What::Failed(_)));
    let What::Failed(failed) = &syncs.next()?.what else { return None };
    let again = syncs.find(|entry| entry.what == What::Sync(failed.clone()))?;
    Some(format!("it retried after a failed sync, at {}, and took the second one for success", again.at))
}

/// Whether every disk that a power cut can leave right after the success still
/// leads to the outcome that was told.
fn no_false_success(ready: &Prepared, taped: &Taped, trail: &Trail) -> Result<Verdict, LabError> {
    let found = states(trail, &LIMITS, ready.lab.seed);
    let end = trail.entries.len() - 1;
    for state in found.all.iter().filter(|state| state.moment == end) {
        let image: Image = found.image(state);
        let seen = Arc::new(database(&ready.lab, &image)?);
        let entry = &trail.entries[end];
        let lost = Verdict::of(&lost(&entry.told, &seen.0));
        let verdict = if lost.holds() {
            let whole = &trail.processes[0].1;
            let resumed = run_again(ready, &taped.past, &entry.at, whole, &image, &seen, &Env::new())?;
            let played = Played::judged(resumed.evidence, &ready.baseline);
            // An attempt that failed before the power went has failed for the fault.
            let found = played.findings.iter().filter(|finding| finding.property != "undisturbed");
            let why = found.map(|finding| format!("{}: {}", finding.property, finding.why));
            Verdict::of(&why.collect::<Vec<_>>())
        } else {
            lost
        };
        if let Verdict::Violated(why) = verdict {
            let what = retried(trail).unwrap_or_else(|| "it went on after a failed sync".to_owned());
            return Ok(Verdict::Violated(format!("{what}; it ended with 0, and {}\n{why}", found.describe(state))));
        }
    }
    Ok(Verdict::Holds)
}

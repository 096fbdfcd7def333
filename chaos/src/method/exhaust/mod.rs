//! Every state that a SIGKILL can leave: one traced run, the folder after each
//! call that changed it, and each distinct folder resumed and judged. Covered
//! are `create`, the run, and the recovery of a run that was killed with its last
//! effect in the world and no commit of it.
//!
//! With depth 2 the resume of every state is traced and cut again. With `--real`
//! the kills are true ones, before and after every call.

mod inbox;
mod real;

use std::collections::BTreeSet;
use std::sync::Arc;

use super::Method;
use crate::case::plan::PLAN_FILE;
use crate::crash::{Tape, record, record_from};
use crate::error::LabError;
use crate::look::facts::{Snapshot, Tables};
use crate::look::sandbox::Sandbox;
use crate::play::prepared::Bench;
use crate::play::resume::{Past, Resumed, create_again, run_again};
use crate::play::scenario::{Played, Scenario};
use crate::play::stage::{Env, TASK};
use crate::report::model::VerdictKind;
use crate::schedule::{CallPoint, Kill, KillSchedule};
use crate::trace;

/// See the file's head.
pub(super) const METHOD: Method = Method {
    name: "exhaust",
    about: "every folder that a SIGKILL can leave, after each system call, resumed",
    scenarios,
};

/// A tape with what came before it.
struct Reel {
    past: Past,
    tape: Tape,
    /// Kills that came before, for the addresses.
    before: Vec<CallPoint>,
}

fn scenarios(bench: &Arc<Bench>) -> Result<Vec<Scenario>, LabError> {
    if !trace::available() {
        return Ok(vec![not_here(bench, METHOD.name)]);
    }
    if bench.case.is_inbox() {
        return inbox::scenarios(bench);
    }
    let (create, run) = reels(bench)?;
    let mut all = Vec::new();
    // Only the last step of a tool's example is its own; all else is in the other plans.
    if bench.case.example_of.is_none() || bench.lab.deep.whole {
        all.extend(states(&create).map(|at| creation(bench, &create, at)));
    }
    all.extend(states(&run).filter(|at| is_own(bench, &run.tape.frames[*at].at)).map(|at| cut(bench, &run, at)));
    if let (Some(recovery), None) = (recovery(bench, &run)?, &bench.case.example_of) {
        all.extend(states(&recovery).map(|at| cut(bench, &recovery, at)));
    }
    if bench.lab.deep.depth > 1 {
        all.extend(kinds(&run).into_iter().map(|at| twice(bench, &run, at)));
    }
    if bench.lab.deep.real {
        all.extend((0..run.tape.frames.len()).map(|at| real::scenario(bench, &run.past, &run.tape, at)));
    }
    Ok(all)
}

/// Whether a call is this plan's own business: all are, but in a tool's example,
/// where all is not wanted, only those of the tool's own step.
pub(super) fn is_own(bench: &Bench, at: &CallPoint) -> bool {
    let tool = format!(":{}", bench.last_step());
    bench.lab.deep.whole || bench.case.example_of.is_none() || at.phase.ends_with(&tool)
}

/// What a method of the tracer is on a system without one.
pub(super) fn not_here(bench: &Arc<Bench>, method: &'static str) -> Scenario {
    let title = "not available here: the tracer needs Linux on x86-64 or aarch64".to_owned();
    let note = title.clone();
    let play = move |_: &Bench| Ok(Played { note: Some(note.clone()), ..Played::default() });
    Scenario::new(method, bench, "not-available", title, play)
}

/// `create` and the run after it on tape.
fn reels(bench: &Arc<Bench>) -> Result<(Arc<Reel>, Arc<Reel>), LabError> {
    let (lab, case) = (&bench.lab, &bench.case);
    let mut sandbox = Sandbox::new(&lab.root, case)?;
    let create = record(lab, &mut sandbox, &["create", TASK, PLAN_FILE], &Env::new())?;
    let run = record(lab, &mut sandbox, &["run", TASK], &Env::new())?;
    let past = Past::created(create.outcome.clone(), run.found.clone());
    let reel = |tape| Arc::new(Reel { past: past.clone(), tape, before: Vec::new() });
    Ok((reel(create), reel(run)))
}

/// The places on a tape after which the folder was one that was never there before.
fn states(reel: &Arc<Reel>) -> impl Iterator<Item = usize> + use<> {
    let mut seen = BTreeSet::from([reel.tape.images[0].key()]);
    let new = reel
        .tape
        .frames
        .iter()
        .enumerate()
        .filter(move |(_, frame)| frame.changed && seen.insert(reel.tape.images[frame.image].key()));
    new.map(|(at, _)| at).collect::<Vec<_>>().into_iter()
}

fn creation(bench: &Arc<Bench>, reel: &Arc<Reel>, at: usize) -> Scenario {
    let reel = Arc::clone(reel);
    scenario(bench, &reel.clone(), at, "created and run again", move |bench, env| {
        let frame = &reel.tape.frames[at];
        create_again(bench, &reel.tape.images[frame.image], &reel.tape.seen[frame.image], env)
    })
}

fn cut(bench: &Arc<Bench>, reel: &Arc<Reel>, at: usize) -> Scenario {
    let reel = Arc::clone(reel);
    scenario(bench, &reel.clone(), at, "resumed", move |bench, env| resumed(bench, &reel, at, env))
}

fn resumed(bench: &Bench, reel: &Reel, at: usize, env: &Env) -> Result<Resumed, LabError> {
    let frame = &reel.tape.frames[at];
    let (image, seen) = (&reel.tape.images[frame.image], &reel.tape.seen[frame.image]);
    run_again(bench, &reel.past, &frame.at, &reel.tape.outcome, image, seen, env)
}

fn scenario(
    bench: &Arc<Bench>,
    reel: &Reel,
    at: usize,
    then: &str,
    again: impl Fn(&Bench, &Env) -> Result<Resumed, LabError> + Send + Sync + 'static,
) -> Scenario {
    let frame = &reel.tape.frames[at];
    let schedule = kills(reel, at);
    let did: Vec<String> = frame.ops.iter().map(ToString::to_string).collect();
    let title = format!("killed after {} ({}), {then}", frame.at, did.join(", "));
    let blind = reel.tape.blind.clone();
    let threads = reel.tape.threads;
    let play = move |bench: &Bench| {
        let mut played = judged(bench, again(bench, &Env::new())?);
        played.note = remark(threads, &blind);
        Ok(played)
    };
    Scenario::new(METHOD.name, bench, &schedule.to_string(), title, play).kills(schedule)
}

fn kills(reel: &Reel, at: usize) -> KillSchedule {
    let points = reel.before.iter().chain([&reel.tape.frames[at].at]);
    KillSchedule(points.cloned().map(Kill::Call).collect())
}

fn judged(bench: &Bench, resumed: Resumed) -> Played {
    let mut played = Played::judged(resumed.evidence, &bench.baseline);
    played.cycles = played.cycles.max(1);
    played.and("whole_or_nothing", resumed.create);
    played
}

/// What a reader should know of a tape, beside its verdict.
pub(super) fn remark(threads: usize, blind: &[String]) -> Option<String> {
    let mut remarks = blind.to_vec();
    if threads > 1 {
        remarks.push(format!("{threads} threads or children: the order of calls may differ from run to run"));
    }
    (!remarks.is_empty()).then(|| remarks.join("; "))
}

/// The resume after a kill with the last effect in the world and no commit of it.
fn recovery(bench: &Arc<Bench>, run: &Arc<Reel>) -> Result<Option<Arc<Reel>>, LabError> {
    let running = |at: &usize| !tables(run, *at).with_status(TASK, "running").is_empty();
    let last = states(run).filter(running).last();
    last.map(|at| resume_on_tape(bench, run, at)).transpose()
}

fn tables(reel: &Reel, at: usize) -> &Tables {
    &reel.tape.seen[reel.tape.frames[at].image].0
}

fn resume_on_tape(bench: &Bench, reel: &Arc<Reel>, at: usize) -> Result<Arc<Reel>, LabError> {
    let frame = &reel.tape.frames[at];
    let tape = record_from(&bench.lab, &bench.case, &reel.tape.images[frame.image], &["run", TASK], &Env::new())?;
    let left: Snapshot = tape.found.clone();
    let past = reel.past.and_killed(&frame.at, &reel.tape.outcome, Some(left));
    let mut before = reel.before.clone();
    before.push(frame.at.clone());
    Ok(Arc::new(Reel { past, tape, before }))
}

/// One place for each kind of state: the same rows, the same files beside the
/// database, and a log that is there or not. What two such states differ in is
/// how much of the next commit is written, which no reader can see.
fn kinds(reel: &Arc<Reel>) -> Vec<usize> {
    let mut seen = BTreeSet::new();
    let places: Vec<usize> = states(reel).collect();
    let new = places.into_iter().filter(|at| {
        let image = &reel.tape.images[reel.tape.frames[*at].image];
        let files: Vec<_> = image.files.iter().filter(|(name, _)| !name.starts_with("state.db")).collect();
        let log = image.files.keys().any(|name| name.ends_with("-wal"));
        seen.insert(format!("{:?} {files:?} {log}", tables(reel, *at)))
    });
    new.collect()
}

/// All cuts of the resume after one cut.
fn twice(bench: &Arc<Bench>, reel: &Arc<Reel>, at: usize) -> Scenario {
    let first = reel.tape.frames[at].at.clone();
    let schedule = kills(reel, at);
    let title = format!("killed after {first}, killed again after every call of the resume, resumed");
    let reel = Arc::clone(reel);
    let play = move |bench: &Bench| {
        let second = resume_on_tape(bench, &reel, at)?;
        let mut sum = Played::default();
        for at in states(&second) {
            let played = judged(bench, resumed(bench, &second, at, &Env::new())?);
            (sum.cycles, sum.checked) = (sum.cycles + played.cycles, sum.checked + played.checked);
            let failed = played.verdict() != VerdictKind::Holds;
            sum.evidence = played.evidence;
            if failed {
                sum.findings = played.findings;
                sum.subject = Some(format!("{}/{}/{}", METHOD.name, bench.case.name, kills(&second, at)));
                break;
            }
        }
        sum.note = Some(format!("{} distinct states after the second kill", sum.cycles));
        Ok(sum)
    };
    Scenario::new(METHOD.name, bench, &format!("{first}, *"), title, play).kills(schedule)
}

//! Every disk that a power cut can leave, by the model in [`crate::crash::power`]: each
//! distinct one is resumed and judged, and what the world had been told must be
//! found again. Three logs: a task created and run from nothing, a run on a
//! database whose log is overwritten, and such a run that was killed before. Of
//! the inbox case two: from nothing, and after a kill with the report in place.

use std::process::Command;
use std::sync::Arc;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use super::Method;
use super::exhaust::{is_own, not_here, remark};
use crate::case::plan::PLAN_FILE;
use crate::crash::power::acks::{Fact, survived};
use crate::crash::power::enumerate::Limits;
use crate::crash::power::log::{Blow, Scribe};
use crate::crash::power::model::Effect;
use crate::crash::power::{Log, State, States, What, states};
use crate::crash::{Image, database};
use crate::error::LabError;
use crate::judge::verdict::Verdict;
use crate::look::facts::{Snapshot, TaskEnd};
use crate::look::reader::Keeper;
use crate::look::sandbox::{DB_FILE, Sandbox};
use crate::play::prepared::Bench;
use crate::play::resume::{Past, create_again, run_again};
use crate::play::scenario::{Played, Scenario};
use crate::play::stage::{Env, Stage, TASK};
use crate::report::model::{Finding, VerdictKind};
use crate::schedule::{CallPoint, Kill, KillSchedule};
use crate::trace::{self, Verb};

/// See the file's head.
pub(super) const METHOD: Method = Method {
    name: "power",
    about: "every disk that POSIX allows after a power cut at each moment, resumed",
    scenarios,
};

/// Everything, within reason.
const WHOLE: Limits = Limits { all_up_to: 6, samples: 60, tears: 16, most: usize::MAX };

/// What fits into an everyday run.
const BOUNDED: Limits = Limits { all_up_to: 2, samples: 0, tears: 1, most: 90 };

/// After so many bad disks at one moment the others are not looked at.
const ENOUGH: usize = 12;

/// A log with what came before it.
struct Reel {
    name: String,
    log: Log,
    /// What was before its first run.
    created: Past,
    /// The first process that is no `create`.
    first_run: usize,
    /// The folder that the run before the last one left, where it was killed.
    killed: Option<Snapshot>,
}

fn scenarios(bench: &Arc<Bench>) -> Result<Vec<Scenario>, LabError> {
    if !trace::available() {
        return Ok(vec![not_here(bench, METHOD.name)]);
    }
    let whole = bench.lab.deep.whole;
    let example = bench.case.example_of.is_some();
    let mut reels = Vec::new();
    if !bench.case.is_inbox() && (whole || !example) {
        reels.push(fresh(bench)?);
    }
    let (name, record): (_, Record) = if bench.case.is_inbox() { ("fresh", inbox) } else { ("aged", aged) };
    let first = record(bench, name, None)?;
    let kills = kills(bench, &first.log);
    reels.push(first);
    for (call, at) in kills {
        reels.push(record(bench, &format!("after {at}"), Some(call))?);
    }
    let mut all = Vec::new();
    for reel in reels {
        all.extend(moments(bench, &Arc::new(reel), if whole { &WHOLE } else { &BOUNDED }));
    }
    Ok(all)
}

/// Records a run; or two, the first of them killed after so many calls.
type Record = fn(&Bench, &str, Option<usize>) -> Result<Reel, LabError>;

/// A task created and run in a folder that has nothing but the plan.
fn fresh(bench: &Bench) -> Result<Reel, LabError> {
    let mut sandbox = Sandbox::new(&bench.lab.root, &bench.case)?;
    let base = Image::read(&sandbox.world(), None)?;
    let mut scribe = Scribe::new(&bench.lab, &sandbox, &base)?;
    scribe.process(&mut sandbox, &["create", TASK, PLAN_FILE], &Env::new(), None)?;
    let created = sandbox.look()?;
    scribe.process(&mut sandbox, &["run", TASK], &Env::new(), None)?;
    let log = scribe.finish();
    let created = Past::created(log.processes[0].1.clone(), created);
    Ok(Reel { name: "fresh".to_owned(), log, created, first_run: 1, killed: None })
}

/// On a database whose log was written before.
fn aged(bench: &Bench, name: &str, kill_after: Option<usize>) -> Result<Reel, LabError> {
    let mut sandbox = Sandbox::new(&bench.lab.root, &bench.case)?;
    let create = sandbox.create(&bench.lab.target, TASK)?;
    let created = sandbox.look()?;
    let keeper = Keeper::age(&sandbox.db())?;
    let base = copied(&bench.lab.root, &sandbox)?;
    let (log, killed) = runs(bench, &mut sandbox, &base, kill_after)?;
    keeper.leave()?;
    Ok(Reel { name: name.to_owned(), log, created: Past::created(create, created), first_run: 0, killed })
}

/// In a folder that has nothing but the notes: the run creates its task.
fn inbox(bench: &Bench, name: &str, kill_after: Option<usize>) -> Result<Reel, LabError> {
    let mut stage = Stage::single(&bench.lab, &bench.case)?;
    let base = Image::read(&stage.sandbox.world(), None)?;
    let (log, killed) = runs(bench, &mut stage.sandbox, &base, kill_after)?;
    let created = Past::of(stage.close(TaskEnd::Done));
    Ok(Reel { name: name.to_owned(), log, created, first_run: 0, killed })
}

/// The log of the runs, and the folder that the killed one left.
fn runs(
    bench: &Bench,
    sandbox: &mut Sandbox,
    base: &Image,
    kill_after: Option<usize>,
) -> Result<(Log, Option<Snapshot>), LabError> {
    let words = bench.case.words(TASK);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let mut scribe = Scribe::new(&bench.lab, sandbox, base)?;
    let mut killed = None;
    if let Some(call) = kill_after {
        scribe.process(sandbox, &words, &Env::new(), Some(Blow { call, verb: Verb::Kill }))?;
        killed = Some(look(bench, &scribe.now().image())?);
    }
    scribe.process(sandbox, &words, &Env::new(), None)?;
    Ok((scribe.finish(), killed))
}

/// What the lab sees in a folder of this content.
fn look(bench: &Bench, image: &Image) -> Result<Snapshot, LabError> {
    let sandbox = Sandbox::empty(&bench.lab.root, &bench.case)?;
    image.write(&sandbox.world())?;
    sandbox.look()
}

/// The folder by way of a copy that another process makes: to open and close the
/// database's files here would drop the locks of the lab's own connection.
fn copied(root: &std::path::Path, sandbox: &Sandbox) -> Result<Image, LabError> {
    let copy = tempfile::Builder::new().prefix(crate::agent::folder::PREFIX).tempdir_in(root);
    let copy = copy.map_err(LabError::io("create a folder in", root))?;
    let from = sandbox.world().join(".");
    let status = Command::new("cp").arg("-a").arg(&from).arg(copy.path()).status();
    match status {
        Ok(status) if status.success() => Image::read(copy.path(), None),
        other => Err(LabError::Internal(format!("cannot copy {}: {other:?}", from.display()))),
    }
}

/// Where to kill a run, so that the next one finds an effect that is in the
/// world, is not recorded, and whose name may not be safe: what it does about
/// that shows in what a power cut can leave then.
fn kills(bench: &Bench, log: &Log) -> Vec<(usize, CallPoint)> {
    let mut found = Vec::new();
    for entry in &log.entries {
        let What::Effect(Effect::Name { path, .. } | Effect::Move { to: path, .. } | Effect::Folder { path }) =
            &entry.what
        else {
            continue;
        };
        let phase = &entry.at.phase;
        let of_effect = phase.contains(':') && !phase.starts_with("next:") || phase == "finish";
        if of_effect && !path.starts_with(DB_FILE) {
            found.push((entry.call, entry.at.clone()));
        }
    }
    let spare = if bench.lab.deep.whole { 0 } else { found.len().saturating_sub(1) };
    found.split_off(spare)
}

/// One scenario a moment, with every disk that is possible then and not later.
fn moments(bench: &Arc<Bench>, reel: &Arc<Reel>, limits: &Limits) -> Vec<Scenario> {
    let seed = bench.lab.seed_for(&format!("power/{}/{}", bench.case.name, reel.name));
    let found = states(&reel.log, limits, seed);
    let about = format!(
        "at most {} changes pending; {} disks made, {} distinct",
        found.most_pending,
        found.made,
        found.all.len()
    );
    let own = found.all.iter().filter(|state| is_own(bench, &reel.log.entries[state.moment].at));
    let mut groups: Vec<(CallPoint, Vec<State>)> = Vec::new();
    for state in drawn(own.collect(), reel.log.entries.len() - 1, limits.most, seed) {
        let at = &reel.log.entries[state.moment].at;
        match groups.last_mut() {
            Some((last, states)) if last == at => states.push(state.clone()),
            _ => groups.push((at.clone(), vec![state.clone()])),
        }
    }
    let mut all = Vec::new();
    for (at, states) in groups {
        all.push(scenario(bench, reel, at, states, &about));
    }
    all
}

/// At most so many states, drawn by the seed, in their order; those of the last
/// moment come on top, because then everything had been told.
fn drawn(mut states: Vec<&State>, last: usize, most: usize, seed: u64) -> Vec<&State> {
    let end = states.iter().position(|state| state.moment == last).unwrap_or(states.len());
    let at_end = states.split_off(end);
    let mut luck = StdRng::seed_from_u64(seed);
    while states.len() > most {
        states.remove(luck.random_range(0..states.len()));
    }
    states.extend(at_end);
    states
}

fn scenario(bench: &Arc<Bench>, reel: &Arc<Reel>, at: CallPoint, disks: Vec<State>, about: &str) -> Scenario {
    let title = format!("{} disks after a power cut at {at}, {}", disks.len(), reel.name);
    let what = format!("{}/{at}", reel.name);
    let note = [Some(format!("{} disks here; {about}", disks.len())), remark(reel.log.threads, &reel.log.blind)];
    let note = note.into_iter().flatten().collect::<Vec<_>>().join("; ");
    let reel = Arc::clone(reel);
    let schedule = KillSchedule(vec![Kill::Call(at)]);
    let play = move |bench: &Bench| {
        let states = States::again(&reel.log);
        let mut sum = Played { note: Some(note.clone()), ..Played::default() };
        let mut bad = 0;
        for state in &disks {
            let mut played = judged(bench, &reel, &states, state)?;
            (sum.cycles, sum.checked) = (sum.cycles + 1, sum.checked + played.checked);
            let failed = played.verdict() != VerdictKind::Holds;
            if failed || sum.findings.is_empty() {
                sum.evidence = played.evidence.take();
            }
            bad += usize::from(failed);
            if failed && sum.disk.is_none() {
                sum.disk = Some(states.report(state));
            }
            // Each property is told once, with the first disk that breaks it.
            for finding in played.findings {
                if sum.findings.iter().all(|known| known.invariant != finding.invariant) {
                    sum.findings.push(tell(finding, &states, state));
                }
            }
            if bad == ENOUGH {
                break;
            }
        }
        Ok(sum)
    };
    Scenario::new(METHOD.name, bench, &what, title, play).kills(schedule)
}

/// A finding with what lay on the disk.
fn tell(mut finding: Finding, states: &States<'_>, state: &State) -> Finding {
    let journaled = match states.journaled_too(state) {
        true => "a journaling file system may leave this disk too",
        false => "POSIX allows this disk; a journaling file system would hardly leave it",
    };
    finding.why = format!("{}\n{}\n({journaled})", finding.why, states.describe(state));
    finding
}

fn judged(bench: &Bench, reel: &Reel, states: &States<'_>, state: &State) -> Result<Played, LabError> {
    let entry = &reel.log.entries[state.moment];
    let image = states.image(state);
    let seen = Arc::new(database(&bench.lab, &image)?);
    let survived = survived(&entry.told, &seen.0);
    let stored = entry.told.contains(&Fact::Stored { task: TASK.to_owned() });
    if stored && seen.0.task(TASK).is_none() {
        let mut lost = Played { cycles: 1, ..Played::default() };
        lost.and("acknowledged_survives", survived);
        return Ok(lost);
    }
    let resumed = if creates(reel, entry.process) {
        create_again(bench, &image, &seen, &Env::new())?
    } else {
        let whole = &reel.log.processes[entry.process].1;
        let past = past(reel, entry.process);
        run_again(bench, &past, &entry.at, whole, &image, &seen, &Env::new())?
    };
    let create = if stored { Verdict::Holds } else { resumed.create };
    let mut played = Played::judged(resumed.evidence, &bench.baseline);
    played.and("whole_or_nothing", create);
    played.and("acknowledged_survives", survived);
    Ok(played)
}

fn creates(reel: &Reel, process: usize) -> bool {
    reel.log.processes[process].0.starts_with("create")
}

fn past(reel: &Reel, process: usize) -> Past {
    let mut past = reel.created.clone();
    for killed in reel.first_run..process {
        let last = reel.log.entries.iter().rev().find(|entry| entry.process == killed);
        if let Some(last) = last {
            past = past.and_killed(&last.at, &reel.log.processes[killed].1, reel.killed.clone());
        }
    }
    past
}

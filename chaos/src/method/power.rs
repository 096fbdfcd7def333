//! Every disk that a power cut can leave, by the model in [`crate::crash::power`]: each
//! distinct one is resumed and judged, and what the world had been told must be
//! found again. Three trails: a task created and run from nothing, a run on a
//! database whose WAL is overwritten, and such a run that was killed before. Of
//! the inbox case two: from nothing, and after a kill with the report in place.

use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use crate::agent::process::Env;
use crate::case::TASK;
use crate::contract::{DB_FILE, PLAN_FILE};
use crate::crash::power::acks::{Fact, lost};
use crate::crash::power::enumerate::Limits;
use crate::crash::power::model::Effect;
use crate::crash::power::trail::{Blow, Scribe};
use crate::crash::power::{State, States, Trail, What, states};
use crate::crash::{Image, database};
use crate::error::LabError;
use crate::judge::verdict::{Finding, Verdict, VerdictKind};
use crate::look::evidence::TaskEnd;
use crate::look::reader::Keeper;
use crate::look::sandbox::Sandbox;
use crate::look::snapshot::Snapshot;
use crate::play::method::{Method, not_here};
use crate::play::prepared::Prepared;
use crate::play::resume::{Past, create_again, run_again};
use crate::play::scenario::{Played, Scenario};
use crate::play::taped::remark;
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
const BOUNDED: Limits = Limits { all_up_to: 2, samples: 0, tears: 1, most: 60 };

/// After so many bad disks at one moment the others are not looked at.
const ENOUGH: usize = 12;

/// How long the losses of a bad disk are made fewer.
const SHRINKING: Duration = Duration::from_secs(20);

/// A trail with what came before it.
struct Course {
    name: String,
    trail: Trail,
    /// What was before its first run.
    created: Past,
    /// The first process that is not `create`.
    first_run: usize,
    /// The folder that the run before the last one left, where it was killed.
    killed: Option<Snapshot>,
}

fn scenarios(ready: &Arc<Prepared>) -> Result<Vec<Scenario>, LabError> {
    if !trace::available() {
        return Ok(vec![not_here(ready, METHOD.name)]);
    }
    let whole = ready.lab.deep;
    let example = ready.case.example_of.is_some();
    let mut courses = Vec::new();
    if ready.case.kind.is_created() && (whole || !example) {
        courses.push(fresh(ready)?);
    }
    let (name, record): (_, Record) = if ready.case.kind.is_created() { ("aged", aged) } else { ("fresh", unborn) };
    let first = record(ready, name, None)?;
    let kills = kills(ready, &first.trail);
    courses.push(first);
    for (call, at) in kills {
        courses.push(record(ready, &format!("after {at}"), Some(call))?);
    }
    let mut all = Vec::new();
    for course in courses {
        all.extend(moments(ready, &Arc::new(course), if whole { &WHOLE } else { &BOUNDED }));
    }
    Ok(all)
}

/// Records a run; or two, the first of them killed after so many calls.
type Record = fn(&Prepared, &str, Option<usize>) -> Result<Course, LabError>;

/// A task created and run in a folder that has nothing but the plan.
fn fresh(ready: &Prepared) -> Result<Course, LabError> {
    let mut sandbox = Sandbox::new(&ready.lab.root, &ready.case)?;
    let base = Image::read(&sandbox.world(), None)?;
    let mut scribe = Scribe::new(&ready.lab, &sandbox, &base)?;
    scribe.process(&mut sandbox, &["create", TASK, PLAN_FILE], &Env::new(), None)?;
    let created = sandbox.look()?;
    scribe.process(&mut sandbox, &["run", TASK], &Env::new(), None)?;
    let trail = scribe.finish();
    let created = Past::created(trail.processes[0].1.clone(), created);
    Ok(Course { name: "fresh".to_owned(), trail, created, first_run: 1, killed: None })
}

/// On a database whose WAL was written before.
fn aged(ready: &Prepared, name: &str, kill_after: Option<usize>) -> Result<Course, LabError> {
    let mut sandbox = Sandbox::new(&ready.lab.root, &ready.case)?;
    let create = sandbox.create(&ready.lab.target, TASK)?;
    let created = sandbox.look()?;
    let keeper = Keeper::age(&sandbox.db())?;
    let base = copied(&ready.lab.root, &sandbox)?;
    let (trail, killed) = runs(ready, &mut sandbox, &base, kill_after)?;
    keeper.leave()?;
    Ok(Course { name: name.to_owned(), trail, created: Past::created(create, created), first_run: 0, killed })
}

/// In a folder that has nothing but the notes: the run creates its task.
fn unborn(ready: &Prepared, name: &str, kill_after: Option<usize>) -> Result<Course, LabError> {
    let mut stage = ready.stage()?;
    let base = Image::read(&stage.sandbox.world(), None)?;
    let (trail, killed) = runs(ready, &mut stage.sandbox, &base, kill_after)?;
    let created = Past::of(stage.close(TaskEnd::Done));
    Ok(Course { name: name.to_owned(), trail, created, first_run: 0, killed })
}

/// The trail of the runs, and the folder that the killed one left.
fn runs(
    ready: &Prepared,
    sandbox: &mut Sandbox,
    base: &Image,
    kill_after: Option<usize>,
) -> Result<(Trail, Option<Snapshot>), LabError> {
    let words = ready.case.kind.words(TASK);
    let mut scribe = Scribe::new(&ready.lab, sandbox, base)?;
    let mut killed = None;
    if let Some(call) = kill_after {
        scribe.process(sandbox, &words, &Env::new(), Some(Blow { call, verb: Verb::Kill }))?;
        killed = Some(look(ready, &scribe.now().image())?);
    }
    scribe.process(sandbox, &words, &Env::new(), None)?;
    Ok((scribe.finish(), killed))
}

/// What the lab sees in a folder of this content.
fn look(ready: &Prepared, image: &Image) -> Result<Snapshot, LabError> {
    let sandbox = Sandbox::empty(&ready.lab.root, &ready.case)?;
    image.write(&sandbox.world())?;
    sandbox.look()
}

/// The folder by way of a copy that another process makes: to open and close the
/// database's files here would drop the locks of the lab's own connection.
fn copied(root: &std::path::Path, sandbox: &Sandbox) -> Result<Image, LabError> {
    let copy = tempfile::Builder::new().prefix(crate::agent::stray::PREFIX).tempdir_in(root);
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
fn kills(ready: &Prepared, trail: &Trail) -> Vec<(usize, CallPoint)> {
    let mut found = Vec::new();
    for entry in &trail.entries {
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
    let spare = if ready.lab.deep { 0 } else { found.len().saturating_sub(1) };
    found.split_off(spare)
}

/// One scenario a moment, with every disk that is possible then and not later.
fn moments(ready: &Arc<Prepared>, course: &Arc<Course>, limits: &Limits) -> Vec<Scenario> {
    let seed = ready.lab.seed_for(&format!("power/{}/{}", ready.case.name, course.name));
    let found = states(&course.trail, limits, seed);
    let about = format!(
        "at most {} changes pending; {} disks made, {} distinct",
        found.most_pending,
        found.made,
        found.all.len()
    );
    let own = found.all.iter().filter(|state| ready.is_own(&course.trail.entries[state.moment].at));
    let mut groups: Vec<(CallPoint, Vec<State>)> = Vec::new();
    for state in drawn(own.collect(), course.trail.entries.len() - 1, limits.most, seed) {
        let at = &course.trail.entries[state.moment].at;
        match groups.last_mut() {
            Some((last, states)) if last == at => states.push(state.clone()),
            _ => groups.push((at.clone(), vec![state.clone()])),
        }
    }
    let mut all = Vec::new();
    for (at, states) in groups {
        all.push(scenario(ready, course, at, states, &about));
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

fn scenario(ready: &Arc<Prepared>, course: &Arc<Course>, at: CallPoint, disks: Vec<State>, about: &str) -> Scenario {
    let title = format!("{} disks after a power cut at {at}, {}", disks.len(), course.name);
    let what = format!("{}/{at}", course.name);
    let note =
        [Some(format!("{} disks here; {about}", disks.len())), remark(course.trail.threads, &course.trail.blind)];
    let note = note.into_iter().flatten().collect::<Vec<_>>().join("; ");
    let course = Arc::clone(course);
    let schedule = KillSchedule(vec![Kill::Call(at)]);
    let play = move |ready: &Prepared| {
        let states = States::again(&course.trail);
        let mut sum = Played { note: Some(note.clone()), ..Played::default() };
        let mut bad = 0;
        for state in &disks {
            let mut played = judged(ready, &course, &states, state)?;
            (sum.cycles, sum.checked) = (sum.cycles + 1, sum.checked + played.checked);
            let failed = played.verdict() != VerdictKind::Holds;
            let mut state = state.clone();
            // The first bad disk is the one that is shown.
            if failed && bad == 0 {
                (state, played) = shrunk(state, played, |state| judged(ready, &course, &states, state))?;
            }
            let state = &state;
            if failed || sum.findings.is_empty() {
                sum.evidence = played.evidence.take();
            }
            bad += usize::from(failed);
            if failed && sum.disk.is_none() {
                sum.disk = Some(states.report(state));
            }
            // Each property is told once, with the first disk that breaks it.
            for finding in played.findings {
                if sum.findings.iter().all(|known| known.property != finding.property) {
                    sum.findings.push(tell(finding, &states, state));
                }
            }
            if bad == ENOUGH {
                break;
            }
        }
        Ok(sum)
    };
    Scenario::new(METHOD.name, ready, &what, title, play).kills(schedule)
}

/// The bad disk with as few losses as it still violates the same property with: each that is dropped is one less to
/// look at.
fn shrunk(
    mut state: State,
    mut played: Played,
    judged: impl Fn(&State) -> Result<Played, LabError>,
) -> Result<(State, Played), LabError> {
    let begin = Instant::now();
    let root = played.findings.first().map(|finding| finding.property.clone());
    for place in (0..state.pending.len()).rev() {
        let Some(fewer) = state.with_arrived(place) else { continue };
        if begin.elapsed() > SHRINKING {
            break;
        }
        let again = judged(&fewer)?;
        if again.findings.iter().any(|finding| Some(&finding.property) == root.as_ref()) {
            (state, played) = (fewer, again);
        }
    }
    Ok((state, played))
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

fn judged(ready: &Prepared, course: &Course, states: &States<'_>, state: &State) -> Result<Played, LabError> {
    let entry = &course.trail.entries[state.moment];
    let image = states.image(state);
    let seen = Arc::new(database(&ready.lab, &image)?);
    let survived = Verdict::of(&lost(&entry.told, &seen.0));
    let stored = entry.told.contains(&Fact::Stored { task: TASK.to_owned() });
    if stored && seen.0.task(TASK).is_none() {
        let mut lost = Played { cycles: 1, ..Played::default() };
        lost.and("acknowledged_survives", survived);
        return Ok(lost);
    }
    let resumed = if creates(course, entry.process) {
        create_again(ready, &image, &seen, &Env::new())?
    } else {
        let whole = &course.trail.processes[entry.process].1;
        let past = past(course, entry.process);
        run_again(ready, &past, &entry.at, whole, &image, &seen, &Env::new())?
    };
    let create = if stored { Verdict::Holds } else { resumed.create };
    let mut played = Played::judged(resumed.evidence, &ready.baseline);
    played.and("whole_or_nothing", create);
    played.and("acknowledged_survives", survived);
    Ok(played)
}

fn creates(course: &Course, process: usize) -> bool {
    course.trail.processes[process].0.starts_with("create")
}

fn past(course: &Course, process: usize) -> Past {
    let mut past = course.created.clone();
    for killed in course.first_run..process {
        let last = course.trail.entries.iter().rev().find(|entry| entry.process == killed);
        if let Some(last) = last {
            past = past.and_killed(&last.at, &course.trail.processes[killed].1, course.killed.clone());
        }
    }
    past
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crash::power::Fate;

    fn bad(property: &str) -> Played {
        let mut played = Played::default();
        played.and(property, Verdict::Violated("no".to_owned()));
        played
    }

    /// A bad disk was told with twenty changes that were lost, of which one mattered.
    #[test]
    fn a_bad_disk_loses_only_what_it_must() {
        let state = State { moment: 9, pending: (0..8).map(|at| (at, Fate::Lost)).collect() };
        let needs = |state: &State| match state.pending[2].1 == Fate::Lost && state.pending[5].1 == Fate::Lost {
            true => Ok(bad("effect_once")),
            // Another property is another bug.
            false => Ok(bad("exit_code")),
        };
        let (least, played) = shrunk(state, bad("effect_once"), needs).expect("played");
        let lost: Vec<usize> = least.pending.iter().filter(|it| it.1 == Fate::Lost).map(|it| it.0).collect();
        assert_eq!(lost, [2, 5]);
        assert_eq!(played.findings[0].property, "effect_once");
    }
}

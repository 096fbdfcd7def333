//! The method `exhaust` for the inbox case: one traced `inbox` that creates and
//! runs, and two that mend a torn and rebuild a lost log; the folder after each
//! call that changed it, resumed and judged.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::{METHOD, remark};
use crate::crash::damage::Damage;
use crate::crash::{Tape, record};
use crate::error::LabError;
use crate::look::facts::{Expect, TaskEnd};
use crate::play::discover::damage_point;
use crate::play::prepared::Bench;
use crate::play::reel::Reel;
use crate::play::resume::{Past, run_again};
use crate::play::scenario::{Played, Scenario};
use crate::play::stage::{Env, Stage, TASK};
use crate::schedule::{Kill, KillSchedule};

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
fn reel(bench: &Bench, damage: Option<Damage>) -> Result<Reel, LabError> {
    let mut stage = Stage::single(&bench.lab, &bench.case)?;
    if let Some(damage) = damage {
        stage.run(TASK, Some(&Kill::Point(damage_point(&bench.case))), Expect::Dies, &[])?;
        stage.damage_log(|sandbox| damage.apply(sandbox))?;
    }
    let words = bench.case.words(TASK);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let tape = record(&bench.lab, &mut stage.sandbox, &words, &Env::new())?;
    Ok(Reel { past: Past::of(stage.close(TaskEnd::Done)), tape })
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
    let Reel { past, tape } = reel;
    let frame = &tape.frames[at];
    let (image, seen) = (&tape.images[frame.image], &tape.seen[frame.image]);
    let resumed = run_again(bench, past, &frame.at, &tape.outcome, image, seen, &Env::new())?;
    let mut played = Played::judged(resumed.evidence, &bench.baseline);
    played.note = remark(tape.threads, &tape.blind);
    Ok(played)
}

//! The method `faults` for `create`: each call on the way to a stored task fails once, or writes half. Then the task is
//! created again, where it was not stored, and run.

use std::sync::Arc;

use super::ways::{NAME, STOPPED, each, ways};
use crate::agent::process::{Ended, Env, Outcome};
use crate::case::TASK;
use crate::contract::PLAN_FILE;
use crate::crash::power::trail::{Blow, strike};
use crate::crash::{Frame, Image, Tape, database, record};
use crate::error::LabError;
use crate::judge::verdict::Verdict;
use crate::look::sandbox::Sandbox;
use crate::play::prepared::Prepared;
use crate::play::resume::create_again;
use crate::play::scenario::{Played, Scenario};
use crate::play::taped::remark;
use crate::trace::Class;

/// See the file's head.
///
/// # Errors
/// The lab's own failures.
pub(super) fn scenarios(ready: &Arc<Prepared>) -> Result<Vec<Scenario>, LabError> {
    // The way to a stored task is the same for each tool.
    if ready.case.example_of.is_some() {
        return Ok(Vec::new());
    }
    let mut sandbox = Sandbox::new(&ready.lab.root, &ready.case)?;
    let tape = Arc::new(record(&ready.lab, &mut sandbox, &["create", TASK, PLAN_FILE], &Env::new())?);
    // In an everyday run the promises, without which no step of the way is worth anything.
    let chosen = |frame: &Frame| ready.lab.deep || frame.call.class == Class::Sync;
    let places = tape.frames.iter().enumerate().filter(|(_, frame)| chosen(frame));
    Ok(places.map(|(at, _)| scenario(ready, &tape, at)).collect())
}

fn scenario(ready: &Arc<Prepared>, tape: &Arc<Tape>, at: usize) -> Scenario {
    let frame = &tape.frames[at];
    let what = frame.at.to_string();
    let title = format!("{what} on {} fails or writes half, then created again and run", frame.call.path);
    let ways = ways(ready, frame);
    let tape = Arc::clone(tape);
    let play = move |ready: &Prepared| {
        let note = remark(tape.threads, &tape.blind);
        each(&ways, &tape.frames[at], note, |verb| fail(ready, &tape, Blow { call: at, verb }))
    };
    Scenario::new(NAME, ready, &what, title, play)
}

fn fail(ready: &Prepared, tape: &Tape, blow: Blow) -> Result<Played, LabError> {
    let mut sandbox = Sandbox::empty(&ready.lab.root, &ready.case)?;
    tape.images[0].write(&sandbox.world())?;
    let outcome = strike(&ready.lab, &mut sandbox, &["create", TASK, PLAN_FILE], &Env::new(), blow)?;
    let stopped = outcome.stopped_loudly();
    let image = Image::read(&sandbox.world(), None)?;
    let seen = database(&ready.lab, &image)?;
    let stored = seen.0.task(TASK).is_some();
    let resumed = create_again(ready, &image, &seen, &Env::new())?;
    let mut played = Played::judged(resumed.evidence, &ready.baseline);
    played.and("whole_or_nothing", resumed.create);
    played.and("no_false_success", told_the_truth(&outcome, stored));
    played.note = stopped.then(|| STOPPED.to_owned());
    Ok(played)
}

/// A `create` with a fault may end with any code that it has words for. With 0 it has stored the task.
fn told_the_truth(outcome: &Outcome, stored: bool) -> Verdict {
    match outcome.ended {
        Ended::Exited(0) if stored => Verdict::Holds,
        Ended::Exited(0) => Verdict::Violated("create ended with 0 and has stored nothing".to_owned()),
        _ if outcome.stopped_loudly() => Verdict::Holds,
        _ => Verdict::Violated(format!("create: {}", outcome.describe())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Story;

    #[test]
    fn an_error_in_words_is_accepted_and_silence_or_an_empty_success_is_rejected() {
        let story = Story::clean();
        let mut create = story.evidence.creates[0].clone();
        assert!(told_the_truth(&create, true).holds());
        assert!(!told_the_truth(&create, false).holds());
        create.ended = Ended::Exited(74);
        create.stderr = "agent: disk I/O error\n".to_owned();
        assert!(told_the_truth(&create, false).holds());
        assert!(told_the_truth(&create, true).holds(), "a commit whose sync failed may be there");
        create.stderr.clear();
        assert!(!told_the_truth(&create, false).holds());
        create.ended = Ended::Signaled(6);
        assert!(!told_the_truth(&create, false).holds());
    }
}

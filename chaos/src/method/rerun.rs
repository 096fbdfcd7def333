//! A finished and a failed task run again: the same code, and not one event more.

use std::sync::Arc;

use crate::case::{TASK, inbox};
use crate::contract::PLAN_FILE;
use crate::error::LabError;
use crate::judge::verdict::Verdict;
use crate::look::evidence::{Evidence, Expect, TaskEnd};
use crate::play::method::Method;
use crate::play::prepared::Prepared;
use crate::play::scenario::{Played, Scenario};
use crate::play::stage::Stage;
use crate::schedule::{CrashPoint, Kill, KillSchedule};

/// See the file's head.
pub(super) const METHOD: Method =
    Method { name: "rerun", about: "a finished and a failed task run again: same code, not one event more", scenarios };

/// How often the finished task is run again.
const AGAIN: usize = 2;

fn scenarios(ready: &Arc<Prepared>) -> Result<Vec<Scenario>, LabError> {
    let scenario = |what, title: &str, play: fn(&Prepared) -> Result<Played, LabError>| {
        Scenario::new(METHOD.name, ready, what, title.to_owned(), play)
    };
    let mut all = vec![scenario("done", "finished, then run again", done)];
    let last = KillSchedule::points([&CrashPoint::new("after_commit", ready.last_step())]);
    all.push(scenario("resumed", "killed after the last commit, finished, run again", resumed).kills(last));
    if ready.case.example_of.is_none() {
        if let Some(step) = fails(ready) {
            let first = KillSchedule::points([&CrashPoint::new("before_effect", step)]);
            all.push(scenario("failed", "failed for its crashes, then run again", failed).kills(first));
        }
        if ready.case.kind.report(TASK).is_some() {
            let second = KillSchedule::points([&CrashPoint::new("after_commit", 0)]);
            all.push(scenario("no-note", "failed for want of a note, then run again", no_note).kills(second));
        }
        if ready.case.steps[0].tool == "fetch" {
            all.push(scenario("no-input", "failed for want of its input, then run again", no_input));
        }
    }
    Ok(all)
}

/// The first step whose attempts the environment may limit, and with which the task fails.
fn fails(ready: &Prepared) -> Option<usize> {
    let limited = |&step: &usize| {
        let planned = &ready.case.steps[step];
        planned.max_attempts().is_none() && !planned.goes_on()
    };
    ready.case.done_steps().find(limited)
}

fn done(ready: &Prepared) -> Result<Played, LabError> {
    let mut stage = ready.stage()?;
    stage.run(TASK, None, Expect::Ends(0), &[])?;
    again(stage, ready, TaskEnd::Done)
}

fn resumed(ready: &Prepared) -> Result<Played, LabError> {
    let mut stage = ready.stage()?;
    let kill = Kill::Point(CrashPoint::new("after_commit", ready.last_step()));
    stage.run(TASK, Some(&kill), Expect::Dies, &[])?;
    stage.run(TASK, None, Expect::Ends(0), &[])?;
    again(stage, ready, TaskEnd::Done)
}

fn failed(ready: &Prepared) -> Result<Played, LabError> {
    let mut stage = ready.stage()?;
    let once = [("AGENT_MAX_ATTEMPTS", "1".to_owned())];
    let kill = Kill::Point(CrashPoint::new("before_effect", fails(ready).unwrap_or_default()));
    stage.run(TASK, Some(&kill), Expect::Dies, &once)?;
    stage.run(TASK, None, Expect::Ends(2), &once)?;
    again(stage, ready, TaskEnd::Failed)
}

fn no_input(ready: &Prepared) -> Result<Played, LabError> {
    let mut stage = ready.stage()?;
    for name in ready.case.files.keys().filter(|name| *name != PLAN_FILE) {
        let path = stage.sandbox.world().join(name);
        std::fs::remove_file(&path).map_err(LabError::io("remove", &path))?;
    }
    stage.run(TASK, None, Expect::Ends(2), &[])?;
    again(stage, ready, TaskEnd::Failed)
}

/// A note goes missing before its step, so that only the steps after it fail.
fn no_note(ready: &Prepared) -> Result<Played, LabError> {
    let mut stage = ready.stage()?;
    stage.run(TASK, Some(&Kill::Point(CrashPoint::new("after_commit", 0))), Expect::Dies, &[])?;
    let note = inbox::notes(&ready.case.files).nth(1).map(|(name, _)| stage.sandbox.world().join(name));
    if let Some(path) = note {
        std::fs::remove_file(&path).map_err(LabError::io("remove", &path))?;
    }
    stage.run(TASK, None, Expect::Ends(2), &[])?;
    again(stage, ready, TaskEnd::Failed)
}

fn again(mut stage: Stage<'_>, ready: &Prepared, end: TaskEnd) -> Result<Played, LabError> {
    let code = match end {
        TaskEnd::Done => 0,
        TaskEnd::Failed => 2,
    };
    for _ in 0..AGAIN {
        stage.run(TASK, None, Expect::Ends(code), &[])?;
    }
    let evidence = stage.close(end);
    let untouched = untouched(&evidence);
    let mut played = Played::judged(evidence, &ready.baseline);
    played.and("nothing_changed", untouched);
    Ok(played)
}

/// The last [`AGAIN`] runs have changed neither tables nor files.
fn untouched(evidence: &Evidence) -> Verdict {
    let first = evidence.runs.len() - AGAIN;
    let before = evidence.before(first);
    let mut complaints = Vec::new();
    for i in first..evidence.runs.len() {
        let after = evidence.before(i + 1);
        if after.tables != before.tables {
            complaints.push(format!("{}: the tables have changed", evidence.label(i)));
        }
        if after.world != before.world {
            complaints.push(format!("{}: the files have changed", evidence.label(i)));
        }
    }
    Verdict::of(&complaints)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Story;

    fn twice_more() -> Story {
        let mut story = Story::clean();
        for _ in 0..AGAIN {
            let again = story.evidence.runs[0].clone();
            story.evidence.runs.push(again);
        }
        story
    }

    #[test]
    fn runs_that_change_nothing_are_accepted() {
        assert!(untouched(&twice_more().evidence).holds());
    }

    #[test]
    fn one_event_more_or_another_file_is_rejected() {
        let mut story = twice_more();
        story.insert_event("run_started", None, "task_done", 0);
        assert!(!untouched(&story.evidence).holds());
        let mut story = twice_more();
        story.last().world.clear();
        assert!(!untouched(&story.evidence).holds());
    }
}

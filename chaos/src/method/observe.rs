//! A reader polls the database during the run: no look ever shows a step done without output or without its journal
//! event.

use std::sync::Arc;
use std::time::Duration;

use crate::case::TASK;
use crate::error::LabError;
use crate::judge::verdict::{Verdict, VerdictKind};
use crate::look::evidence::{Expect, TaskEnd};
use crate::look::reader::LiveReader;
use crate::look::tables::Tables;
use crate::play::method::Method;
use crate::play::prepared::Prepared;
use crate::play::scenario::{Played, Scenario};
use crate::schedule::{CrashPoint, Kill, KillSchedule};

/// See the file's head.
pub(super) const METHOD: Method = Method {
    name: "observe",
    about: "a reader polls the database during the run: no look shows a state without its event",
    scenarios,
};

/// Between two looks.
const POLL: Duration = Duration::from_micros(200);

/// How long a step sleeps so that it can be seen, in seconds; more where it was not seen.
const DELAYS: [f64; 3] = [0.01, 0.06, 0.4];

fn scenarios(ready: &Arc<Prepared>) -> Result<Vec<Scenario>, LabError> {
    let mut all = Vec::new();
    let title = "read while it runs".to_owned();
    all.push(Scenario::new(METHOD.name, ready, "clean", title, |ready| play(ready, None)));
    for step in ready.own_steps() {
        let point = CrashPoint::new("after_effect", step);
        let title = format!("killed at {point}, read while it resumes");
        let schedule = KillSchedule::points([&point]);
        let play = move |ready: &Prepared| play(ready, Some(&point));
        let what = schedule.to_string();
        all.push(Scenario::new(METHOD.name, ready, &what, title, play).kills(schedule));
    }
    Ok(all)
}

fn play(ready: &Prepared, point: Option<&CrashPoint>) -> Result<Played, LabError> {
    let mut played = Played::default();
    for delay in DELAYS {
        played = play_with(ready, point, delay)?;
        if played.verdict() != VerdictKind::NotReached {
            break;
        }
    }
    Ok(played)
}

fn play_with(ready: &Prepared, point: Option<&CrashPoint>, delay: f64) -> Result<Played, LabError> {
    let mut stage = ready.stage()?;
    if let Some(point) = point {
        stage.run(TASK, Some(&Kill::Point(point.clone())), Expect::Dies, &[])?;
    }
    let open: Vec<usize> = ready.case.done_steps().filter(|&step| !stage.last().tables.is_done(TASK, step)).collect();
    let db = stage.sandbox.db();
    let mut reader = LiveReader::when_ready(&db)?;
    let mut running = stage.start(TASK, &[("AGENT_STEP_DELAY", delay.to_string())])?;
    let mut seen: Vec<Tables> = Vec::new();
    let (mut looks, mut partial) = (0, 0);
    let report = ready.case.kind.report(TASK);
    let whole = report.as_ref().and_then(|name| ready.baseline.last().world.get(name));
    let report = report.as_ref().map(|name| stage.sandbox.world().join(name));
    loop {
        // The run itself may have to make the database first.
        reader = match reader {
            None => LiveReader::when_ready(&db)?,
            open => open,
        };
        if let Some(reader) = &reader {
            let tables = reader.tables()?;
            looks += 1;
            if seen.last() != Some(&tables) {
                seen.push(tables);
            }
        }
        let shown = report.as_ref().and_then(|report| crate::look::files::read(report).ok());
        partial += usize::from(shown.is_some_and(|shown| Some(&shown) != whole));
        if running.ended_within(POLL) || running.time_left().is_zero() {
            break;
        }
    }
    drop(reader);
    let all_seen = all_seen(&seen, &open);
    let states = seen.len();
    stage.observed(seen);
    stage.finish(TASK, running, Expect::Ends(0), true)?;
    let mut played = Played::judged(stage.close(TaskEnd::Done), &ready.baseline);
    played.and("seen_running", all_seen);
    played.and("report_seen_whole", seen_whole(partial));
    played.note = Some(format!("{looks} looks, {states} states"));
    Ok(played)
}

/// Nobody ever sees a part of the report, however often he looks.
fn seen_whole(partial: usize) -> Verdict {
    if partial == 0 {
        return Verdict::Holds;
    }
    Verdict::Violated(format!("{partial} looks saw a report that is not the whole one"))
}

/// Looks that never saw a step at work prove nothing about it.
fn all_seen(seen: &[Tables], steps: &[usize]) -> Verdict {
    let unseen: Vec<usize> = steps
        .iter()
        .copied()
        .filter(|step| !seen.iter().any(|tables| tables.with_status(TASK, "running").contains(step)))
        .collect();
    if unseen.is_empty() {
        return Verdict::Holds;
    }
    Verdict::NotReached(format!("no look saw the steps {unseen:?} running"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Story;

    #[test]
    fn a_report_that_was_seen_in_part_is_rejected() {
        assert!(seen_whole(0).holds());
        assert!(!seen_whole(1).holds());
    }

    #[test]
    fn a_step_that_no_look_saw_at_work_is_not_reached() {
        let mut story = Story::killed_at("after_effect:1");
        let running = story.after(0).tables.clone();
        assert!(all_seen(std::slice::from_ref(&running), &[1]).holds());
        assert!(matches!(all_seen(&[running], &[1, 2]), Verdict::NotReached(_)));
    }
}

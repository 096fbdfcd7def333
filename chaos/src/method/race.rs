//! A second runner, and eight at once, also right after a crash: one runs, the
//! rest exit 3 and have changed nothing, neither state nor journal nor files. And a
//! writer that holds the database again and again, which is waited for.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use nix::sys::signal::Signal;

use crate::agent::process::Ended;
use crate::case::TASK;
use crate::error::LabError;
use crate::judge::verdict::{Verdict, VerdictKind};
use crate::judge::{told, undisturbed};
use crate::look::evidence::{Evidence, Expect, TaskEnd};
use crate::look::reader;
use crate::play::method::Method;
use crate::play::prepared::Prepared;
use crate::play::scenario::{Played, Scenario};
use crate::play::stage::{HOLD, Stage};
use crate::schedule::{CrashPoint, Kill, KillSchedule};

/// See the file's head.
pub(super) const METHOD: Method = Method {
    name: "race",
    about: "a second runner and eight at once, and a writer that keeps the database busy",
    scenarios,
};

/// So many at once.
const CROWD: usize = 8;

const A_WEEK: i64 = 7 * 86_400;

/// How long the other writer holds the database.
const HELD: Duration = Duration::from_millis(15);

/// How long a step sleeps, in seconds, so that the others come while it runs;
/// more where they came too late.
const HOLDS: [f64; 3] = [HOLD, 4.0 * HOLD, 20.0 * HOLD];

type Contest = fn(&Prepared, Option<&CrashPoint>, f64) -> Result<Played, LabError>;

fn scenarios(ready: &Arc<Prepared>) -> Result<Vec<Scenario>, LabError> {
    let step = ready.last_step();
    let mut crashes = vec![None, Some(CrashPoint::new("after_effect", step))];
    if ready.case.example_of.is_none() {
        crashes.push(Some(CrashPoint::new("before_effect", 0)));
        crashes.push(Some(CrashPoint::new("after_commit", step / 2)));
    }
    let contests: [(&str, Contest); 2] = [("second", second), ("eight", eight)];
    let mut all = Vec::new();
    for crash in crashes {
        for (name, contest) in contests {
            all.push(scenario(ready, crash.clone(), name, contest));
        }
    }
    if ready.case.example_of.is_none() && ready.case.kind.is_created() {
        let title = "another writer holds the database again and again".to_owned();
        all.push(Scenario::new(METHOD.name, ready, "contended", title, contended));
    }
    Ok(all)
}

fn scenario(ready: &Arc<Prepared>, crash: Option<CrashPoint>, name: &str, contest: Contest) -> Scenario {
    let (what, title) = match &crash {
        None => (name.to_owned(), format!("{name} at once")),
        Some(point) => (format!("{name} after {point}"), format!("killed at {point}, then {name} at once")),
    };
    let schedule = KillSchedule::points(crash.iter());
    let play = move |ready: &Prepared| {
        let mut played = Played::default();
        for hold in HOLDS {
            played = contest(ready, crash.as_ref(), hold)?;
            if played.verdict() != VerdictKind::NotReached {
                break;
            }
        }
        Ok(played)
    };
    Scenario::new(METHOD.name, ready, &what, title, play).kills(schedule)
}

fn begin<'a>(ready: &'a Prepared, crash: Option<&CrashPoint>) -> Result<Stage<'a>, LabError> {
    let mut stage = ready.stage()?;
    if let Some(point) = crash {
        stage.run(TASK, Some(&Kill::Point(point.clone())), Expect::Dies, &[])?;
    }
    Ok(stage)
}

/// A second and a third runner while the first one is stopped in the middle of a
/// step, so that every change would be theirs.
fn second(ready: &Prepared, crash: Option<&CrashPoint>, hold: f64) -> Result<Played, LabError> {
    let mut stage = begin(ready, crash)?;
    let tables = &stage.last().tables;
    let open = ready.first_open(tables);
    let step = open.unwrap_or_else(|| ready.last_step());
    let delay = [("AGENT_STEP_DELAY", hold.to_string())];
    let (first, seen) = stage.start_and_wait(TASK, step, &delay)?;
    let mut verdict = Verdict::NotReached(format!("the first runner was not seen in step {step}"));
    if seen {
        first.signal(Signal::SIGSTOP);
        // A lock is held however old its file is.
        stage.sandbox.age(A_WEEK, |name| name.ends_with(".lock"))?;
        let before = stage.sandbox.look()?;
        // The one who ends early may have taken the lock's file along, and then the third gets in.
        for _ in 0..2 {
            let rival = stage.start(TASK, &[])?;
            stage.finish(TASK, rival, Expect::Refused, false)?;
        }
        verdict = Verdict::of(&told::changed("the refused runner", &before, &stage.sandbox.look()?));
        first.signal(Signal::SIGCONT);
    }
    stage.finish(TASK, first, Expect::Ends(0), true)?;
    let mut played = Played::judged(stage.close(TaskEnd::Done), &ready.baseline);
    played.and("refused_changes_nothing", verdict);
    Ok(played)
}

fn eight(ready: &Prepared, crash: Option<&CrashPoint>, hold: f64) -> Result<Played, LabError> {
    let mut stage = begin(ready, crash)?;
    let delay = [("AGENT_STEP_DELAY", hold.to_string())];
    let mut crowd = Vec::new();
    for _ in 0..CROWD {
        crowd.push(stage.start(TASK, &delay)?);
    }
    let last = crowd.len() - 1;
    for (i, running) in crowd.into_iter().enumerate() {
        stage.finish(TASK, running, Expect::Contends, i == last)?;
    }
    let evidence = stage.close(TaskEnd::Done);
    let contested = contested(&evidence);
    let mut played = Played::judged(evidence, &ready.baseline);
    played.and("contested", contested);
    Ok(played)
}

/// Another writer, none of the agent's, holds the database for a while before nearly
/// every commit: it is waited for, and costs no attempt.
fn contended(ready: &Prepared) -> Result<Played, LabError> {
    let mut stage = ready.stage()?;
    let over = AtomicBool::new(false);
    let db = stage.sandbox.db();
    let held = std::thread::scope(|scope| {
        let writer = scope.spawn(|| reader::hold_again_and_again(&db, HELD, &over));
        // A tool that follows its step's commit at once would always find the database free.
        let delay = [("AGENT_STEP_DELAY", (1.5 * HELD.as_secs_f64()).to_string())];
        let run = stage.start(TASK, &delay).map(|mut running| {
            running.ended_within(running.time_left());
            running
        });
        over.store(true, Ordering::Relaxed);
        let held = writer.join().map_err(|_| LabError::Internal("a thread panicked".to_owned()))?;
        Ok::<_, LabError>((run?, held?))
    });
    let (running, held) = held?;
    stage.finish(TASK, running, Expect::Ends(0), true)?;
    let evidence = stage.close(TaskEnd::Done);
    let undisturbed = undisturbed(&evidence, &ready.baseline);
    let mut played = Played::judged(evidence, &ready.baseline);
    played.and("undisturbed", undisturbed);
    played.note = Some(format!("held {held} times"));
    Ok(played)
}

/// Where nobody was refused there was no race.
fn contested(evidence: &Evidence) -> Verdict {
    let crowd = evidence.runs.iter().filter(|run| run.expect == Expect::Contends);
    let refused = crowd.filter(|run| run.outcome.ended == Ended::Exited(3)).count();
    if refused > 0 {
        return Verdict::Holds;
    }
    Verdict::NotReached(format!("none of {CROWD} runners was refused"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Story;

    #[test]
    fn a_race_in_which_nobody_was_refused_is_not_reached() {
        let mut story = Story::clean();
        story.evidence.runs[0].expect = Expect::Contends;
        assert!(!contested(&story.evidence).holds());
        story.evidence.runs[0].outcome.ended = Ended::Exited(3);
        assert!(contested(&story.evidence).holds());
    }
}

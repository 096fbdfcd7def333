//! Signals from outside while a step sleeps, on seeing its `step_started` in the
//! journal: SIGKILL, SIGTERM, SIGINT, and SIGSTOP followed by SIGCONT; SIGTERM and
//! SIGINT also to the agent's whole process group, as from a terminal. What follows a SIGKILL
//! follows it at once: elsewhere what the killed process has left gets time to end.

use std::sync::Arc;

use crate::case::TASK;
use crate::error::LabError;
use crate::judge::verdict::VerdictKind;
use crate::look::evidence::{Expect, TaskEnd};
use crate::play::method::Method;
use crate::play::prepared::Prepared;
use crate::play::scenario::{Played, Scenario, play_schedule};
use crate::play::stage::{HOLD, Stage};
use crate::schedule::{Kill, KillSchedule, Sign};

/// See the file's head.
pub(super) const METHOD: Method = Method {
    name: "external",
    about: "SIGKILL, SIGTERM, SIGINT and SIGSTOP/SIGCONT while a step sleeps, to the process or to its group",
    scenarios,
};

/// The contract's attempt limit where nothing is set.
const ATTEMPTS: usize = 3;

/// How long a step sleeps, in seconds: on a busy machine the lab may come late, and then the scenario is played again
/// with more time.
const HOLDS: [f64; 3] = [HOLD, 4.0 * HOLD, 20.0 * HOLD];

fn scenarios(ready: &Arc<Prepared>) -> Result<Vec<Scenario>, LabError> {
    let steps = ready.own_steps().into_iter();
    let to_all = [Sign::Term, Sign::Int].map(|sign| (sign, true));
    let signs = || Sign::ALL.map(|sign| (sign, false)).into_iter().chain(to_all);
    let kills = steps.flat_map(|step| signs().map(move |(sign, group)| Kill::Signal { sign, group, step }));
    let mut all: Vec<Scenario> = kills.map(|kill| scenario(ready, kill)).collect();
    all.push(polite(ready));
    Ok(all)
}

/// As many stops as there are attempts: those of which the journal says that they were given up in order cost none.
fn polite(ready: &Arc<Prepared>) -> Scenario {
    let step = ready.last_step();
    let stop = Kill::Signal { sign: Sign::Term, group: false, step };
    let title = format!("stopped by {stop} {ATTEMPTS} times, resumed");
    let play = move |ready: &Prepared| {
        patiently(ready, |stage| {
            for _ in 0..ATTEMPTS {
                stage.run(TASK, Some(&stop), Expect::Interrupted(Sign::Term), &[])?;
            }
            let tables = &stage.last().tables;
            let count =
                |kind| tables.events_of(TASK).filter(|event| event.kind == kind && event.step == Some(step)).count();
            // To die of the signal is allowed, and a death is an attempt.
            let charged = count("step_started") - count("step_released");
            let (code, end) = if charged < ATTEMPTS { (0, TaskEnd::Done) } else { (2, TaskEnd::Failed) };
            stage.run(TASK, None, Expect::Ends(code), &[])?;
            Ok(end)
        })
    };
    Scenario::new(METHOD.name, ready, &format!("{ATTEMPTS} stops"), title, play)
}

fn scenario(ready: &Arc<Prepared>, kill: Kill) -> Scenario {
    let title = format!("signalled by {kill} while the step sleeps, resumed");
    let schedule = KillSchedule(vec![kill]);
    let kills = schedule.clone();
    let play = move |ready: &Prepared| play(ready, &kills);
    Scenario::new(METHOD.name, ready, &schedule.to_string(), title, play).kills(schedule)
}

fn play(ready: &Prepared, schedule: &KillSchedule) -> Result<Played, LabError> {
    patiently(ready, |stage| {
        // A child that holds the lock or is at work still must not get away with it.
        stage.at_once = true;
        play_schedule(stage, TASK, schedule, &[], &|_| Vec::new())?;
        Ok(TaskEnd::Done)
    })
}

/// With more time where a signal came too late.
fn patiently(ready: &Prepared, play: impl Fn(&mut Stage<'_>) -> Result<TaskEnd, LabError>) -> Result<Played, LabError> {
    let mut last = Played::default();
    for hold in HOLDS {
        let mut stage = ready.stage()?;
        stage.hold = hold;
        let end = play(&mut stage)?;
        last = Played::judged(stage.close(end), &ready.baseline);
        if last.verdict() != VerdictKind::NotReached {
            break;
        }
    }
    Ok(last)
}

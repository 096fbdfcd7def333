//! The action log is torn, lost or written to by others between a kill and the resume: it is mended or rebuilt,
//! whatever else stands in it stays, and the task takes no notice. The resume that mends it is killed too, at each
//! point of the log and of the report that a recording of it has shown.

use std::sync::Arc;

use crate::case::TASK;
use crate::crash::damage::Damage;
use crate::error::LabError;
use crate::look::evidence::{Expect, TaskEnd};
use crate::play::discover::damage_point;
use crate::play::method::Method;
use crate::play::prepared::Prepared;
use crate::play::scenario::{Played, Scenario, play_schedule};
use crate::play::stage::Stage;
use crate::schedule::{CrashPoint, Kill, KillSchedule};

/// See the file's head.
pub(super) const METHOD: Method = Method {
    name: "log",
    about: "the action log torn, lost or written to by others between kill and resume",
    scenarios,
};

/// Sites after which the log is damaged, beside the contract's: whatever of these the agent has.
const SITES: [&str; 4] = ["log.before_append", "report.published", "commit.done", "complete.done"];

fn scenarios(ready: &Arc<Prepared>) -> Result<Vec<Scenario>, LabError> {
    let mut all = Vec::new();
    for damage in Damage::ALL {
        all.push(finished(ready, damage));
        all.extend(firsts(ready).into_iter().map(|point| scenario(ready, damage, &[point])));
        for second in ready.discovery.damaged.get(&damage).into_iter().flatten() {
            if ready.is_of_completion(second) {
                all.push(scenario(ready, damage, &[damage_point(&ready.case), second.clone()]));
            }
        }
    }
    all.push(without_report(ready));
    Ok(all)
}

/// The contract's points, and the last passage of some others.
fn firsts(ready: &Prepared) -> Vec<CrashPoint> {
    let mut points = ready.case.points();
    for site in SITES {
        points.extend(ready.discovery.clean.iter().rfind(|point| point.site == site && point.step.is_none()).cloned());
    }
    points
}

/// Killed at the first point, the log damaged, killed at each further point in the resume, resumed, and run once more.
fn scenario(ready: &Arc<Prepared>, damage: Damage, points: &[CrashPoint]) -> Scenario {
    let schedule = KillSchedule::points(points);
    let again = if points.len() > 1 { ", killed again" } else { "" };
    let title = format!("killed at {}, {}{again}, resumed, run again", points[0], damage.about());
    let rest = KillSchedule::points(&points[1..]);
    let first = Kill::Point(points[0].clone());
    let play = move |ready: &Prepared| {
        let mut stage = ready.stage()?;
        stage.run(TASK, Some(&first), Expect::Dies, &[])?;
        stage.damage_log(|sandbox| damage.apply(sandbox))?;
        let recorded = |_| ready.discovery.damaged.get(&damage).cloned().unwrap_or_default();
        play_schedule(&mut stage, TASK, &rest, &[], &recorded)?;
        once_more(stage, ready)
    };
    Scenario::new(METHOD.name, ready, &format!("{}, {schedule}", damage.word()), title, play).kills(schedule)
}

/// The task is done, and then the log is damaged.
fn finished(ready: &Arc<Prepared>, damage: Damage) -> Scenario {
    let title = format!("finished, {}, run again twice", damage.about());
    let play = move |ready: &Prepared| {
        let mut stage = ready.stage()?;
        stage.run(TASK, None, Expect::Ends(0), &[])?;
        stage.damage_log(|sandbox| damage.apply(sandbox))?;
        stage.run(TASK, None, Expect::Ends(0), &[])?;
        once_more(stage, ready)
    };
    Scenario::new(METHOD.name, ready, &format!("{}, finished", damage.word()), title, play)
}

/// The task is done, and then its report goes missing and the log with it.
fn without_report(ready: &Arc<Prepared>) -> Scenario {
    let title = "finished, report and log removed, run again twice".to_owned();
    let play = |ready: &Prepared| {
        let mut stage = ready.stage()?;
        stage.run(TASK, None, Expect::Ends(0), &[])?;
        if let Some(report) = ready.case.kind.report(TASK) {
            let report = stage.sandbox.world().join(report);
            std::fs::remove_file(&report).map_err(LabError::io("remove", &report))?;
        }
        stage.damage_log(|sandbox| Damage::Lost.apply(sandbox))?;
        stage.run(TASK, None, Expect::Ends(0), &[])?;
        once_more(stage, ready)
    };
    Scenario::new(METHOD.name, ready, "report and log gone, finished", title, play)
}

/// To mend a log a second time must add nothing.
fn once_more(mut stage: Stage<'_>, ready: &Prepared) -> Result<Played, LabError> {
    stage.run(TASK, None, Expect::Ends(0), &[])?;
    Ok(Played::judged(stage.close(TaskEnd::Done), &ready.baseline))
}

//! The action log is torn, lost or written to by others between a kill and the
//! resume: it is mended or rebuilt, whatever else stands in it stays, and the
//! task takes no notice. The resume that mends it is killed too, at each point
//! of the log and of the report that a recording of it has shown.

use std::sync::Arc;

use super::Method;
use crate::crash::damage::Damage;
use crate::error::LabError;
use crate::look::facts::{Expect, TaskEnd};
use crate::play::discover::damage_point;
use crate::play::prepared::Bench;
use crate::play::scenario::{Played, Scenario, play_schedule};
use crate::play::stage::{Stage, TASK};
use crate::schedule::{CrashPoint, Kill, KillSchedule};

/// See the file's head.
pub(super) const METHOD: Method = Method {
    name: "log",
    about: "the action log torn, lost or written to by others between kill and resume",
    scenarios,
};

/// Sites after which the log is damaged, beside the contract's: whatever of
/// these the agent has.
const SITES: [&str; 4] = ["log.before_append", "report.published", "commit.done", "complete.done"];

fn scenarios(bench: &Arc<Bench>) -> Result<Vec<Scenario>, LabError> {
    let mut all = Vec::new();
    for damage in Damage::ALL {
        all.push(finished(bench, damage));
        all.extend(firsts(bench).into_iter().map(|point| scenario(bench, damage, &[point])));
        for second in bench.discovery.damaged.get(&damage).into_iter().flatten() {
            if bench.is_of_completion(second) {
                all.push(scenario(bench, damage, &[damage_point(&bench.case), second.clone()]));
            }
        }
    }
    all.push(without_report(bench));
    Ok(all)
}

/// The contract's points, and the last passage of some others.
fn firsts(bench: &Bench) -> Vec<CrashPoint> {
    let mut points = CrashPoint::of_contract(bench.case.steps.len());
    for site in SITES {
        points.extend(bench.discovery.clean.iter().rfind(|point| point.site == site && point.step.is_none()).cloned());
    }
    points
}

/// Killed at the first point, the log damaged, killed at each further point in
/// the resume, resumed, and run once more.
fn scenario(bench: &Arc<Bench>, damage: Damage, points: &[CrashPoint]) -> Scenario {
    let schedule = KillSchedule::points(points);
    let again = if points.len() > 1 { ", killed again" } else { "" };
    let title = format!("killed at {}, {}{again}, resumed, run again", points[0], damage.about());
    let rest = KillSchedule::points(&points[1..]);
    let first = Kill::Point(points[0].clone());
    let play = move |bench: &Bench| {
        let mut stage = Stage::single(&bench.lab, &bench.case)?;
        stage.run(TASK, Some(&first), Expect::Dies, &[])?;
        stage.damage_log(|sandbox| damage.apply(sandbox))?;
        let recorded = |_| bench.discovery.damaged.get(&damage).cloned().unwrap_or_default();
        play_schedule(&mut stage, TASK, &rest, &[], &recorded)?;
        once_more(stage, bench)
    };
    Scenario::new(METHOD.name, bench, &format!("{}, {schedule}", damage.word()), title, play).kills(schedule)
}

/// The task is done, and then the log is damaged.
fn finished(bench: &Arc<Bench>, damage: Damage) -> Scenario {
    let title = format!("finished, {}, run again twice", damage.about());
    let play = move |bench: &Bench| {
        let mut stage = Stage::single(&bench.lab, &bench.case)?;
        stage.run(TASK, None, Expect::Ends(0), &[])?;
        stage.damage_log(|sandbox| damage.apply(sandbox))?;
        stage.run(TASK, None, Expect::Ends(0), &[])?;
        once_more(stage, bench)
    };
    Scenario::new(METHOD.name, bench, &format!("{}, finished", damage.word()), title, play)
}

/// The task is done, and then its report goes missing and the log with it.
fn without_report(bench: &Arc<Bench>) -> Scenario {
    let title = "finished, report and log removed, run again twice".to_owned();
    let play = |bench: &Bench| {
        let mut stage = Stage::single(&bench.lab, &bench.case)?;
        stage.run(TASK, None, Expect::Ends(0), &[])?;
        let report = stage.sandbox.world().join(crate::case::inbox::report_of(TASK));
        std::fs::remove_file(&report).map_err(LabError::io("remove", &report))?;
        stage.damage_log(|sandbox| Damage::Lost.apply(sandbox))?;
        stage.run(TASK, None, Expect::Ends(0), &[])?;
        once_more(stage, bench)
    };
    Scenario::new(METHOD.name, bench, "report and log gone, finished", title, play)
}

/// To mend a log a second time must add nothing.
fn once_more(mut stage: Stage<'_>, bench: &Bench) -> Result<Played, LabError> {
    stage.run(TASK, None, Expect::Ends(0), &[])?;
    Ok(Played::judged(stage.close(TaskEnd::Done), &bench.baseline))
}

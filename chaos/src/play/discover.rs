//! Finds crash points by recording: the run without a crash, and, for every point of it, the resume after a kill there.
//! Recovery and a tool's dedup path are passed in resumes only.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::case::TASK;
use crate::case::plan::PlanCase;
use crate::crash::damage::Damage;
use crate::error::LabError;
use crate::look::evidence::Expect;
use crate::look::lab::Lab;
use crate::play::pool::parallel;
use crate::play::stage::{Left, Stage};
use crate::schedule::{CrashPoint, Kill};

/// What recording runs have shown of one plan.
#[derive(Debug, Clone, Default)]
pub struct Discovery {
    /// Whether the agent records at all; without, only the contract's points are known.
    pub records: bool,
    /// The points of the run without a crash: first the contract's, whether seen or not, then the others in the order
    /// in which they were passed.
    pub clean: Vec<CrashPoint>,
    /// For each of them, the points of the resume after a kill there.
    pub after: BTreeMap<CrashPoint, Vec<CrashPoint>>,
    /// Of a case with an action log: the points of the resume after a kill at [`damage_point`] and a damage to the log.
    pub damaged: BTreeMap<Damage, Vec<CrashPoint>>,
    /// Contents that files had between two steps.
    pub between: BTreeMap<String, Vec<Vec<u8>>>,
    /// Steps whose tool changed files between `before_effect` and `after_effect`.
    pub changed_files: Vec<usize>,
}

impl Discovery {
    /// What is known of every agent.
    #[must_use]
    pub fn of_contract(case: &PlanCase) -> Self {
        Self { clean: case.points(), ..Self::default() }
    }

    /// Every point that any recording has shown, the contract's included.
    #[must_use]
    pub fn all(&self) -> Vec<CrashPoint> {
        let mut all = self.clean.clone();
        all.extend(self.after.values().chain(self.damaged.values()).flatten().cloned());
        all.sort();
        all.dedup();
        all
    }
}

/// Records the clean run and every resume.
///
/// # Errors
/// The lab's own failures, and a recording that cannot be read.
pub fn discover(lab: &Lab, case: &Arc<PlanCase>, created: Option<&Left>, jobs: usize) -> Result<Discovery, LabError> {
    let mut found = Discovery::of_contract(case);
    let recorded = Stage::begun(lab, case, created)?.run_recorded(None, Expect::Ends(0))?;
    found.records = recorded.is_some();
    for point in recorded.into_iter().flatten() {
        if case.passes(&point) && !found.clean.contains(&point) {
            found.clean.push(point);
        }
    }
    let records = found.records;
    let looks = parallel(jobs, &found.clean, |point| resume_after(lab, case, created, point, records))?;
    let mut before_effect = BTreeMap::new();
    for (point, resume) in found.clean.iter().zip(looks) {
        match (point.site.as_str(), point.step) {
            ("before_effect", Some(step)) => {
                before_effect.insert(step, resume.world.clone());
            }
            ("after_effect", Some(step)) if before_effect.get(&step) != Some(&resume.world) => {
                found.changed_files.push(step);
            }
            _ => {}
        }
        if point.site == "after_commit" {
            for (name, content) in resume.world {
                let known: &mut Vec<_> = found.between.entry(name).or_default();
                if !known.contains(&content) {
                    known.push(content);
                }
            }
        }
        found.after.insert(point.clone(), resume.points);
    }
    if records && case.kind.log().is_some() {
        for damage in Damage::ALL {
            found.damaged.insert(damage, resume_of_damaged(lab, case, damage)?);
        }
    }
    Ok(found)
}

/// Where a log is damaged: its last line is about a note whose name is not ASCII.
#[must_use]
pub fn damage_point(case: &PlanCase) -> CrashPoint {
    CrashPoint::new("before_effect", case.steps.len() - 1)
}

fn resume_of_damaged(lab: &Lab, case: &Arc<PlanCase>, damage: Damage) -> Result<Vec<CrashPoint>, LabError> {
    let mut stage = Stage::single(lab, case)?;
    stage.run(TASK, Some(&Kill::Point(damage_point(case))), Expect::Dies, &[])?;
    stage.damage_log(|sandbox| damage.apply(sandbox))?;
    Ok(stage.run_recorded(None, Expect::Ends(0))?.unwrap_or_default())
}

struct Resume {
    world: BTreeMap<String, Vec<u8>>,
    points: Vec<CrashPoint>,
}

/// Without a recording the contract still says which points a resume passes: those of the steps that were not
/// committed.
fn resume_after(
    lab: &Lab,
    case: &Arc<PlanCase>,
    created: Option<&Left>,
    point: &CrashPoint,
    records: bool,
) -> Result<Resume, LabError> {
    let mut stage = Stage::begun(lab, case, created)?;
    stage.run(TASK, Some(&Kill::Point(point.clone())), Expect::Dies, &[])?;
    let left = stage.last().clone();
    let open = |point: &CrashPoint| point.step.is_some_and(|step| !left.tables.is_done(TASK, step));
    let mut points = case.points();
    points.retain(open);
    if case.kind.has_person() && records {
        // A step of which a person says that it is done is not begun again.
        points.clear();
    }
    if records {
        for more in stage.run_recorded(None, Expect::Ends(0))?.into_iter().flatten() {
            if case.passes(&more) && !points.contains(&more) {
                points.push(more);
            }
        }
    }
    Ok(Resume { world: left.world, points })
}

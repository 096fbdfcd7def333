//! A plan made ready for the methods: its outcome without a crash and the crash
//! points that recording runs have shown.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::discover::{Discovery, discover};
use crate::error::LabError;
use crate::facts::{Baseline, Evidence, Expect, TaskEnd};
use crate::lab::Lab;
use crate::plan::PlanCase;
use crate::stage::{Env, Stage, TASK};

/// What a method has to work with.
pub struct Bench {
    /// The lab.
    pub lab: Arc<Lab>,
    /// The plan.
    pub case: Arc<PlanCase>,
    /// Its outcome without a crash.
    pub baseline: Baseline,
    /// A second clean run: what differs is not the crash's doing.
    pub second: Evidence,
    /// The crash points.
    pub discovery: Discovery,
}

impl Bench {
    /// Plays the plan twice without a crash, then records its crash points with
    /// `jobs` processes side by side. Where the baseline fails, nothing is
    /// discovered: there is nothing to compare with.
    ///
    /// # Errors
    /// The lab's own failures.
    pub fn prepare(lab: &Arc<Lab>, case: &Arc<PlanCase>, jobs: usize) -> Result<Self, LabError> {
        let tasks = [TASK.to_owned()];
        let first = clean_run(lab, case, &tasks, &Vec::new())?;
        let second = clean_run(lab, case, &tasks, &Vec::new())?;
        let mut baseline = baseline_of(first, Some(&second));
        let sound = crate::invariant::judge(&baseline.evidence, &baseline).is_empty();
        let discovery = if sound {
            discover(lab, case, jobs)?
        } else {
            Discovery::of_contract(case.steps.len())
        };
        baseline.between.clone_from(&discovery.between);
        Ok(Self {
            lab: Arc::clone(lab),
            case: Arc::clone(case),
            baseline,
            second,
            discovery,
        })
    }

    /// The baseline of several tasks of this plan in one database.
    ///
    /// # Errors
    /// The lab's own failures.
    pub fn baseline_of_tasks(&self, tasks: &[String]) -> Result<Baseline, LabError> {
        let evidence = clean_run(&self.lab, &self.case, tasks, &Vec::new())?;
        let mut baseline = baseline_of(evidence, None);
        baseline.comparable.clone_from(&self.baseline.comparable);
        Ok(baseline)
    }

    /// Steps whose tool changes something outside the database.
    #[must_use]
    pub fn effectful_steps(&self) -> Vec<usize> {
        let steps = self.case.steps.iter().enumerate();
        steps
            .filter(|(_, step)| self.lab.target.has_effect(&step.tool))
            .map(|(idx, _)| idx)
            .collect()
    }
}

/// Creates and runs `tasks` one after another without any crash.
///
/// # Errors
/// The lab's own failures.
pub fn clean_run(
    lab: &Lab,
    case: &Arc<PlanCase>,
    tasks: &[String],
    env: &Env,
) -> Result<Evidence, LabError> {
    let mut stage = Stage::new(lab, case, tasks)?;
    for task in tasks {
        stage.run(task, None, Expect::Ends(0), env)?;
    }
    Ok(stage.close(TaskEnd::Done))
}

/// A baseline from one clean run; outputs are comparable where a second one has
/// the same.
#[must_use]
pub fn baseline_of(first: Evidence, second: Option<&Evidence>) -> Baseline {
    let output = |evidence: &Evidence, idx| {
        let step = evidence.last().tables.step(TASK, idx);
        step.and_then(|row| row.output.clone())
    };
    let comparable = (0..first.case.steps.len())
        .map(|idx| second.is_some_and(|second| output(&first, idx) == output(second, idx)))
        .collect();
    Baseline {
        evidence: first,
        comparable,
        between: BTreeMap::new(),
    }
}

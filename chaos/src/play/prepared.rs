//! A plan made ready for the methods: its outcome without a crash and the crash points that recording runs have shown.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use crate::agent::process::Env;
use crate::case::TASK;
use crate::case::plan::{PlanCase, StepSpec, strings};
use crate::error::LabError;
use crate::look::evidence::{Baseline, Evidence, Expect, TaskEnd};
use crate::look::lab::Lab;
use crate::look::snapshot::Snapshot;
use crate::look::tables::Tables;
use crate::play::clock::Clock;
use crate::play::discover::{Discovery, discover};
use crate::play::stage::{Left, Stage};
use crate::schedule::{CallPoint, CrashPoint};

/// What a method has to work with.
pub struct Prepared {
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
    /// Whether the agent can be shown another time.
    pub clock: Clock,
    /// The folder after `create`, where that is the same every time.
    created: Option<Left>,
    of_tasks: Mutex<BTreeMap<Vec<String>, Arc<Baseline>>>,
}

impl Prepared {
    /// Plays the plan twice without a crash, then records its crash points with `jobs` processes side by side. Where
    /// the baseline fails, nothing is discovered: there is nothing to compare with.
    ///
    /// # Errors
    /// The lab's own failures.
    pub fn prepare(lab: &Arc<Lab>, case: &Arc<PlanCase>, jobs: usize) -> Result<Self, LabError> {
        let tasks = [TASK.to_owned()];
        let mut first = clean_run(lab, case, &tasks, &Vec::new())?;
        if !case.kind.is_created() {
            // The agent makes the plan; from here on it is the one that must stand.
            first.case = Arc::new(learned(&first.case, &first.last().tables));
        }
        let rows = first.last().tables.steps_of(TASK);
        let idle: Vec<usize> = rows.filter(|row| row.status != "done").map(|row| row.idx).collect();
        if first.last().tables.task(TASK).is_some_and(|row| row.status == "done") && idle.len() < first.case.steps.len()
        {
            first.case = Arc::new(PlanCase { idle, ..PlanCase::clone(&first.case) });
        }
        let case = &Arc::clone(&first.case);
        let second = clean_run(lab, case, &tasks, &Vec::new())?;
        let mut baseline = baseline_of(first, Some(&second));
        let sound = crate::judge::judge(&baseline.evidence, &baseline).is_empty();
        let created = if case.kind.is_created() && is_same(&baseline.evidence.created, &second.created) {
            Some(Stage::single(lab, case)?.into_left())
        } else {
            None
        };
        let discovery = if sound { discover(lab, case, created.as_ref(), jobs)? } else { Discovery::of_contract(case) };
        baseline.between.clone_from(&discovery.between);
        let clock = if sound && case.is_played_whole() {
            Clock::find(lab, case, created.as_ref())?
        } else {
            Clock::Stands("it was not tried")
        };
        Ok(Self {
            lab: Arc::clone(lab),
            case: Arc::clone(case),
            baseline,
            second,
            discovery,
            clock,
            created,
            of_tasks: Mutex::default(),
        })
    }

    /// A fresh folder with the one task [`TASK`].
    ///
    /// # Errors
    /// The lab's own failures; what the agent does wrong is evidence.
    pub fn stage(&self) -> Result<Stage<'_>, LabError> {
        Stage::begun(&self.lab, &self.case, self.created.as_ref())
    }

    /// Whether the plan works without a crash, so that there is something to compare with.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        let sound = |evidence| crate::judge::judge(evidence, &self.baseline).is_empty();
        sound(&self.baseline.evidence) && sound(&self.second)
    }

    /// The baseline of these tasks of the plan in one database; played once, then
    /// kept, whatever their order.
    ///
    /// # Errors
    /// The lab's own failures.
    pub fn baseline_of_tasks(&self, tasks: &[String]) -> Result<Arc<Baseline>, LabError> {
        let mut key = tasks.to_vec();
        key.sort();
        let mut kept = self.of_tasks.lock().map_err(|_| LabError::poisoned())?;
        if let Some(baseline) = kept.get(&key) {
            return Ok(Arc::clone(baseline));
        }
        let evidence = clean_run(&self.lab, &self.case, tasks, &Vec::new())?;
        let mut baseline = baseline_of(evidence, None);
        baseline.comparable.clone_from(&self.baseline.comparable);
        let baseline = Arc::new(baseline);
        kept.insert(key, Arc::clone(&baseline));
        Ok(baseline)
    }

    /// The last step that is done; in a tool's own example that is the tool.
    #[must_use]
    pub fn last_step(&self) -> usize {
        self.case.done_steps().last().unwrap_or_default()
    }

    /// The first step that is to be done and is not yet.
    #[must_use]
    pub fn first_open(&self, tables: &Tables) -> Option<usize> {
        self.case.done_steps().find(|&step| !tables.is_done(TASK, step))
    }

    /// The steps that are this plan's own business: all that are done, or only the last of them in a tool's example,
    /// where the others prepare its input.
    #[must_use]
    pub fn own_steps(&self) -> Vec<usize> {
        match self.case.example_of {
            Some(_) => vec![self.last_step()],
            None => self.case.done_steps().collect(),
        }
    }

    /// Whether a call is this plan's own business: all are, but in a tool's example, where all is not wanted, only
    /// those of the tool's own step.
    #[must_use]
    pub fn is_own(&self, at: &CallPoint) -> bool {
        let tool = format!(":{}", self.last_step());
        self.lab.deep || self.case.example_of.is_none() || at.phase.ends_with(&tool)
    }

    /// Whether the agent declares a point for cases with a log or a completion only.
    #[must_use]
    pub fn is_of_completion(&self, point: &CrashPoint) -> bool {
        let inventory = self.lab.target.inventory.iter();
        inventory.flat_map(|all| &all.further_crash_points).any(|site| site.site == point.site)
    }

    /// Steps whose tool changes something outside the database.
    #[must_use]
    pub fn effectful_steps(&self) -> Vec<usize> {
        let steps = self.case.steps.iter().enumerate();
        steps.filter(|(_, step)| self.lab.target.has_effect(&step.tool)).map(|(idx, _)| idx).collect()
    }
}

/// Whether two looks differ in nothing but times and the names of processes.
fn is_same(one: &Snapshot, other: &Snapshot) -> bool {
    let events = |look: &Snapshot| -> Vec<_> {
        let all = look.tables.events.iter();
        all.map(|event| (event.seq, event.task.clone(), event.kind.clone(), event.step, event.data.clone())).collect()
    };
    let (rows, others) = (&one.tables, &other.tables);
    let same_rows = (&rows.tasks, &rows.steps) == (&others.tasks, &others.steps) && events(one) == events(other);
    same_rows && one.faults.is_empty() && (&one.world, &one.own_files) == (&other.world, &other.own_files)
}

/// The case in the words in which the agent has stored its plan for [`TASK`]; as it was where that is not a plan of one
/// step for each note.
fn learned(case: &PlanCase, tables: &Tables) -> PlanCase {
    let mut learned = case.clone();
    let steps: Vec<StepSpec> = tables.steps_of(TASK).map(|row| StepSpec::new(&row.tool, row.input.clone())).collect();
    if let (Some(row), true) = (tables.task(TASK), steps.len() == case.steps.len()) {
        learned.goal.clone_from(&row.goal);
        learned.steps = steps;
    }
    learned
}

/// Creates and runs `tasks` one after another without any crash.
///
/// # Errors
/// The lab's own failures.
pub fn clean_run(lab: &Lab, case: &Arc<PlanCase>, tasks: &[String], env: &Env) -> Result<Evidence, LabError> {
    let mut stage = Stage::new(lab, case, tasks)?;
    for task in tasks {
        stage.run(task, None, Expect::Ends(0), env)?;
    }
    let mut evidence = stage.close(TaskEnd::Done);
    know_effects(&mut evidence);
    Ok(evidence)
}

/// Learns from the first clean run which files are judged: those that the plan and the committed outputs name. What was
/// seen before loses the others.
fn know_effects(evidence: &mut Evidence) {
    if evidence.case.effects.are_known() {
        return;
    }
    let mut case = PlanCase::clone(&evidence.case);
    let mut named = Vec::new();
    for step in &evidence.last().tables.steps {
        strings(&step.input, &mut named);
        step.output.iter().for_each(|output| strings(output, &mut named));
    }
    case.effects.learn(named);
    let looks = evidence.runs.iter_mut().filter_map(|run| run.after.as_mut());
    for look in looks.chain([&mut evidence.created]) {
        look.world.retain(|name, _| case.is_effect(name));
        look.written.retain(|name, _| case.is_effect(name));
    }
    evidence.case = Arc::new(case);
}

/// A baseline from one clean run; outputs are comparable where a second one has the same.
#[must_use]
pub fn baseline_of(first: Evidence, second: Option<&Evidence>) -> Baseline {
    let output = |evidence: &Evidence, idx| {
        let step = evidence.last().tables.step(TASK, idx);
        step.and_then(|row| row.output.clone())
    };
    let comparable = (0..first.case.steps.len())
        // A server may answer a repeated request in other words.
        .map(|idx| {
            !first.case.kind.is_served() && second.is_some_and(|second| output(&first, idx) == output(second, idx))
        })
        .collect();
    Baseline { evidence: first, comparable, between: BTreeMap::new() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::inbox;
    use crate::testing::Story;

    #[test]
    fn only_a_plan_of_as_many_steps_as_notes_is_learned() {
        let mut story = Story::clean();
        let new = learned(&inbox::case(), &story.last().tables);
        assert_eq!(new.steps[2].tool, "write_artifact");
        assert_eq!(new.goal, "Summarize notes into a report");
        story.last().tables.steps.pop();
        assert_eq!(learned(&inbox::case(), &story.last().tables).steps, inbox::case().steps);
    }
}

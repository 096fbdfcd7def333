//! Tasks that stand in one database and one folder with others.

use std::sync::Arc;

use crate::agent::process::{Ended, Env};
use crate::case::names;
use crate::case::plan::PlanCase;
use crate::error::LabError;
use crate::judge::verdict::Verdict;
use crate::look::evidence::{Baseline, Evidence, Expect, TaskEnd};
use crate::look::lab::Lab;
use crate::play::prepared::Prepared;
use crate::play::scenario::{Played, play_schedule};
use crate::play::stage::Stage;
use crate::schedule::{CrashPoint, Kill, KillSchedule};

/// Which tasks a schedule is played with: the usual one alone, or a pair of which
/// the second one is killed in its last step before and resumed afterwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Company(pub Option<usize>);

impl Company {
    /// The tasks, the one first that the schedule is for.
    #[must_use]
    pub fn tasks(self) -> Vec<String> {
        self.0.map_or_else(|| vec![crate::case::TASK.to_owned()], names::pair)
    }

    /// The `nth` pair; the task alone where the agent refuses one of the ids.
    ///
    /// # Errors
    /// The lab's own failures.
    pub fn welcome(ready: &Prepared, nth: usize) -> Result<Self, LabError> {
        let company = Self(Some(nth % names::COUNT));
        let clean = ready.baseline_of_tasks(&company.tasks())?;
        Ok(if refused_name(&clean.evidence).is_none() { company } else { Self(None) })
    }

    /// The company and the rest of the text of a subject, such as
    /// `pair-3: after_effect:2`.
    #[must_use]
    pub fn parse(text: &str) -> (Self, &str) {
        let pair = || {
            let (nth, rest) = text.strip_prefix("pair-")?.split_once(": ")?;
            Some((Self(Some(nth.parse().ok()?)), rest))
        };
        pair().unwrap_or((Self(None), text))
    }

    /// Plays a schedule, and the other task's death and resume around it.
    ///
    /// # Errors
    /// The lab's own failures.
    pub fn play(self, lab: &Lab, case: &Arc<PlanCase>, kills: &KillSchedule, env: &Env) -> Result<Evidence, LabError> {
        let tasks = self.tasks();
        let mut stage = Stage::new(lab, case, &tasks)?;
        let (first, others) = (&tasks[0], &tasks[1..]);
        for other in others {
            let kill = Kill::Point(CrashPoint::new("after_effect", case.done_steps().last().unwrap_or_default()));
            stage.run(other, Some(&kill), Expect::Dies, env)?;
        }
        play_schedule(&mut stage, first, kills, env, &|_| Vec::new())?;
        for other in others {
            stage.run(other, None, Expect::Ends(0), env)?;
        }
        Ok(stage.close(TaskEnd::Done))
    }

    /// Judges what was played of the prepared plan.
    ///
    /// # Errors
    /// The lab's own failures.
    pub fn judge(self, ready: &Prepared, evidence: Evidence) -> Result<Played, LabError> {
        match self.0 {
            None => Ok(judged(evidence, &ready.baseline)),
            Some(_) => Ok(judged(evidence, &*ready.baseline_of_tasks(&self.tasks())?)),
        }
    }
}

impl std::fmt::Display for Company {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.map_or(Ok(()), |nth| write!(f, "pair-{nth}: "))
    }
}

/// The properties, and that nobody touched what was not his.
#[must_use]
pub fn judged(evidence: Evidence, baseline: &Baseline) -> Played {
    let untouched = (evidence.tasks.len() > 1).then(|| untouched(&evidence));
    let mut played = Played::judged(evidence, baseline);
    if let Some(untouched) = untouched {
        played.and("neighbours_untouched", untouched);
    }
    played
}

/// Where the agent has no task of one of these names and says why: the contract
/// does not say which ids there are, so that there is nothing to be played.
///
/// # Errors
/// The lab's own failures.
pub fn refused(ready: &Prepared, tasks: &[String]) -> Result<Option<Played>, LabError> {
    let baseline = ready.baseline_of_tasks(tasks)?;
    let refused = refused_name(&baseline.evidence);
    Ok(refused.map(|task| {
        let note = Some(format!("not applicable, because the agent refuses the id `{task}`"));
        Played { note, ..Played::default() }
    }))
}

/// The first task that was refused in a run without a crash.
#[must_use]
pub fn refused_name(clean: &Evidence) -> Option<&String> {
    clean.tasks.iter().enumerate().find_map(|(i, task)| {
        let run = clean.runs.iter().find(|run| run.task == *task).map(|run| &run.outcome);
        let asked = clean.creates.get(i).or(run)?;
        let politely = matches!(asked.ended, Ended::Exited(code) if code != 0) && !asked.stderr.trim().is_empty();
        (politely && clean.last().tables.task(task).is_none()).then_some(task)
    })
}

/// Between two looks at rest only tasks that had a run in between may change.
fn untouched(evidence: &Evidence) -> Verdict {
    let mut complaints = Vec::new();
    let mut before = &evidence.created.tables;
    let mut at_work = Vec::new();
    for (i, run) in evidence.runs.iter().enumerate() {
        at_work.push(&run.task);
        let Some(after) = &run.after else { continue };
        for task in evidence.tasks.iter().filter(|task| !at_work.contains(task)) {
            if before.only(task) != after.tables.only(task) {
                complaints.push(format!("{} changed the task {task}", evidence.label(i)));
            }
        }
        before = &after.tables;
        at_work.clear();
    }
    Verdict::of(&complaints)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Story, outcome};

    #[test]
    fn a_run_that_touches_a_neighbour_is_rejected() {
        let mut story = Story::killed_at("after_effect:1");
        story.evidence.tasks.push("t2".to_owned());
        assert!(untouched(&story.evidence).holds());
        let mut event = story.event("step_recovered", 0).clone();
        event.task = "t2".to_owned();
        story.last().tables.events.push(event);
        assert!(!untouched(&story.evidence).holds());
    }

    #[test]
    fn a_company_comes_back_from_its_text() {
        for company in [Company(None), Company(Some(0)), Company(Some(8))] {
            let text = format!("{company}after_effect:2");
            assert_eq!(Company::parse(&text), (company, "after_effect:2"));
        }
    }

    #[test]
    fn an_id_is_refused_with_words_and_without_a_row_and_not_otherwise() {
        let mut story = Story::clean();
        story.evidence.tasks.push("t%".to_owned());
        let mut create = outcome(Ended::Exited(64));
        story.evidence.creates.push(create.clone());
        assert_eq!(refused_name(&story.evidence), None, "it said nothing");
        create.stderr = "no such id".to_owned();
        story.evidence.creates[1] = create;
        assert_eq!(refused_name(&story.evidence).map(String::as_str), Some("t%"));
    }
}

//! An attempt fails only for what was done to it: a kill makes no error, and what others do beside a run costs it no
//! attempt, neither the recovery of another task nor a database that is busy.

use std::collections::BTreeMap;

use crate::judge::verdict::Verdict;
use crate::look::evidence::{Baseline, Evidence, Expect, TaskEnd};
use crate::look::tables::Tables;

/// No step has more errors than without a crash, unless a call was made to fail or the task had to.
pub(super) fn check(evidence: &Evidence, baseline: &Baseline) -> Verdict {
    let harmed = evidence.runs.iter().any(|run| run.expect == Expect::Faulted);
    if harmed || evidence.end == TaskEnd::Failed {
        return Verdict::Holds;
    }
    let must = errors(&baseline.last().tables);
    let more = errors(&evidence.last().tables).into_iter().filter(|(step, found)| {
        let known = must.get(step).map_or(0, Vec::len);
        found.len() > known
    });
    let complaints: Vec<String> =
        more.map(|((task, step), found)| format!("step {step} of {task} has failed: {}", found.join("; "))).collect();
    Verdict::of(&complaints)
}

/// What the journal says of failed attempts, by task and step.
fn errors(tables: &Tables) -> BTreeMap<(String, usize), Vec<&str>> {
    let mut errors = BTreeMap::<_, Vec<&str>>::new();
    for event in tables.events.iter().filter(|event| event.kind == "step_error") {
        errors.entry((event.task.clone(), event.step.unwrap_or_default())).or_default().push(&event.data);
    }
    errors
}

/// The first task's run has journaled what a run does that is alone: no attempt has
/// failed for what others did.
#[must_use]
pub fn undisturbed(evidence: &Evidence, baseline: &Baseline) -> Verdict {
    let task = &evidence.tasks[0];
    let events = |tables: &Tables| -> Vec<(String, Option<usize>)> {
        tables.events_of(task).map(|event| (event.kind.clone(), event.step)).collect()
    };
    let (is, must) = (events(&evidence.last().tables), events(&baseline.last().tables));
    if is == must {
        return Verdict::Holds;
    }
    let at = is.iter().zip(&must).take_while(|(is, must)| is == must).count();
    let shown = is.get(at).map_or_else(|| "nothing more".to_owned(), |(kind, step)| format!("{kind} {step:?}"));
    Verdict::Violated(format!("event {} of {task} is {shown}, although nothing was done to it", at + 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Story, breaks, holds};

    /// An agent that took a busy moment of its own making for a failed attempt passed wherever enough attempts were
    /// left.
    #[test]
    fn an_error_that_nobody_caused_is_rejected_and_one_after_a_failed_call_accepted() {
        let mut story = Story::killed_at("after_effect:2");
        holds("undisturbed", &story);
        story.insert_event("step_error", Some(2), "step_finished", 2);
        breaks("undisturbed", &story, "step 2 of t1 has failed");
        story.evidence.runs[0].expect = Expect::Faulted;
        holds("undisturbed", &story);
    }

    #[test]
    fn an_attempt_that_fails_beside_a_recovery_is_rejected() {
        let baseline =
            Baseline { evidence: Story::clean().evidence, comparable: Vec::new(), between: Default::default() };
        let mut story = Story::clean();
        assert!(undisturbed(&story.evidence, &baseline).holds());
        story.insert_event("step_error", Some(2), "step_finished", 2);
        assert!(!undisturbed(&story.evidence, &baseline).holds());
    }
}

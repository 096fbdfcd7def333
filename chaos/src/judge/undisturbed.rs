//! What others do beside a run costs it no attempt: neither the recovery of another
//! task nor a database that is busy.

use crate::judge::verdict::Verdict;
use crate::look::evidence::{Baseline, Evidence};
use crate::look::tables::Tables;

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
    use crate::testing::Story;

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

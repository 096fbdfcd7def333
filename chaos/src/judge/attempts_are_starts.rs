//! A crashed attempt counts as an attempt: the counter equals the number of `step_started` in the journal, at every
//! moment.

use crate::judge::verdict::Verdict;
use crate::look::evidence::{Baseline, Evidence};

pub(super) fn check(evidence: &Evidence, _: &Baseline) -> Verdict {
    let mut complaints = Vec::new();
    for (when, tables) in evidence.all_tables() {
        for step in &tables.steps {
            let starts = tables
                .events_of(&step.task)
                .filter(|event| event.kind == "step_started" && event.step == Some(step.idx));
            let starts = starts.count();
            if usize::try_from(step.attempts) != Ok(starts) {
                complaints.push(format!(
                    "{when}: step {} of {} counts {} attempts, the journal has {starts} starts",
                    step.idx, step.task, step.attempts
                ));
            }
        }
    }
    Verdict::of(&complaints)
}

#[cfg(test)]
mod tests {
    use crate::testing::{Story, breaks, holds};

    #[test]
    fn a_crashed_attempt_counts() {
        holds("attempts_are_starts", &Story::killed_at("after_effect:1"));
    }

    #[test]
    fn attempts_that_are_counted_on_errors_only_are_rejected() {
        let mut story = Story::killed_at("after_effect:1");
        story.last().tables.steps[1].attempts = 1;
        breaks("attempts_are_starts", &story, "counts 1 attempts, the journal has 2");
    }
}

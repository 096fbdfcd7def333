//! `ts` is in seconds since the epoch and within the life of the process that wrote
//! the event; where several were at work between two looks, of one of them.

use crate::judge::verdict::Verdict;
use crate::look::evidence::{Baseline, Evidence};
use crate::look::tables::EventRow;

/// What two clocks may differ in that are read one after the other.
const SLACK: f64 = 0.05;

pub(super) fn check(evidence: &Evidence, _: &Baseline) -> Verdict {
    let mut complaints = Vec::new();
    let creates = evidence.creates.iter().map(|create| (create.started_at, create.ended_at));
    within(life(creates), &evidence.created.tables.events, "create", &mut complaints);
    let mut known = evidence.created.tables.events.len();
    let mut first = 0;
    for (i, run) in evidence.runs.iter().enumerate() {
        let Some(after) = &run.after else { continue };
        let lives = evidence.runs[first..=i].iter().map(|run| (run.outcome.started_at, run.outcome.ended_at));
        let new = after.tables.events.get(known..).unwrap_or_default();
        within(life(lives), new, &evidence.label(i), &mut complaints);
        (known, first) = (after.tables.events.len(), i + 1);
    }
    Verdict::of(&complaints)
}

fn life(processes: impl Iterator<Item = (f64, f64)>) -> Option<(f64, f64)> {
    processes.reduce(|one, other| (one.0.min(other.0), one.1.max(other.1)))
}

fn within(life: Option<(f64, f64)>, new: &[EventRow], label: &str, complaints: &mut Vec<String>) {
    let Some((from, to)) = life else { return };
    let strange = new.iter().find(|event| !(from - SLACK..=to + SLACK).contains(&event.ts));
    complaints.extend(strange.map(|event| {
        format!("{label}: event {} has the ts {}, its process lived from {from} to {to}", event.describe(), event.ts)
    }));
}

#[cfg(test)]
mod tests {
    use crate::testing::{Story, breaks, holds};

    #[test]
    fn a_time_within_the_life_of_the_process_is_accepted() {
        holds("times_true", &Story::clean());
        holds("times_true", &Story::killed_at("after_effect:1"));
    }

    /// Milliseconds since the epoch passed, as nobody had looked at a time.
    #[test]
    fn milliseconds_and_another_day_are_rejected() {
        for wrong in [1500.0, 0.0, -86400.0] {
            let mut story = Story::clean();
            story.event("step_finished", 1).ts = wrong;
            breaks("times_true", &story, "its process lived");
        }
    }
}

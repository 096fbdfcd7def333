//! After every process the database passes SQLite's own checks.

use crate::judge::verdict::Verdict;
use crate::look::evidence::{Baseline, Evidence};

pub(super) fn check(evidence: &Evidence, _: &Baseline) -> Verdict {
    let complaints: Vec<String> = evidence
        .snapshots()
        .flat_map(|(when, snapshot)| {
            let faults = snapshot.faults.iter();
            faults.map(move |fault| format!("{when}: {fault}"))
        })
        .collect();
    Verdict::of(&complaints)
}

#[cfg(test)]
mod tests {
    use crate::testing::{Story, breaks, holds};

    #[test]
    fn a_sound_database_is_accepted() {
        holds("database_sound", &Story::killed_at("after_effect:1"));
    }

    #[test]
    fn a_fault_at_any_moment_is_rejected() {
        let mut story = Story::killed_at("after_effect:1");
        story.after(0).faults.push("row 3 missing from index".to_owned());
        breaks("database_sound", &story, "row 3 missing");
    }
}

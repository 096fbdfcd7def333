//! The properties, one file each. Each is a plain function that reads the evidence of one scenario, with constants of
//! its own, and gives its verdict.

mod action_log;
mod attempts_are_starts;
mod clean_outcome;
#[cfg(test)]
mod coverage;
mod database_sound;
mod effect_once;
mod exit_code;
mod intent_kept;
mod journal_consistent;
mod journal_replay;
mod no_stray_files;
mod one_run_started;
mod promise_kept;
mod recovery_explicit;
mod report_whole;
mod resumes_not_restarts;
mod state_preserved;
mod times_true;
pub mod told;
mod undisturbed;
pub mod verdict;

pub use clean_outcome::clean_outcome;
pub use no_stray_files::looks_temporary;
pub use undisturbed::undisturbed;

use crate::judge::verdict::{Finding, Verdict};
use crate::look::evidence::{Baseline, Evidence};

/// A property and its judge.
pub struct Property {
    /// The name in reports; the file's name.
    pub name: &'static str,
    /// The property in one sentence.
    pub about: &'static str,
    /// The judge.
    pub check: fn(&Evidence, &Baseline) -> Verdict,
}

/// Every property, in the order in which findings are told.
pub const ALL: [Property; 17] = [
    // How the processes ended comes first: what else is wrong often follows from it.
    Property {
        name: "exit_code",
        about: "every process ends as the contract has it, and where the kill was meant to hit, it hit",
        check: exit_code::check,
    },
    Property {
        name: "state_preserved",
        about: "task, plan and the output of every committed step survive each kill",
        check: state_preserved::check,
    },
    Property {
        name: "resumes_not_restarts",
        about: "a step that was committed before the kill never runs again",
        check: resumes_not_restarts::check,
    },
    Property {
        name: "recovery_explicit",
        about: "a step is journaled as recovered exactly where the kill landed inside it",
        check: recovery_explicit::check,
    },
    Property {
        name: "effect_once",
        about: "effects are in the world once, byte for byte those of a run without a crash",
        check: effect_once::check,
    },
    Property {
        name: "promise_kept",
        about: "an effect of a class is in the world as often as that allows, and nobody but a person ends a doubt",
        check: promise_kept::check,
    },
    Property {
        name: "intent_kept",
        about: "all attempts of a step are for one input and of one class, and the journal has the digest of that input",
        check: intent_kept::check,
    },
    Property {
        name: "journal_consistent",
        about: "each step's events follow one another in order, and rows are only ever added",
        check: journal_consistent::check,
    },
    Property {
        name: "journal_replay",
        about: "the journal replayed from its start gives the state in the tables",
        check: journal_replay::check,
    },
    Property {
        name: "attempts_are_starts",
        about: "a step's counter of attempts equals the starts in the journal",
        check: attempts_are_starts::check,
    },
    Property {
        name: "undisturbed",
        about: "no attempt fails to which nothing was done, and what others do beside a run costs it none",
        check: undisturbed::check,
    },
    Property {
        name: "times_true",
        about: "each ts is in seconds since the epoch and within the life of the process that wrote it",
        check: times_true::check,
    },
    Property {
        name: "one_run_started",
        about: "every process that got the lock, and no other, journals one run_started",
        check: one_run_started::check,
    },
    Property {
        name: "no_stray_files",
        about: "no temporary file, no foreign lock and no process stays behind",
        check: no_stray_files::check,
    },
    Property {
        name: "database_sound",
        about: "the database is in WAL mode and passes SQLite's own checks after every process",
        check: database_sound::check,
    },
    Property {
        name: "action_log",
        about: "the action log, read leniently, agrees with the journal event for event, and a lost line comes back marked",
        check: action_log::check,
    },
    Property {
        name: "report_whole",
        about: "the report stands there whole or not at all, and in the end is that of a run without a crash",
        check: report_whole::check,
    },
];

/// The properties that single methods judge, in the order in which the methods run. With [`ALL`] that is every name
/// that a finding can have.
pub const OF_METHODS: [(&str, &str); 23] = [
    ("runs_clean", "without a crash create and run end with 0, and the task is stored"),
    ("clean_outcome", "a run without a crash leaves what the built-in plans must come to, once"),
    ("declared_effects", "a tool without an effect changes no file"),
    ("report_of_contract", "the inbox's report is the one that the contract asks for"),
    ("refused_changes_nothing", "a runner that is refused changes neither tables nor files"),
    ("contested", "of eight runners at once some are refused"),
    ("neighbours_untouched", "what happens to one task leaves the others in its database as they are"),
    ("foreign_result", "somebody else's file is not taken for a result"),
    ("nothing_changed", "a finished or failed task that is run again changes nothing"),
    ("given_up", "a step that kills its process each time fails at the attempt limit"),
    ("seen_running", "a reader sees each step while it runs"),
    ("report_seen_whole", "no look at the report ever shows a part of it"),
    (
        "told_true",
        "what status and export say is what the tables have, and who only asks or is refused changes nothing",
    ),
    ("artifacts_there", "with AGENT_ARTIFACTS the results are in that folder and in no other"),
    ("heard_once", "of many people who answer one question at the same moment one is heard, and what he said is used"),
    ("whole_or_nothing", "a create that is cut stores a whole task or nothing, and the next one knows which"),
    ("hit", "a kill that was asked for hits where it was aimed"),
    ("acknowledged_survives", "what the world had been told is found again after a power cut"),
    ("no_false_success", "success is not told where a failed call, or a power cut after a failed sync, takes it back"),
    ("frozen", "the run comes to the call at which it is to be frozen"),
    ("control_bites", "made unsafe, an effect doubles at exactly the points between effect and commit"),
    ("enough_hits", "enough of the random kills come before the run's end"),
    ("repeatable", "a random case that failed fails again"),
];

/// Every property with what it says, for people.
pub fn properties() -> impl Iterator<Item = (&'static str, &'static str)> {
    ALL.iter().map(|one| (one.name, one.about)).chain(OF_METHODS)
}

/// Has every judge look at the evidence; what holds is left out, violations
/// come before what was not reached.
#[must_use]
pub fn judge(evidence: &Evidence, baseline: &Baseline) -> Vec<Finding> {
    let mut findings: Vec<Finding> =
        ALL.iter().filter_map(|judge| (judge.check)(evidence, baseline).finding(judge.name)).collect();
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.verdict));
    findings
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;

    fn sources(below: &Path, into: &mut String) {
        for entry in std::fs::read_dir(below).expect("a folder").flatten() {
            if entry.path().is_dir() {
                sources(&entry.path(), into);
            } else {
                let text = std::fs::read_to_string(entry.path()).expect("a source");
                into.push_str(text.split("#[cfg(test)]").next().unwrap_or_default());
            }
        }
    }

    /// Some thirty judges spoke, and thirteen stood in the help: the others were to be found in the source.
    #[test]
    fn whoever_judges_stands_in_the_table_once() {
        let names: Vec<&str> = properties().map(|(name, _)| name).collect();
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
        let mut text = String::new();
        sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut text);
        let spoken = text.split(".and(\"").skip(1).filter_map(|rest| rest.split('"').next());
        let spoken: BTreeSet<&str> = spoken.collect();
        assert!(spoken.len() > 10, "{spoken:?}");
        for name in spoken {
            assert!(names.contains(&name), "`{name}` judges and stands in no table");
        }
    }
}

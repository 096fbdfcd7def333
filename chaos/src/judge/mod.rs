//! The properties, one file each. Each is a plain function that reads the evidence of one scenario, with constants of
//! its own, and gives its verdict.

mod action_log;
mod attempts_are_starts;
mod clean_outcome;
mod database_sound;
mod effect_once;
mod exit_code;
mod journal_consistent;
mod journal_replay;
mod no_stray_files;
mod one_run_started;
mod recovery_explicit;
mod report_whole;
mod resumes_not_restarts;
mod state_preserved;
pub mod verdict;

pub use clean_outcome::clean_outcome;
pub use no_stray_files::looks_temporary;

use crate::judge::verdict::{Finding, Verdict};
use crate::look::evidence::{Baseline, Evidence};

/// A property and its judge.
pub struct Invariant {
    /// The name in reports; the file's name.
    pub name: &'static str,
    /// The property in one sentence.
    pub about: &'static str,
    /// The judge.
    pub check: fn(&Evidence, &Baseline) -> Verdict,
}

/// Every property, in the order in which findings are told.
pub const ALL: [Invariant; 13] = [
    // How the processes ended comes first: what else is wrong often follows from it.
    Invariant {
        name: "exit_code",
        about: "every process ends as the contract has it, and where the kill was meant to hit, it hit",
        check: exit_code::check,
    },
    Invariant {
        name: "state_preserved",
        about: "task, plan and the output of every committed step survive each kill",
        check: state_preserved::check,
    },
    Invariant {
        name: "resumes_not_restarts",
        about: "a step that was committed before the kill never runs again",
        check: resumes_not_restarts::check,
    },
    Invariant {
        name: "recovery_explicit",
        about: "a step is journaled as recovered exactly where the kill landed inside it",
        check: recovery_explicit::check,
    },
    Invariant {
        name: "effect_once",
        about: "effects are in the world once, byte for byte those of a run without a crash",
        check: effect_once::check,
    },
    Invariant {
        name: "journal_consistent",
        about: "each step's events follow one another in order, and rows are only ever added",
        check: journal_consistent::check,
    },
    Invariant {
        name: "journal_replay",
        about: "the journal replayed from its start gives the state in the tables",
        check: journal_replay::check,
    },
    Invariant {
        name: "attempts_are_starts",
        about: "a step's counter of attempts equals the starts in the journal",
        check: attempts_are_starts::check,
    },
    Invariant {
        name: "one_run_started",
        about: "every process that got the lock, and no other, journals one run_started",
        check: one_run_started::check,
    },
    Invariant {
        name: "no_stray_files",
        about: "no temporary file, no foreign lock and no process stays behind",
        check: no_stray_files::check,
    },
    Invariant {
        name: "database_sound",
        about: "the database is in WAL mode and passes SQLite's own checks after every process",
        check: database_sound::check,
    },
    Invariant {
        name: "action_log",
        about: "the action log, read leniently, agrees with the journal event for event, and a lost line comes back marked",
        check: action_log::check,
    },
    Invariant {
        name: "report_whole",
        about: "the report stands there whole or not at all, and in the end is that of a run without a crash",
        check: report_whole::check,
    },
];

/// Has every judge look at the evidence; what holds is left out, violations come before what was not reached.
#[must_use]
pub fn judge(evidence: &Evidence, baseline: &Baseline) -> Vec<Finding> {
    let mut findings: Vec<Finding> =
        ALL.iter().filter_map(|judge| (judge.check)(evidence, baseline).finding(judge.name)).collect();
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.verdict));
    findings
}

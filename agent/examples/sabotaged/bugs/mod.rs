//! What is planted. A bug is a row in one of the tables below.

mod artifacts;
mod commits;
mod log;
mod open;
mod power;
mod recovery;
mod report;
mod runs;

use crate::plant::{HONEST, Plant};

/// A bug, and what the lab must say of it.
pub(crate) struct Bug {
    /// Its name.
    pub(crate) name: &'static str,
    /// What it does, one sentence.
    pub(crate) about: &'static str,
    /// What it is tried with.
    pub(crate) plan: PlanKind,
    /// The methods of the lab that it is tried with.
    pub(crate) methods: &'static [&'static str],
    /// Which part of their scenarios is enough, as the lab's `--shard` has it.
    pub(crate) part: &'static str,
    /// The judges of which one at least must find it; others may.
    pub(crate) caught_by: &'static [&'static str],
    /// What it would take to show it, where no method does.
    pub(crate) open: Option<&'static str>,
    /// How it is done.
    pub(crate) plant: Plant,
}

/// The plan that shows a bug best.
#[derive(Clone, Copy)]
pub(crate) enum PlanKind {
    /// The report: fetch, summarize, write.
    Report,
    /// Only one step, so that every pair of points can be tried.
    Single,
    /// The lab's inbox, which has an action log and a report.
    Inbox,
}

impl PlanKind {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Report => "report",
            Self::Single => "single",
            Self::Inbox => "inbox",
        }
    }
}

/// The usual way to try a bug: each crash point once.
const POINTS: &[&str] = &["points"];

/// What shows where no crash point is: the folder after each system call.
const EXHAUST: &[&str] = &["exhaust"];

/// What only a power cut shows: a kill loses nothing that the kernel has.
const POWER: &[&str] = &["power"];

/// What only a disk that fails shows.
const FAULTS: &[&str] = &["faults"];

/// What only two processes show of which one stands still between two system calls.
const PAUSE: &[&str] = &["pause"];

/// Of the scenarios of `race`, those in which the first runner is stopped while the second one comes.
const SECOND: &str = "1/2";

/// Enough of the scenarios for a bug that shows in a good part of many.
const QUARTER: &str = "1/4";

/// A bug that has no properties yet.
const BUG: Bug = Bug {
    name: "",
    about: "",
    plan: PlanKind::Report,
    methods: POINTS,
    part: "1/1",
    caught_by: &[],
    open: None,
    plant: HONEST,
};

/// No bug, by that name.
static HONEST_BY_NAME: Plant = HONEST;

/// Every bug.
pub(crate) fn all() -> impl Iterator<Item = &'static Bug> {
    let tables =
        [recovery::BUGS, commits::BUGS, runs::BUGS, artifacts::BUGS, log::BUGS, report::BUGS, power::BUGS, open::BUGS];
    tables.into_iter().flatten()
}

/// The bug of this name; `honest` is none.
pub(crate) fn named(name: &str) -> Option<&'static Plant> {
    if name == "honest" {
        return Some(&HONEST_BY_NAME);
    }
    all().find(|bug| bug.name == name).map(|bug| &bug.plant)
}

//! Bugs of the action log.

use super::{BUG, Bug, FAULTS, POWER, PlanKind, QUARTER};
use crate::plant::{HONEST, Log, Plant};

pub(super) static BUGS: &[Bug] = &[
    Bug {
        name: "log_before_commit",
        about: "A finished step is told of in the action log before it is committed.",
        caught_by: &["action_log"],
        plant: log(Log::Early),
        ..LOG
    },
    Bug {
        name: "log_never_sealed",
        about: "A torn last line of the action log is continued with the next one.",
        methods: DAMAGED,
        part: QUARTER,
        caught_by: &["action_log"],
        plant: log(Log::Unsealed),
        ..LOG
    },
    Bug {
        name: "log_not_rebuilt",
        about: "Of an action log that was lost, nothing comes back.",
        methods: DAMAGED,
        part: QUARTER,
        caught_by: &["action_log"],
        plant: log(Log::NotRebuilt),
        ..LOG
    },
    Bug {
        name: "log_repeated_at_each_start",
        about: "Each start of a run writes once more what the action log has already.",
        caught_by: &["action_log"],
        plant: log(Log::Repeated),
        ..LOG
    },
    Bug {
        name: "log_reconciled_twice",
        about: "An event that a kill has kept out of the action log is written twice by the next run.",
        caught_by: &["action_log"],
        plant: lines(|_, reconciled| reconciled, 2),
        ..LOG
    },
    Bug {
        name: "log_reconciled_unmarked",
        about: "An event that a kill has kept out of the action log comes back as if it were new.",
        caught_by: &["action_log"],
        plant: log(Log::Unmarked),
        ..LOG
    },
    Bug {
        name: "step_done_not_reconciled",
        about: "A step_done that a kill has kept out of the action log never comes.",
        caught_by: &["action_log"],
        plant: lines(|event, reconciled| reconciled && event == "step_done", 0),
        ..LOG
    },
    Bug {
        name: "task_created_not_reconciled",
        about: "A task_created that a kill has kept out of the action log never comes.",
        caught_by: &["action_log"],
        plant: lines(|event, reconciled| reconciled && event == "task_created", 0),
        ..LOG
    },
    Bug {
        name: "task_resumed_missing",
        about: "A run that goes on with an earlier one's work does not say so in the action log.",
        caught_by: &["action_log"],
        plant: lines(|event, _| event == "task_resumed", 0),
        ..LOG
    },
    Bug {
        name: "already_done_missing",
        about: "A run that finds the task done says nothing in the action log.",
        methods: RERUN,
        caught_by: &["action_log"],
        plant: lines(|event, _| event == "already_done", 0),
        ..LOG
    },
    Bug {
        name: "already_done_twice",
        about: "A run that finds the task done says so twice in the action log.",
        methods: RERUN,
        caught_by: &["action_log"],
        plant: lines(|event, _| event == "already_done", 2),
        ..LOG
    },
    Bug {
        name: "log_not_synced",
        about: "The task goes on before a line of the action log is on the disk.",
        methods: POWER,
        part: QUARTER,
        caught_by: &["action_log"],
        plant: log(Log::Unsynced),
        ..LOG
    },
    Bug {
        name: "log_fsync_error_ignored",
        about: "A sync of the action log that fails is taken for one that did not.",
        methods: FAULTS,
        part: QUARTER,
        caught_by: &["no_false_success"],
        plant: log(Log::SyncIgnored),
        ..LOG
    },
];

/// The log torn, lost and written to by others.
const DAMAGED: &[&str] = &["log"];

const RERUN: &[&str] = &["rerun"];

const LOG: Bug = Bug { plan: PlanKind::Inbox, ..BUG };

const fn log(way: Log) -> Plant {
    Plant { log: way, ..HONEST }
}

const fn lines(which: fn(&str, bool) -> bool, times: usize) -> Plant {
    log(Log::Lines { which, times })
}

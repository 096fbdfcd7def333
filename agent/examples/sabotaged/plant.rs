//! In which ways a part can be wrong. [`HONEST`] is right in all of them; a bug differs from it in one or two.

use std::path::Path;

use agent::{Config, Exit};
use store::model::TaskState;

use crate::unit::Unit;

/// One agent: the real one, but for what differs from [`HONEST`].
pub(crate) struct Plant {
    /// Whether a task is created in two transactions.
    pub(crate) created_in_two: bool,
    /// How a commit is cut into transactions.
    pub(crate) cut: Cut,
    /// What is not written when it should be.
    pub(crate) hold: Hold,
    /// What is changed in a commit before it is written.
    pub(crate) edit: fn(&mut Unit),
    /// What the run believes to have found.
    pub(crate) load: fn(TaskState) -> TaskState,
    /// How the lock is taken.
    pub(crate) lock: Lock,
    /// SQLite's `synchronous` for commits.
    pub(crate) synchronous: &'static str,
    /// How an artifact is published.
    pub(crate) artifact: Artifact,
    /// How the action log is written.
    pub(crate) log: Log,
    /// How the report is published.
    pub(crate) report: Report,
    /// What is misread in the settings.
    pub(crate) config: fn(&mut Config),
    /// What happens before the run.
    pub(crate) before: fn(&Path, &str) -> rusqlite::Result<()>,
    /// What happens after a run that was not killed.
    pub(crate) after: fn(&Path, &str) -> rusqlite::Result<()>,
    /// What the process says with its exit code.
    pub(crate) exit: fn(Exit) -> Exit,
}

/// No bug at all.
pub(crate) const HONEST: Plant = Plant {
    created_in_two: false,
    cut: Cut { transactions: &[&[Piece::Steps, Piece::Output, Piece::Status, Piece::Journal]], points: true },
    hold: Hold::Nothing,
    edit: |_| {},
    load: |state| state,
    lock: Lock::Taken,
    synchronous: "FULL",
    artifact: Artifact::Real,
    log: Log::Real,
    report: Report::Real,
    config: |_| {},
    before: |_, _| Ok(()),
    after: |_, _| Ok(()),
    exit: |exit| exit,
};

/// The transactions that one commit becomes, in order.
#[derive(Clone, Copy)]
pub(crate) struct Cut {
    /// What stands in each.
    pub(crate) transactions: &'static [&'static [Piece]],
    /// Whether there is a crash point after each, or only after the last.
    pub(crate) points: bool,
}

/// A part of a commit.
#[derive(Clone, Copy)]
pub(crate) enum Piece {
    /// Status and attempts of the steps.
    Steps,
    /// The output of the step that finishes.
    Output,
    /// The status of the task.
    Status,
    /// The events.
    Journal,
    /// The events but for `run_started`.
    Recoveries,
    /// `run_started` alone.
    Announcement,
}

/// What is kept in memory until the next commit, though the caller is told that it is durable.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hold {
    /// Nothing.
    Nothing,
    /// The events; the state is written.
    Journal,
    /// The commit that starts a step.
    Start,
    /// The commit that finishes a step.
    Finish,
}

/// How the lock of a task is taken.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lock {
    /// As it should be.
    Taken,
    /// Not at all.
    Not,
    /// Taken and let go at once.
    Dropped,
    /// Not at all, but each commit checks that no later run has taken over.
    FenceOnly,
    /// Waited for.
    Waited,
    /// Taken, and with it one that all tasks share.
    Shared,
    /// After the recovery.
    AfterRecovery,
    /// After the state was read.
    AfterLoad,
}

/// How an artifact is published.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Artifact {
    /// As it should be.
    Real,
    /// As it should be, but what a killed attempt left is not swept.
    Unswept,
    /// As it should be, but the temporary files of every key are swept, whoever is at work on them.
    SweptForAll,
    /// Not until the next commit.
    Late,
    /// Created under its final name and then filled.
    InPlace {
        /// Whether a file that is there already is compared.
        compared: bool,
    },
    /// Emptied and filled again by each attempt.
    Overwritten,
    /// Appended to by each attempt.
    Appended,
    /// By way of a temporary file, but not as it should be.
    ByTemporary(Temporary),
}

/// How the temporary file is handled.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Temporary {
    /// Named after the key alone, and appended to.
    AppendedTo,
    /// Named after the key alone, and emptied.
    Shared,
    /// Named after the key alone, and made anew.
    Renewed,
    /// That of a killed attempt is taken for a whole one.
    TakenOver,
    /// Right, but the file that is there already is not compared.
    Uncompared,
    /// Right, but its content is not synced.
    FileUnsynced,
    /// Right, but the folder is not synced.
    FolderUnsynced,
    /// Right, but the folder's own name is not synced.
    ParentUnsynced,
    /// Right, but a sync that fails is taken for one that did not.
    SyncIgnored,
}

/// How the action log is written.
#[derive(Clone, Copy)]
pub(crate) enum Log {
    /// As it should be.
    Real,
    /// A finished step is told of before it is committed.
    Early,
    /// A torn last line is continued.
    Unsealed,
    /// Of a log that is gone, nothing comes back.
    NotRebuilt,
    /// Every start writes everything once more that stands there.
    Repeated,
    /// What another run has lost comes back without a mark.
    Unmarked,
    /// Some lines, told by their event and by whether they are reconciled, are written more or less than once.
    Lines {
        /// Whether a line is one of them.
        which: fn(&str, bool) -> bool,
        /// How often they are written.
        times: usize,
    },
    /// Lines are not synced.
    Unsynced,
    /// A sync that fails is taken for one that did not.
    SyncIgnored,
}

/// How the report is published.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Report {
    /// As it should be.
    Real,
    /// When the last step begins, with the results that there are; and as it should be in the end.
    Early,
    /// When the task is done.
    Late,
    /// As it should be, but a report that went missing later stays away.
    NotPutBack,
    /// With the results of the last run before those of the runs that were killed.
    OfThisRunFirst,
    /// Emptied and filled again under its own name.
    InPlace,
    /// By way of a temporary file that is not synced as it should be.
    ByTemporary(ReportSync),
}

/// What is wrong with the syncs of a report.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReportSync {
    /// Its content is not synced.
    NoFile,
    /// Its folder is not synced.
    NoFolder,
    /// A sync that fails is taken for one that did not.
    Ignored,
}

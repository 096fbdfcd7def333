//! What happens to a task, as data.

use std::fmt;

use super::{RunId, TaskId, Timestamp};

/// One thing that happened to a task. A state change and its event are committed together.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// The task was stored with its frozen plan of `steps` steps.
    TaskCreated {
        /// How many steps the plan has.
        steps: u32,
        /// The task's home, as [`crate::TaskRow::home`]. Absent in old journals.
        home: Option<String>,
    },
    /// A run began; written after its recovery, in the same transaction.
    RunStarted {
        /// The steps that were found running and set back.
        recovered: Vec<u32>,
        /// What the run goes by.
        terms: Terms,
    },
    /// A step was found running when a run began, and set back to pending.
    StepRecovered {
        /// The step.
        step: u32,
    },
    /// A step was set to running.
    StepStarted {
        /// The step.
        step: u32,
        /// The tool that it calls.
        tool: String,
        /// Which attempt this is, from 1.
        attempt: u32,
    },
    /// A step was set to done, with its output.
    StepFinished {
        /// The step.
        step: u32,
        /// The tool that it called.
        tool: String,
    },
    /// The tool failed; the step was set back to pending.
    StepError {
        /// The step.
        step: u32,
        /// What the tool said, one line.
        error: String,
    },
    /// An attempt ended in order, before its effect or without one; the step was set back to pending. The attempt
    /// counts as a start and not against the limit.
    StepReleased {
        /// The step.
        step: u32,
        /// Why it was given up.
        reason: String,
    },
    /// The completion was begun: what a task does between its last step and its end.
    CompletionStarted {
        /// Which attempt this is, from 1.
        attempt: u32,
    },
    /// The completion was found under way when a run began, and set back to pending.
    CompletionRecovered,
    /// The completion failed in order, and was set back to pending. That does not count against the limit: its place is
    /// at fault and not the task, and a person mends it.
    CompletionError {
        /// What went wrong, one line.
        error: String,
    },
    /// The task ended without success.
    TaskFailed {
        /// The step that failed it; none where the completion did.
        step: Option<u32>,
        /// Why.
        reason: FailReason,
        /// What is known of the attempts that used up the limit, a sentence each.
        known: Vec<String>,
    },
    /// No step is left.
    TaskDone,
    /// A failed task was given a fresh attempt budget.
    TaskRetried {
        /// The step that had failed; none where it was the completion.
        step: Option<u32>,
        /// How many attempts of it count no longer.
        forgiven: u32,
    },
    /// A person said where the task's files are now.
    TaskRebound {
        /// The new home, where it changed.
        home: Option<String>,
        /// The new completion, a JSON object, where it changed.
        completion: Option<String>,
    },
}

/// What a run goes by: what a reader must know to repeat its decisions. Each is absent in journals of versions that did
/// not know it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Terms {
    /// The attempt limit in force.
    pub max_attempts: Option<u32>,
    /// Whether the run goes on with what an earlier process began.
    pub resumed: Option<bool>,
    /// The folder of the artifacts, as [`crate::TaskRow::artifacts`].
    pub artifacts: Option<String>,
    /// The home that this run gives to a task which had none.
    pub home: Option<String>,
}

impl Terms {
    /// An attempt limit and nothing else.
    #[must_use]
    pub fn limit(max_attempts: u32) -> Self {
        Self { max_attempts: Some(max_attempts), ..Self::default() }
    }
}

/// Why a task failed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum FailReason {
    /// A step used up its attempts.
    MaxAttempts,
    /// A reason that another version of this program journaled.
    Other(String),
}

impl fmt::Display for FailReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::MaxAttempts => "max_attempts",
            Self::Other(reason) => reason,
        })
    }
}

/// The kinds of event, spelled in the journal as `as_str` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "each stands for the variant of `Event` of the same name")]
pub enum EventKind {
    TaskCreated,
    RunStarted,
    StepRecovered,
    StepStarted,
    StepFinished,
    StepError,
    TaskFailed,
    TaskDone,
    TaskRetried,
    StepReleased,
    CompletionStarted,
    CompletionRecovered,
    CompletionError,
    TaskRebound,
}

impl EventKind {
    /// All kinds that this version writes.
    pub const ALL: [Self; 14] = [
        Self::TaskCreated,
        Self::RunStarted,
        Self::StepRecovered,
        Self::StepStarted,
        Self::StepFinished,
        Self::StepError,
        Self::TaskFailed,
        Self::TaskDone,
        Self::TaskRetried,
        Self::StepReleased,
        Self::CompletionStarted,
        Self::CompletionRecovered,
        Self::CompletionError,
        Self::TaskRebound,
    ];

    /// The spelling in the journal. Fixed: other programs read it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::TaskCreated => "task_created",
            Self::RunStarted => "run_started",
            Self::StepRecovered => "step_recovered",
            Self::StepStarted => "step_started",
            Self::StepFinished => "step_finished",
            Self::StepError => "step_error",
            Self::TaskFailed => "task_failed",
            Self::TaskDone => "task_done",
            Self::TaskRetried => "task_retried",
            Self::StepReleased => "step_released",
            Self::CompletionStarted => "completion_started",
            Self::CompletionRecovered => "completion_recovered",
            Self::CompletionError => "completion_error",
            Self::TaskRebound => "task_rebound",
        }
    }
}

impl Event {
    /// Its kind.
    #[must_use]
    pub fn kind(&self) -> EventKind {
        match self {
            Self::TaskCreated { .. } => EventKind::TaskCreated,
            Self::RunStarted { .. } => EventKind::RunStarted,
            Self::StepRecovered { .. } => EventKind::StepRecovered,
            Self::StepStarted { .. } => EventKind::StepStarted,
            Self::StepFinished { .. } => EventKind::StepFinished,
            Self::StepError { .. } => EventKind::StepError,
            Self::TaskFailed { .. } => EventKind::TaskFailed,
            Self::TaskDone => EventKind::TaskDone,
            Self::TaskRetried { .. } => EventKind::TaskRetried,
            Self::StepReleased { .. } => EventKind::StepReleased,
            Self::CompletionStarted { .. } => EventKind::CompletionStarted,
            Self::CompletionRecovered => EventKind::CompletionRecovered,
            Self::CompletionError { .. } => EventKind::CompletionError,
            Self::TaskRebound { .. } => EventKind::TaskRebound,
        }
    }

    /// The step that it is about, if it is about one.
    #[must_use]
    pub fn step(&self) -> Option<u32> {
        match *self {
            Self::StepRecovered { step }
            | Self::StepStarted { step, .. }
            | Self::StepFinished { step, .. }
            | Self::StepError { step, .. }
            | Self::StepReleased { step, .. } => Some(step),
            Self::TaskFailed { step, .. } | Self::TaskRetried { step, .. } => step,
            Self::TaskCreated { .. }
            | Self::RunStarted { .. }
            | Self::CompletionStarted { .. }
            | Self::CompletionRecovered
            | Self::CompletionError { .. }
            | Self::TaskDone
            | Self::TaskRebound { .. } => None,
        }
    }
}

/// One row of the journal, as it is stored: a reader must also be able to show kinds that it does not know.
#[derive(Clone, Debug, PartialEq)]
pub struct JournalEntry {
    /// Position in the journal of the whole database; grows.
    pub seq: i64,
    /// When it was written.
    pub ts: Timestamp,
    /// The task that it is about.
    pub task: TaskId,
    /// The run that wrote it.
    pub run: RunId,
    /// The kind's spelling.
    pub kind: String,
    /// The step that it is about.
    pub step: Option<u32>,
    /// The kind's own fields.
    pub data: serde_json::Map<String, serde_json::Value>,
}

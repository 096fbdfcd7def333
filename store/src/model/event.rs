//! What happens to a task, as data.

use std::fmt;

use super::spelling::spelled;
use super::{Digest, Intent, RunId, TaskId, Timestamp, Wait};

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
        /// What it intends, where the step has an effect or its input is rendered.
        intent: Option<Intent>,
    },
    /// A step was set to done, with its output.
    StepFinished {
        /// The step.
        step: u32,
        /// The tool that it called.
        tool: String,
        /// True where the effect was there already, and its output was found out by asking.
        adopted: bool,
    },
    /// The tool failed; the step was set back to pending, or waits until it is tried again.
    StepError {
        /// The step.
        step: u32,
        /// What is known of it.
        failure: Failure,
    },
    /// A step has failed for good and is left behind: the task goes on.
    StepFailed {
        /// The step.
        step: u32,
        /// Why.
        reason: FailReason,
        /// True where it may have had its effect all the same.
        unknown: bool,
    },
    /// A step is not to be done.
    StepSkipped {
        /// The step.
        step: u32,
    },
    /// A step waits; nothing was started.
    StepWaiting {
        /// The step.
        step: u32,
        /// For what.
        wait: Wait,
        /// The digest of what is shown to the person who is asked.
        shown: Option<Digest>,
    },
    /// A person answered; the step was set back to pending.
    AnswerGiven {
        /// The step.
        step: u32,
        /// The answer, as JSON.
        answer: String,
        /// True where what was asked for is refused; the step fails in the same transaction.
        rejected: bool,
        /// Who.
        by: String,
        /// Why.
        why: Option<String>,
        /// The digest of what was shown.
        shown: Option<Digest>,
    },
    /// The effect of a step may or may not have happened. Where an attempt is under way, this closes it.
    StepInDoubt {
        /// The step.
        step: u32,
        /// What was seen, one line.
        known: String,
    },
    /// A person said what happened. [`Word::Happened`] makes the step done, with its output.
    DoubtResolved {
        /// The step.
        step: u32,
        /// What the person said.
        word: Word,
        /// Who.
        by: String,
        /// Why.
        why: Option<String>,
    },
    /// A long attempt says how far it is.
    StepCheckpoint {
        /// The step.
        step: u32,
        /// What the next attempt is to know, as JSON.
        checkpoint: String,
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
        /// True where the step may have had its effect all the same.
        unknown: bool,
    },
    /// A person ended the task.
    TaskCancelled {
        /// Who.
        by: String,
        /// Why.
        why: Option<String>,
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
    /// What summarizes, such as a stub or a server of models.
    pub engine: Option<String>,
    /// Which model it is asked for.
    pub model: Option<String>,
}

impl Terms {
    /// An attempt limit and nothing else.
    #[must_use]
    pub fn limit(max_attempts: u32) -> Self {
        Self { max_attempts: Some(max_attempts), ..Self::default() }
    }
}

/// What is known of an attempt that failed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Failure {
    /// What the tool said, one line.
    pub error: String,
    /// No further attempt can succeed.
    pub permanent: bool,
    /// The effect may have happened.
    pub unknown: bool,
    /// The attempt asked first, and no earlier one had its effect.
    pub absent: bool,
    /// When it is tried again, where that is not at once.
    pub retry_at: Option<Timestamp>,
}

impl Failure {
    /// One of which nothing more is known: it has done nothing, and may be tried again at once.
    pub fn plain(error: impl Into<String>) -> Self {
        Self { error: error.into(), ..Self::default() }
    }
}

spelled! {
    /// What a person says of an effect that is in doubt.
    Word, "a word for a doubt" {
        /// It happened.
        Happened = "happened",
        /// It has not happened and will not.
        Absent = "absent",
        /// Nobody knows or it does not matter: the step has failed.
        Abandon = "abandon",
    }
}

/// Why a step failed for good, and mostly its task with it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum FailReason {
    /// It used up its attempts.
    MaxAttempts,
    /// An error that no further attempt can mend.
    Permanent,
    /// It was in doubt, and a person gave it up.
    Abandoned,
    /// A person refused what it asked for.
    Rejected,
    /// Nobody answered in time.
    Expired,
    /// A reason that another version of this program journaled.
    Other(String),
}

impl FailReason {
    const SPELLED: [(Self, &'static str); 5] = [
        (Self::MaxAttempts, "max_attempts"),
        (Self::Permanent, "permanent"),
        (Self::Abandoned, "abandoned"),
        (Self::Rejected, "rejected"),
        (Self::Expired, "expired"),
    ];

    /// The reason of that spelling.
    #[must_use]
    pub fn from_stored(text: String) -> Self {
        let known = Self::SPELLED.into_iter().find(|(_, spelling)| *spelling == text);
        known.map_or(Self::Other(text), |(reason, _)| reason)
    }
}

impl fmt::Display for FailReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = Self::SPELLED.iter().find(|(reason, _)| reason == self);
        f.write_str(match (self, known) {
            (Self::Other(reason), _) => reason,
            (_, known) => known.map_or("", |(_, spelling)| spelling),
        })
    }
}

spelled! {
    /// The kinds of event: each stands for the variant of [`Event`] of the same name.
    #[expect(missing_docs, reason = "each stands for the variant of `Event` of the same name")]
    EventKind, "a kind of event" {
        TaskCreated = "task_created",
        RunStarted = "run_started",
        StepRecovered = "step_recovered",
        StepStarted = "step_started",
        StepFinished = "step_finished",
        StepError = "step_error",
        StepFailed = "step_failed",
        StepReleased = "step_released",
        StepSkipped = "step_skipped",
        StepWaiting = "step_waiting",
        AnswerGiven = "answer_given",
        StepInDoubt = "step_in_doubt",
        DoubtResolved = "doubt_resolved",
        StepCheckpoint = "step_checkpoint",
        CompletionStarted = "completion_started",
        CompletionRecovered = "completion_recovered",
        CompletionError = "completion_error",
        TaskFailed = "task_failed",
        TaskDone = "task_done",
        TaskCancelled = "task_cancelled",
        TaskRetried = "task_retried",
        TaskRebound = "task_rebound",
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
            Self::StepFailed { .. } => EventKind::StepFailed,
            Self::StepSkipped { .. } => EventKind::StepSkipped,
            Self::StepWaiting { .. } => EventKind::StepWaiting,
            Self::AnswerGiven { .. } => EventKind::AnswerGiven,
            Self::StepInDoubt { .. } => EventKind::StepInDoubt,
            Self::DoubtResolved { .. } => EventKind::DoubtResolved,
            Self::StepCheckpoint { .. } => EventKind::StepCheckpoint,
            Self::TaskCancelled { .. } => EventKind::TaskCancelled,
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
            | Self::StepFailed { step, .. }
            | Self::StepSkipped { step }
            | Self::StepWaiting { step, .. }
            | Self::AnswerGiven { step, .. }
            | Self::StepInDoubt { step, .. }
            | Self::DoubtResolved { step, .. }
            | Self::StepCheckpoint { step, .. }
            | Self::StepReleased { step, .. } => Some(step),
            Self::TaskFailed { step, .. } | Self::TaskRetried { step, .. } => step,
            Self::TaskCreated { .. }
            | Self::RunStarted { .. }
            | Self::CompletionStarted { .. }
            | Self::CompletionRecovered
            | Self::CompletionError { .. }
            | Self::TaskDone
            | Self::TaskCancelled { .. }
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

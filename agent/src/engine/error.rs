//! Why a run has to stop. Whatever was committed is durable, and the next run goes on from there.

use std::path::PathBuf;

use store::machine::Refused;
use store::model::TaskId;
use store::{SessionError, StoreError};
use tools::{PublishError, ToolError};

use super::observer::ObserverError;

/// What went wrong, by who has to mend it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EngineError {
    /// The store refused or failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The task's state does not allow it.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// Who hears of the run cannot go on.
    #[error(transparent)]
    Observer(ObserverError),
    /// What is stored of the task cannot be run by this program.
    #[error("task `{task}`{step}: {why}", step = step.map_or(String::new(), |step| format!(", step {step}")))]
    Stored {
        /// The task.
        task: TaskId,
        /// The step, where it is about one.
        step: Option<u32>,
        /// What is wrong.
        why: String,
    },
    /// A step was interrupted while it worked on another artifacts folder.
    #[error("task `{task}`, step {step}: it was interrupted while it may have written to the artifacts folder {before}, \
             and is not repeated into {now}", before = .before.display(), now = .now.display())]
    Artifacts {
        /// The task.
        task: TaskId,
        /// The step.
        step: u32,
        /// The folder then.
        before: PathBuf,
        /// The folder now.
        now: PathBuf,
    },
    /// A secret that a step needs is not there.
    #[error("step {step} needs the secret {name}, and the environment has no variable of that name")]
    Secret {
        /// The step.
        step: u32,
        /// Its name.
        name: String,
    },
    /// A tool found the disk to be at fault.
    #[error("step {step}")]
    Tool {
        /// The step.
        step: u32,
        /// What the tool said.
        source: ToolError,
    },
    /// The report could not be published.
    #[error("the report")]
    Report(#[source] PublishError),
}

impl From<SessionError> for EngineError {
    fn from(error: SessionError) -> Self {
        match error {
            SessionError::Store(error) => error.into(),
            SessionError::Refused(refused) => refused.into(),
        }
    }
}

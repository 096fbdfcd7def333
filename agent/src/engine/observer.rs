//! Who hears of a run's progress.

use store::Reader;
use store::model::{Event, TaskState, Timestamp};

/// Why a run cannot go on although the task could.
pub(crate) type ObserverError = Box<dyn std::error::Error + Send + Sync>;

/// What is said beside the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Remark {
    /// The run waits until then.
    Waits(Timestamp),
    /// The run goes by another setting than the first one of the task.
    Differs {
        /// The setting.
        what: &'static str,
        /// What it was then.
        before: String,
        /// What it is now.
        now: String,
    },
}

/// Hears of what was committed, in order and at once. It can read and cannot steer.
pub(crate) trait Observer {
    /// `events` are durable; `state` is the state after them.
    ///
    /// # Errors
    /// The run stops, as safely as if it were killed here.
    fn committed(&mut self, reader: &mut dyn Reader, state: TaskState, events: &[Event]) -> Result<(), ObserverError>;

    /// Something that a person may want to know, and that changes nothing.
    fn hears(&mut self, _remark: &Remark) {}
}

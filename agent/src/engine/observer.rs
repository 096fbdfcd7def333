//! Who hears of a run's progress.

use store::Reader;
use store::model::{Event, TaskState, Timestamp};

/// Why a run cannot go on although the task could.
pub(crate) type ObserverError = Box<dyn std::error::Error + Send + Sync>;

/// Hears of what was committed, in order and at once. It can read and cannot steer.
pub(crate) trait Observer {
    /// `events` are durable; `state` is the state after them.
    ///
    /// # Errors
    /// The run stops, as safely as if it were killed here.
    fn committed(&mut self, reader: &mut dyn Reader, state: TaskState, events: &[Event]) -> Result<(), ObserverError>;

    /// The run waits until then.
    fn waits(&mut self, _until: Timestamp) {}
}

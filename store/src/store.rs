//! The seam between the runtime and its backends.

use serde_json::{Map, Value};

use crate::commit::Commit;
use crate::error::StoreError;
use crate::lease::Lease;
use crate::model::{JournalEntry, Origin, RunId, StepState, TaskId, TaskState, TaskStatus, Timestamp};

/// The row of a task.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskRow {
    /// Its id.
    pub id: TaskId,
    /// What it is for.
    pub goal: String,
    /// Its status.
    pub status: TaskStatus,
    /// When it was created.
    pub created_at: Timestamp,
    /// When its status last changed.
    pub updated_at: Timestamp,
    /// The folder that its relative paths start from: relative to the database's folder, or absolute. `None` where an
    /// earlier version created the task and none of this one has run it yet.
    pub home: Option<String>,
    /// The attempts of its completion, counted like those of a step.
    pub completion: StepState,
    /// The folder of its artifacts in its last run, as it was given: relative to its home, or absolute.
    pub artifacts: Option<String>,
    /// What it keeps of its plan file.
    pub origin: Origin,
}

/// The row of a step, without its output.
#[derive(Clone, Debug, PartialEq)]
pub struct StepRow {
    /// Its index, from 0.
    pub idx: u32,
    /// The tool that it calls.
    pub tool: String,
    /// The tool's input.
    pub input: Map<String, Value>,
    /// Where it stands.
    pub state: StepState,
    /// Whether it has an output.
    pub has_output: bool,
    /// What the plan says of it beside tool and input.
    pub settings: Option<Map<String, Value>>,
    /// How far its last attempt said that it was, where it is not done.
    pub checkpoint: Option<Value>,
    /// What a person answered to its question: an object with `answer`, `by` and `why`.
    pub answer: Option<Map<String, Value>>,
}

impl StepRow {
    /// What the plan says of it under this name.
    #[must_use]
    pub fn setting(&self, name: &str) -> Option<&Value> {
        self.settings.as_ref()?.get(name)
    }

    /// What the plan calls it.
    #[must_use]
    pub fn id(&self) -> Option<&str> {
        self.setting("id")?.as_str()
    }
}

/// What waits for a person: a step that is in doubt, or that asks.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    /// The task.
    pub task: TaskRow,
    /// The step at which it stands.
    pub step: StepRow,
}

/// Reading. A reader never creates a file and never changes one.
pub trait Reader {
    /// Runs `read` on one state of the storage: what is committed meanwhile does not show in it. Without it, two calls
    /// may see two states. `read` may be run again from its start, and its last run counts; the reader that it is given
    /// is the one to use, and is not to be asked for a snapshot once more.
    fn snapshot(&mut self, read: &mut dyn FnMut(&mut dyn Reader) -> Result<(), StoreError>) -> Result<(), StoreError>;

    /// All tasks, oldest first. A row that does not decode is an error in its place, and hides no other.
    fn tasks(&mut self) -> Result<Vec<Result<TaskRow, StoreError>>, StoreError>;

    /// One task's row; `None` where there is no such task.
    fn task(&mut self, task: &TaskId) -> Result<Option<TaskRow>, StoreError>;

    /// The plan file of a task, as it was given; `None` where it was not kept, or there is no such task.
    fn source(&mut self, task: &TaskId) -> Result<Option<String>, StoreError>;

    /// What waits for a person, in the order of the tasks. The cost does not grow with what has happened, nor with the
    /// steps of a task. A row that does not decode is an error in its place, and hides no other.
    fn questions(&mut self) -> Result<Vec<Result<Question, StoreError>>, StoreError>;

    /// One task's state; `None` where there is no such task. The cost does not grow with finished steps.
    fn load(&mut self, task: &TaskId) -> Result<Option<TaskState>, StoreError>;

    /// At most `limit` steps from index `from` on, in order.
    fn steps(&mut self, task: &TaskId, from: u32, limit: u32) -> Result<Vec<StepRow>, StoreError>;

    /// The committed output of a step; `None` where the step is not done.
    fn output(&mut self, task: &TaskId, step: u32) -> Result<Option<Map<String, Value>>, StoreError>;

    /// What a run does once every step is done and before the task is; `None` where there is nothing, or no task.
    fn completion(&mut self, task: &TaskId) -> Result<Option<Map<String, Value>>, StoreError>;

    /// At most `limit` journal rows with a `seq` above `after`, of one task or of all, in order.
    fn journal(&mut self, task: Option<&TaskId>, after: i64, limit: u32) -> Result<Vec<JournalEntry>, StoreError>;

    /// What the backend itself finds wrong with its storage, a line each; empty where it is sound.
    fn integrity(&mut self) -> Result<Vec<String>, StoreError>;
}

/// Writing. A backend decides nothing: it stores what [`Commit`] says, wholly or not at all, and there is no other way
/// to write.
pub trait Store: Reader + Send {
    /// Takes the right to change a task. [`crate::ErrorKind::Held`] where another process has it; then nothing was
    /// changed. Its holder's death gives the lease back.
    fn acquire(&mut self, task: &TaskId, run: &RunId) -> Result<Lease, StoreError>;

    /// Takes the right to create a task and to hold it from the first moment, so that no other process runs it before
    /// its creator does. [`crate::ErrorKind::Held`] where another process is doing the same,
    /// [`crate::ErrorKind::Exists`] where the task is there; nothing was changed.
    fn reserve(&mut self, task: &TaskId, run: &RunId) -> Result<Lease, StoreError>;

    /// Asserts the lease and, where leases expire, puts its end off. [`crate::ErrorKind::Fenced`] where a later run has
    /// taken the task over: the holder must stop.
    fn renew(&mut self, lease: &Lease) -> Result<(), StoreError>;

    /// Gives the lease back, which its drop does too; here the backend can say that it did not work.
    fn release(&mut self, lease: Lease) -> Result<(), StoreError>;

    /// Writes state and events in one transaction, guarded by the fence's token and the rows' present state. When it
    /// returns, the transaction is durable. A creation is refused as [`crate::ErrorKind::Exists`] where the task is
    /// there. [`crate::ErrorKind::Unsettled`] says that nobody knows whether it landed; whoever takes the task up next
    /// finds out.
    fn commit(&mut self, commit: &Commit) -> Result<(), StoreError>;
}

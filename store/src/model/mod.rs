//! The nouns: what a task, a plan, a step, an event are, and their one JSON form.

pub mod codec;
mod effect;
mod event;
mod id;
mod numbers;
mod plan;
mod plan_reader;
mod row;
mod spelling;
mod spot;
mod state;
mod strict;
mod time;

pub use effect::{Digest, Effect, Intent};
pub use event::{Event, EventKind, FailReason, Failure, JournalEntry, Terms, Word};
pub use id::{BadTaskId, IdempotencyKey, RunId, TaskId};
pub use plan::{Origin, Plan, PlanError, PlanSource, PlannedStep};
pub use plan_reader::{PlanReader, ReadPlanError};
pub use spelling::UnknownWord;
pub use state::{StepState, StepStatus, TaskState, TaskStatus, Wait};
pub use time::Timestamp;

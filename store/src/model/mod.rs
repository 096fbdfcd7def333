//! The nouns: what a task, a plan, a step, an event are, and their one JSON form.

pub mod codec;
mod event;
mod id;
mod numbers;
mod plan;
mod plan_reader;
mod spot;
mod state;
mod strict;
mod time;

pub use event::{Event, EventKind, FailReason, JournalEntry, Terms};
pub use id::{BadTaskId, IdempotencyKey, RunId, TaskId};
pub use plan::{Plan, PlanError, PlanSource, PlannedStep};
pub use plan_reader::{PlanReader, ReadPlanError};
pub use state::{StepState, StepStatus, TaskState, TaskStatus, UnknownStatus};
pub use time::Timestamp;

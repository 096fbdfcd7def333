//! What is durable: the model of a task, every legal change of its state, and the backends that keep it.
//!
//! The crate is layered, and data flows one way:
//!
//! * [`model`]: the nouns (task, plan, step, event, journal) and the only JSON codec for them;
//! * [`machine`]: the pure core. [`machine::decide`] turns a command into events, [`machine::evolve`] turns an event
//!   into the next state; neither knows a clock, a file or SQL;
//! * [`Store`] and [`Reader`]: the narrow seam that a backend fills. State and journal are written together by
//!   [`Commit`], which only the machine can build, so a state change without its event cannot be expressed;
//! * [`TaskSession`]: load, decide, evolve, commit, written once for all backends;
//! * [`audit`]: the journal, replayed from its start, against the tables;
//! * `sqlite`: the embedded backend.
//!
//! The crate reads no environment and prints nothing.

pub mod audit;
pub mod clock;
mod commit;
pub mod crash;
mod error;
pub mod files;
mod lease;
pub mod limits;
pub mod machine;
pub mod model;
mod session;
#[cfg(feature = "sqlite")]
pub mod sqlite;
mod store;

pub use clock::{Clock, SystemClock};
pub use commit::{Commit, Places, StepChange, TaskChange};
pub use crash::{Crash, CrashPoint, CrashScope, CrashSite};
pub use error::{ErrorKind, StoreError, line};
pub use lease::{Fence, FencingToken, Lease};
pub use session::{SessionError, TaskSession, create};
pub use store::{Question, Reader, StepRow, Store, TaskRow};

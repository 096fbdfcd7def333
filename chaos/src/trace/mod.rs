//! One ptrace tracer for all methods that stop, record or fail a system call.
//!
//! It follows every thread and child of the agent, sees each call before it is made and after, and tells a [`Watch`] of
//! those that touch the lab's folder; all others, such as what an interpreter reads at its start, are passed over.
//! While a watch is asked, every thread of the agent stands still. Signals are passed on, and the tracer's death kills
//! the agent.
//!
//! Left out: a stop signal from outside does not hold a traced process, and a write through a shared mapping makes no
//! call and is not seen (a mapping of that kind is told in [`Traced::blind`]).

mod arch;
mod call;
mod files;
mod filter;
mod memory;
mod op;
mod record;
mod tracer;

pub use call::{Call, Class, Done, Verb, Watch};
pub use filter::become_traced;
pub use op::{FileId, Op};
pub use record::Recorder;
pub use tracer::{Start, Traced, trace};

/// Whether the tracer works on this system.
#[must_use]
pub fn available() -> bool {
    arch::SUPPORTED
}

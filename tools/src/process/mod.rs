//! Programs that a tool starts: none of them acts once the agent that started it is dead and the next one has begun.
//!
//! Between the agent and a program stands a *keeper* (`keeper`), a process of the same binary. It notes who it is
//! before it lets the program go, and ends all of them when its line to the agent closes, which the kernel does for an
//! agent that was killed. Every process that comes of the program inherits a lock (`group`); that it is free is the
//! proof that all of them are gone, and whoever repeats the step waits for that proof. `child` is the agent's side,
//! `wire` what the two say to each other, `kept` what a program has said on standard error.

mod child;
mod group;
pub mod keeper;
mod kept;
mod wire;

pub(crate) use child::{End, Ended, Launch, note, run};
pub(crate) use group::end_former;
pub use kept::stderr_files;

//! The agent: the loop that runs a task's steps, and the command line around it.
//!
//! Everything that decides is in `store::machine`, everything that touches the world is in `tools`; this crate puts
//! them together. [`config`] is the only place that reads the environment, [`exit`] the only one that knows exit codes,
//! and `main` the only one that prints errors.

mod action_log;
mod arm;
pub mod cli;
mod commands;
mod completion;
mod config;
pub mod exit;
mod inbox;
mod narrate;
mod output;
mod places;
mod progress;
mod runner;
mod signals;

pub use action_log::{LogError, LogFile, LogLock, LogSink};
pub use commands::{InboxRequest, LogChoice, Parts, Sink, create_with, inbox_with, run_with};
pub use completion::Replace;
pub use config::Config;
pub use exit::{Exit, Failure};
pub use runner::{Lookup, Observer, Outcome, Runner, Silent};
pub use signals::Stop;

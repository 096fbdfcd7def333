//! The agent: the loop that runs a task's steps, and the command line around it.
//!
//! Everything that decides is in `store::machine`, everything that touches the world is in `tools`; this crate puts
//! them together. `engine` is the loop and knows nothing of processes, `commands` are what people call. `config` is the
//! only place that reads the environment, `exit` the only one where an error becomes an exit code, and `main` the only
//! one that prints errors.

mod action_log;
mod arm;
pub mod cli;
mod commands;
mod config;
mod engine;
mod exit;
mod fields;
mod home;
mod inbox;
mod language;
mod narrate;
mod output;
mod places;
mod plan_file;
mod progress;
mod signals;

pub use action_log::{LogError, LogFile, LogLock, LogSink};
pub use commands::{
    InboxRequest, LogChoice, NewTask, Parts, Says, cancel_with, create_with, inbox_with, run_with, speak_with,
};
pub use config::Config;
pub use engine::Settings;
pub use exit::{Exit, Failure};

//! The command line. The only part that prints, reads the environment and knows of terminals.

pub mod args;
pub mod commands;
mod ledger;
mod parts;
pub mod progress;
mod tool;

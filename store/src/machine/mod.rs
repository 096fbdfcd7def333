//! The pure core: everything that a task can go through, as plain functions.
//!
//! No clock, no randomness, no files, no environment, no SQL: equal states and equal commands give equal events, and
//! equal states and equal events give equal states. That is what makes recovery deterministic, and what lets tests and
//! a model checker explore the machine that ships instead of a copy of it.

mod decide;
mod evolve;

pub use decide::{Budget, Command, Next, Refused, decide, next};
pub use evolve::{Illegal, evolve};

//! What is played: a plan with its input files, one drawn by lot, or the inbox.

pub mod effects;
pub mod inbox;
pub mod names;
pub mod plan;
pub mod random;

/// The name of the task where there is only one.
pub const TASK: &str = "t1";

//! What is played: a plan with its input files, one drawn by lot, the inbox, or effects in the world.

pub mod effects;
pub mod inbox;
pub mod names;
pub mod plan;
pub mod promise;
pub mod random;
pub mod world;

/// The name of the task where there is only one.
pub const TASK: &str = "t1";

//! A whole run of the lab, the gate at its end, one scenario played again, and the exit code that comes of it.

pub mod exit;
pub mod gate;
pub mod replay;
pub mod runner;

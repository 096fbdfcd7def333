//! The crash lab: it starts a real agent, kills it at every dangerous place, resumes it, and judges the outcome from
//! outside.
//!
//! The way of one scenario: a [`method`] says what to do to the agent, [`play`] does it in a fresh folder and brings
//! home what was seen, and every property of [`judge`] gives its verdict on that. [`run`] plays many of them side by
//! side and [`report`] tells the result.
//!
//! The lab is an independent witness. It knows the agent only as a process, reads the database with its own SQL
//! ([`look`]), restates every rule that it judges, and never takes the agent's word for anything.

pub mod agent;
pub mod case;
pub mod cli;
pub mod contract;
pub mod crash;
pub mod error;
pub mod judge;
pub mod look;
pub mod method;
pub mod play;
pub mod report;
pub mod run;
pub mod schedule;
pub mod server;
#[cfg(test)]
mod testing;
pub mod tool;
pub mod trace;

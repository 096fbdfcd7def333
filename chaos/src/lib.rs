//! The crash lab: it starts a real agent, kills it at every dangerous place,
//! resumes it, and judges the outcome from outside.
//!
//! The way of one scenario: a [`method`] says what to do to the agent, a
//! [`scenario`] does it on a [`stage`] (a fresh [`sandbox`]) and brings home
//! [`facts`], and every [`invariant`] gives its [`verdict`] on them. The
//! [`runner`] plays many of them side by side and [`report`] tells the result.
//!
//! The lab is an independent witness. It knows the agent only as a process,
//! reads the database with its own SQL ([`evidence`]), restates every rule that
//! it judges, and never takes the agent's word for anything.

pub mod bench;
pub mod cli;
pub mod commands;
pub mod control;
pub mod damage;
pub mod discover;
pub mod disk;
pub mod error;
pub mod evidence;
pub mod exit;
pub mod facts;
pub mod folder;
pub mod gate;
pub mod inbox;
pub mod invariant;
pub mod lab;
pub mod live;
pub mod method;
pub mod model_server;
pub mod plan;
pub mod pool;
pub mod power;
pub mod process;
pub mod progress;
pub mod random_plan;
pub mod replay;
pub mod report;
pub mod runner;
pub mod sandbox;
pub mod scenario;
pub mod schedule;
pub mod stage;
pub mod stray;
pub mod target;
#[cfg(test)]
mod testing;
pub mod trace;
pub mod verdict;
pub mod words;

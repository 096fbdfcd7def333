//! The lab as a process, against a real agent and against broken ones.

mod broken_agents;
mod exit_codes;
mod fuzz;
mod replay;
mod support;

//! The lab as a process, against a real agent and against broken ones.

mod broken_agents;
mod deep;
mod exit_codes;
mod fair;
mod fuzz;
mod inbox;
mod leftovers;
mod replay;
mod support;

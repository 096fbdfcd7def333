//! The binary from outside, as users, scripts and crashes meet it: one file per theme.
//!
//! Every call goes through [`lab::Call`], which also checks what holds for all of them: no panic, no backtrace, and a
//! failure told in one line.

#![expect(clippy::unwrap_used, reason = "a helper that cannot go on fails its test")]

mod backup;
mod bad_input;
mod bad_plans;
mod bad_rows;
mod crash_loop;
mod disk;
mod doubt;
mod environment;
mod golden;
mod home;
mod journal;
mod kills;
mod lab;
mod locks;
mod no_trace;
mod other_agents;
mod places;
mod plans;
mod programs;
mod readme;
mod restore;
mod shared_artifacts;
mod signals;
mod text;
mod tools;
mod usage;
mod verify;

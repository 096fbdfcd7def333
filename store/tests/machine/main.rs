//! The pure core: tables of commands and events by state, and random runs with crashes.

#![expect(clippy::unwrap_used, reason = "a helper that cannot go on fails its test")]

mod checker;
mod decisions;
mod evolution;
mod planted;
mod random;
mod world;

//! `agent inbox` and the action log from outside, as users, scripts and crashes meet them: one file per theme.

#![expect(clippy::unwrap_used, reason = "a helper that cannot go on fails its test")]

mod agreement;
mod ending;
mod kills;
mod lab;
mod lines;
mod logged;
mod moving;
mod report;
mod sharing;
mod trouble;
mod whole;

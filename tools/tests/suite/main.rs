//! The tools from outside: what they publish, read and ask, and what they say when the world is not as it should be.

#![expect(clippy::unwrap_used, reason = "a helper that cannot go on fails its test")]

mod catalogue;
mod exec;
mod fetch;
mod files;
mod http;
mod publish;
mod summarize;
mod support;
mod sweep;
mod write_artifact;

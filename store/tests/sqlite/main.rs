//! What is true of the SQLite backend alone: the file, its neighbours, and what other programs see of them.

#![cfg(feature = "sqlite")]
#![expect(clippy::unwrap_used, reason = "a helper that cannot go on fails its test")]

mod backup;
mod beside_writers;
mod child;
mod commits;
mod damage;
mod disk;
mod golden;
mod locking;
mod opening;
mod owner;
mod refusing;
mod support;
mod untraced;

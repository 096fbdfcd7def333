//! What is true of the SQLite backend alone: the file, its neighbours, and what other programs see of them.

#![cfg(feature = "sqlite")]

mod backup;
mod beside_writers;
mod child;
mod damage;
mod disk;
mod golden;
mod locking;
mod opening;
mod refusing;
mod support;
mod untraced;

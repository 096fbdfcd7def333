//! What a power cut can leave on the disk.
//!
//! The model takes the calls of a traced run as a list of changes and syncs and knows of no file system but the rules
//! of POSIX: what was synced is there; of everything else any part may be missing, in any combination, and a write may
//! be torn at any sector. Names are synced by their folder, content by its file.
//!
//! * [`model`]: the disk, the changes, and which of them are safe when.
//! * [`enumerate`]: which parts of what is not safe are taken.
//! * [`tear`]: writes that arrived in part.
//! * [`acks`]: what the world had been told, and must find again.
//! * [`trail`]: from traced processes to the list.

pub mod acks;
pub mod enumerate;
pub mod model;
mod states;
pub mod tear;
#[cfg(test)]
mod tests;
pub mod trail;

pub use states::{DiskReport, Fate, PendingReport, State, States, states};
pub use trail::{Entry, Trail, What};

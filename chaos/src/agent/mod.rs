//! The command under test: what it tells of itself, its processes, the folders in which they work, and what they leave
//! behind.

pub mod ask;
pub mod folder;
pub mod live;
pub mod process;
pub mod stray;
pub mod target;

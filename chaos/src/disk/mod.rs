//! What a folder held at one moment, and which moments a run has: for methods
//! that cut a run at every call instead of at points that the agent knows.

mod image;
mod kill;
mod phase;
mod reel;
mod resume;
mod tape;

pub use image::Image;
pub use kill::{Side, kill_at, kill_nth};
pub use phase::Addresses;
pub use reel::Reel;
pub use resume::{Past, Resumed, create_again, run_again, to_the_end};
pub use tape::{Frame, Seen, Tape, counts, database, record, record_from};

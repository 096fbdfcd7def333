//! Where a run can be cut, and what a cut leaves: a run on tape with the folder
//! after each call, true kills at a call, damage done between two runs, and power
//! cuts below.

mod address;
pub mod damage;
mod image;
mod kill;
pub mod power;
mod tape;
mod traced;
pub mod wal;

pub use address::Addresses;
pub use image::Image;
pub use kill::{Side, kill_at, kill_nth};
pub use tape::{Frame, Seen, Tape, counts, database, record, record_from};
pub use traced::{LAUNCH, traced, traced_launch};

//! How a scenario is played: a folder at work, the resume after a cut, a plan made ready, and the crash points that
//! recordings have shown.

pub mod ask;
pub mod clock;
pub mod company;
pub mod discover;
pub mod method;
pub mod person;
pub mod pool;
pub mod prepared;
pub mod resume;
pub mod scenario;
pub mod stage;
pub mod taped;

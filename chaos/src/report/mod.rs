//! What people and machines get to see of a run.

pub mod model;

//! What the lab sees, without anybody's word for it: the tables, the folder, and all that was seen in one scenario.

pub mod evidence;
pub mod files;
pub mod lab;
pub mod reader;
pub mod sandbox;
pub mod snapshot;
pub mod tables;

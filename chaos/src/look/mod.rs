//! What the lab sees, without anybody's word for it: the tables, the folder, and
//! all that was seen in one scenario.

pub mod facts;
pub mod lab;
pub mod reader;
pub mod sandbox;

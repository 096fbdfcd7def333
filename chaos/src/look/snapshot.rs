//! One look at the folder.

use std::collections::BTreeMap;
use std::time::SystemTime;

use crate::look::tables::Tables;

/// What lay in the folder while no process of the agent was at work.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Snapshot {
    /// The tables.
    pub tables: Tables,
    /// What is wrong with the database as such, by SQLite's own checks.
    pub faults: Vec<String>,
    /// Every file but the database's own, its locks, the plan, the inputs and the action log: relative path -> bytes.
    pub world: BTreeMap<String, Vec<u8>>,
    /// The action log's bytes, where the case has one and it is there. Its lines have times in them, so that it cannot
    /// be compared byte by byte.
    pub log: Option<Vec<u8>>,
    /// What the lab has made of the log after this look: the next run finds this.
    pub damaged_log: Option<Vec<u8>>,
    /// When each of these files was written last.
    pub written: BTreeMap<String, SystemTime>,
    /// The files that are neither world nor input: locks, the database's own.
    pub own_files: Vec<String>,
}

//! The run is frozen at each call in the folder while another run of the same task goes to its end, then it is let go:
//! nothing is done twice, and the other run never hangs without a word. Once there are three of them around the lock.
//!
//! A run that is frozen while it sets SQLite's shared memory up holds others up for some ten seconds, which no timeout
//! of theirs bounds. The other run is then let go on beside the thawed one, and the stall is told.

mod freeze;
mod neighbour;
mod same;
mod three;

use std::sync::Arc;

use crate::error::LabError;
use crate::play::method::{Method, not_here};
use crate::play::prepared::Prepared;
use crate::play::scenario::Scenario;
use crate::trace;

/// See the file's head.
pub(super) const METHOD: Method = Method {
    name: freeze::NAME,
    about: "frozen at each system call while another run goes to its end, then let go",
    scenarios,
};

fn scenarios(ready: &Arc<Prepared>) -> Result<Vec<Scenario>, LabError> {
    if !trace::available() {
        return Ok(vec![not_here(ready, METHOD.name)]);
    }
    let mut all = same::scenarios(ready)?;
    all.extend(three::scenarios(ready));
    if ready.case.kind.is_created() {
        all.extend(neighbour::scenarios(ready)?);
    }
    Ok(all)
}

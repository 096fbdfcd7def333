//! Each call that changes or syncs the folder fails once: EIO, ENOSPC, EINTR and EAGAIN, and writes that write only
//! half. Then one run without any fault: the outcome must be right, nothing may hang, and success may not have been
//! told where a power cut could have taken it back.

mod create;
mod run;
mod ways;

use std::sync::Arc;

use crate::error::LabError;
use crate::play::method::{Method, not_here};
use crate::play::prepared::Prepared;
use crate::play::scenario::Scenario;
use crate::trace;

/// See the file's head.
pub(super) const METHOD: Method = Method {
    name: ways::NAME,
    about: "each system call fails once, or writes half; then a run without faults",
    scenarios,
};

fn scenarios(ready: &Arc<Prepared>) -> Result<Vec<Scenario>, LabError> {
    if !trace::available() {
        return Ok(vec![not_here(ready, METHOD.name)]);
    }
    let mut all = if ready.case.kind.is_created() { create::scenarios(ready)? } else { Vec::new() };
    all.extend(run::scenarios(ready)?);
    Ok(all)
}

//! `agent demo`

use std::path::Path;

use crate::exit::{Exit, Failure};

pub(crate) fn demo(_dir: Option<&Path>) -> Result<Exit, Failure> {
    Ok(Exit::Done)
}

//! `agent keeper`

use crate::exit::{Exit, Failure};

/// Keeps a program until it ends; says nothing, since what it would say it on belongs to the program.
pub(crate) fn keeper() -> Result<Exit, Failure> {
    tools::keeper::keep().map_err(|error| Failure::new(Exit::Usage, format!("keeper: {error}")))?;
    Ok(Exit::Done)
}

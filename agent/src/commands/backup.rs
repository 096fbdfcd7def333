//! `agent backup`

use std::path::Path;

use super::say;
use crate::exit::{Exit, Failure};

pub(crate) fn backup(db: &Path, file: &Path) -> Result<Exit, Failure> {
    store::sqlite::backup(db, file)?;
    say!("{} is backed up to {}", db.display(), file.display());
    Ok(Exit::Done)
}

//! `agent backup`

use std::path::Path;

use super::say;
use crate::exit::{Exit, Failure};
use crate::places::check_apart;

pub(crate) fn backup(db: &Path, file: &Path) -> Result<Exit, Failure> {
    // Where something stands the backup is refused in any case; a name of the database's own may be free.
    if file.symlink_metadata().is_err() {
        check_apart(db, "the backup", file)?;
    }
    store::sqlite::backup(db, file)?;
    say!("{} is backed up to {}", db.display(), file.display());
    Ok(Exit::Done)
}

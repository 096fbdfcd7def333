//! `agent restore`

use std::path::Path;

use nix::sys::resource::{Resource, getrlimit, setrlimit};

use super::say;
use crate::exit::{Exit, Failure};
use crate::places::check_apart;

pub(crate) fn restore(db: &Path, backup: &Path) -> Result<Exit, Failure> {
    check_apart(db, "the backup", backup)?;
    // The locks of all tasks are held at once, each as an open file.
    if let Ok((_, most)) = getrlimit(Resource::RLIMIT_NOFILE) {
        let _best_effort = setrlimit(Resource::RLIMIT_NOFILE, most, most);
    }
    store::sqlite::restore(backup, db)?;
    say!("{} is restored from {}", db.display(), backup.display());
    Ok(Exit::Done)
}

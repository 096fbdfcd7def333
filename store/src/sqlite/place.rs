//! Where a database lies.

use std::path::Path;

use super::error::io_failed;
use crate::error::{ErrorKind, StoreError};
use crate::files::{self, folder_of};
use crate::limits;

/// Refuses a place where SQLite would fail half-way, or with less to say.
pub(super) fn check_place(path: &Path) -> Result<(), StoreError> {
    /// The longest ending that SQLite adds to the name, for the file of a transaction under way.
    const LONGEST: &str = "-journal";
    let refused = |why: String| StoreError::new(ErrorKind::Refused, format!("cannot make {}: {why}", path.display()));
    let folder = folder_of(path);
    if !folder.is_dir() {
        return Err(refused(format!("there is no folder {}", folder.display())));
    }
    match path.file_name().map(|name| name.len() + LONGEST.len()) {
        Some(length) if length <= limits::FILE_NAME_BYTES => Ok(()),
        _ => Err(refused("the name is too long for the files that go with it".to_owned())),
    }
}

/// Makes the names in a folder durable; see [`files::sync_folder`].
pub(super) fn sync_folder(folder: &Path) -> Result<(), StoreError> {
    use files::SyncFolderError::{Open, Sync};
    files::sync_folder(folder).map_err(|(Open(error) | Sync(error))| io_failed("sync the folder", folder)(error))
}

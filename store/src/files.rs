//! What every crate does alike with files.

use std::fs::File;
use std::io;
use std::path::Path;

/// Why the names in a folder are not known to be durable.
#[derive(Debug, thiserror::Error)]
pub enum SyncFolderError {
    /// It could not be opened; nothing was tried.
    #[error("{0}")]
    Open(#[source] io::Error),
    /// The sync failed: what the disk holds is unknown.
    #[error("{0}")]
    Sync(#[source] io::Error),
}

/// Makes the names in `folder` durable: a file's name is durable only when its folder is synced.
///
/// # Errors
/// See [`SyncFolderError`].
pub fn sync_folder(folder: &Path) -> Result<(), SyncFolderError> {
    let handle = File::open(folder).map_err(SyncFolderError::Open)?;
    match handle.sync_all() {
        // Some file systems have no such call for folders; then there is nothing more that anybody could do.
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(()),
        result => result.map_err(SyncFolderError::Sync),
    }
}

/// The folder that a path lies in.
#[must_use]
pub fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A database in a folder whose file system cannot sync folders was refused, an artifact in the same folder was
    /// not.
    #[test]
    fn a_folder_that_knows_no_sync_is_none_that_failed() {
        // The kernel's own file systems answer so.
        let folder = Path::new("/proc/self");
        let handle = File::open(folder).expect("/proc is there");
        assert_eq!(handle.sync_all().expect_err("no sync").kind(), io::ErrorKind::InvalidInput);
        assert!(sync_folder(folder).is_ok());
        assert!(matches!(sync_folder(Path::new("/nowhere/at/all")), Err(SyncFolderError::Open(_))));
    }

    #[test]
    fn a_bare_name_lies_in_the_working_folder() {
        assert_eq!(folder_of(Path::new("a")), Path::new("."));
        assert_eq!(folder_of(Path::new("/x/a")), Path::new("/x"));
    }
}

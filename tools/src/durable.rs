//! Folders whose names survive a power cut, and what can go wrong on the way of a file into the world.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use store::files::{self, SyncFolderError, folder_of};

use crate::error::ToolError;

/// Why a file could not be published.
#[derive(Debug, thiserror::Error)]
pub enum PublishError {
    /// Something else stands under that name.
    #[error("{path} is not the file that would be published: {why}", path = .path.display())]
    Occupied {
        /// The name.
        path: PathBuf,
        /// What stands there.
        why: String,
    },
    /// A file operation failed; no temporary file is left.
    #[error("cannot {op} {path}: {source}", path = .path.display())]
    Io {
        /// What was tried.
        op: &'static str,
        /// On which file.
        path: PathBuf,
        /// What came of it.
        source: io::Error,
    },
    /// A sync failed: what the disk holds is unknown.
    #[error("cannot sync {path}: {source}; the disk cannot be trusted with what was written to it", path = .path.display())]
    Sync {
        /// The file or folder.
        path: PathBuf,
        /// What came of it.
        source: io::Error,
    },
}

impl From<PublishError> for ToolError {
    fn from(error: PublishError) -> Self {
        match error {
            PublishError::Sync { .. } => Self::Poison(error.to_string()),
            _ => Self::Step(error.to_string()),
        }
    }
}

/// Makes `folder` and its parents, so that all their names are durable when it returns.
///
/// A folder that is there already may have been made by a run that died before it synced the parent. So the parent of
/// the deepest folder that exists is synced too, and no folder is made in one whose own name is not yet durable.
///
/// # Errors
/// See [`PublishError`].
pub fn make_folder(folder: &Path) -> Result<(), PublishError> {
    if folder.parent().is_none() {
        return Ok(());
    }
    let parent = folder_of(folder);
    if folder.is_dir() {
        return sync_folder_of_others(parent);
    }
    if parent != Path::new(".") {
        make_folder(parent)?;
    }
    match fs::create_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && folder.is_dir() => {}
        result => result.map_err(failed("make the folder", folder))?,
    }
    sync_folder(parent)
}

/// Makes the names in `folder` durable; see [`files::sync_folder`].
///
/// # Errors
/// See [`PublishError`].
pub fn sync_folder(folder: &Path) -> Result<(), PublishError> {
    files::sync_folder(folder).map_err(|error| match error {
        SyncFolderError::Open(source) => failed("open the folder", folder)(source),
        SyncFolderError::Sync(source) => unsynced(folder)(source),
    })
}

/// Like [`sync_folder`] for one that others may have made: where it may not even be read, this program did not make it.
///
/// # Errors
/// See [`PublishError`].
pub fn sync_folder_of_others(folder: &Path) -> Result<(), PublishError> {
    match sync_folder(folder) {
        Err(PublishError::Io { source, .. }) if source.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        result => result,
    }
}

pub(crate) fn failed<'a>(op: &'static str, path: &'a Path) -> impl Fn(io::Error) -> PublishError + 'a {
    move |source| PublishError::Io { op, path: path.to_owned(), source }
}

pub(crate) fn unsynced(path: &Path) -> impl Fn(io::Error) -> PublishError + '_ {
    move |source| PublishError::Sync { path: path.to_owned(), source }
}

//! A file that appears whole or not at all, once, and whose name survives a power cut.
//!
//! The order is what counts: the content is synced before it gets its name, and the folder is synced before the
//! caller hears of success, because a name is durable only when its folder is. A kill between any two calls leaves
//! either no file of that name or the complete one, and at most a temporary file, which [`sweep_temporaries`] removes.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process;

use sha2::{Digest, Sha256};
use store::{CrashScope, CrashSite};

use crate::tool::ToolError;

/// The crash points between the stages of [`publish`], named by the caller.
#[derive(Clone, Copy, Debug)]
pub struct PublishSites {
    /// The temporary file is written and synced; the name is not there.
    pub written: CrashSite,
    /// The name is there; the temporary name too, and the folder is not synced.
    pub linked: CrashSite,
    /// The name was there before, with the same content; the folder is not synced.
    pub deduplicated: CrashSite,
    /// All is synced; the caller does not know yet.
    pub published: CrashSite,
}

/// How a file came to be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Published {
    /// This call made it.
    New,
    /// It was there already, byte for byte the same.
    AlreadyThere,
}

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

/// A file to be published.
#[derive(Clone, Copy, Debug)]
pub struct Publication<'a> {
    /// The folder; it is made where it is missing.
    pub folder: &'a Path,
    /// The file's name in it.
    pub name: &'a str,
    /// Names the temporary file, `.<key>.<pid>.tmp` in the same folder.
    pub key: &'a str,
    /// What the file holds.
    pub content: &'a [u8],
    /// Other contents that count as published where the file is there already: what earlier programs wrote.
    pub older: &'a [&'a [u8]],
}

/// Puts a file under its name: whole, once, and so that the name survives a power cut.
///
/// # Errors
/// See [`PublishError`]. Nothing half-made is left, whatever fails.
pub fn publish(file: &Publication<'_>, sites: PublishSites, crash: CrashScope<'_>) -> Result<Published, PublishError> {
    let &Publication { folder, name, key, content, older } = file;
    make_folder(folder)?;
    let target = folder.join(name);
    let temporary = Temporary::write(folder, key, content)?;
    crash.point(sites.written);
    let published = match fs::hard_link(&temporary.path, &target) {
        Ok(()) => {
            crash.point(sites.linked);
            Published::New
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            compare(&target, content, older)?;
            crash.point(sites.deduplicated);
            Published::AlreadyThere
        }
        Err(error) => return Err(failed("name", &target)(error)),
    };
    temporary.remove()?;
    sync_folder(folder)?;
    crash.point(sites.published);
    Ok(published)
}

/// Makes `folder` and its parents, so that all their names are durable when it returns.
///
/// A folder that is there already may have been made by a run that died before it synced the parent. So the parent of
/// the deepest folder that exists is synced too, and no folder is made in one whose own name is not yet durable.
///
/// # Errors
/// See [`PublishError`].
pub fn make_folder(folder: &Path) -> Result<(), PublishError> {
    let parent = match folder.parent() {
        None => return Ok(()),
        Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
        Some(parent) => parent,
    };
    if folder.is_dir() {
        return match sync_folder(parent) {
            // Where the parent may not even be read, this program did not make the folder.
            Err(PublishError::Io { source, .. }) if source.kind() == io::ErrorKind::PermissionDenied => Ok(()),
            result => result,
        };
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

/// Removes the temporary files of dead processes for one key. A living writer holds a lock on its file.
///
/// The folder is synced, also where nothing was found: an earlier sweep may have been killed before it could. Once the
/// caller has committed that it has recovered, nobody looks again, and a power cut must not bring the files back.
///
/// # Errors
/// See [`PublishError`].
pub fn sweep_temporaries(folder: &Path, key: &str) -> Result<(), PublishError> {
    let entries = match fs::read_dir(folder) {
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => return Ok(()),
        entries => entries.map_err(failed("list", folder))?,
    };
    for entry in entries {
        let entry = entry.map_err(failed("list", folder))?;
        if entry.file_name().to_str().is_some_and(|name| is_temporary(name, key)) {
            remove_if_dead(&entry.path())?;
        }
    }
    sync_folder(folder)
}

/// Whether `name` is one that a temporary file for `key` has.
#[must_use]
pub fn is_temporary(name: &str, key: &str) -> bool {
    let process = name.strip_prefix('.').and_then(|name| name.strip_prefix(key));
    let process = process.and_then(|name| name.strip_prefix('.')?.strip_suffix(".tmp"));
    process.is_some_and(|pid| !pid.is_empty() && pid.bytes().all(|byte| byte.is_ascii_digit()))
}

fn remove_if_dead(path: &Path) -> Result<(), PublishError> {
    // What is no regular file is not ours: a folder cannot be unlinked, and opening a named pipe would wait for ever.
    let ours = || Ok(fs::symlink_metadata(path)?.is_file());
    let remove = || match File::open(path)?.try_lock() {
        Ok(()) => fs::remove_file(path),
        Err(fs::TryLockError::WouldBlock) => Ok(()),
        Err(fs::TryLockError::Error(error)) => Err(error),
    };
    match ours().and_then(|ours| if ours { remove() } else { Ok(()) }) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed("remove", path)(error)),
        _ => Ok(()),
    }
}

/// A written and synced temporary file; removed when it is dropped, whatever happened in between.
pub(crate) struct Temporary {
    pub(crate) path: PathBuf,
    /// Locked while this process lives, which is how a later run knows that it must not be swept.
    pub(crate) file: File,
}

impl Temporary {
    fn write(folder: &Path, key: &str, content: &[u8]) -> Result<Self, PublishError> {
        let mut temporary = Self::create(folder, key)?;
        temporary.file.write_all(content).map_err(failed("write", &temporary.path))?;
        temporary.file.sync_all().map_err(unsynced(&temporary.path))?;
        Ok(temporary)
    }

    /// An empty one.
    pub(crate) fn create(folder: &Path, key: &str) -> Result<Self, PublishError> {
        let path = folder.join(format!(".{key}.{}.tmp", process::id()));
        // Process ids come again, so a dead namesake may have left one. A living one has the same process id in another
        // container that shares the folder; its file stays, and making ours then fails.
        remove_if_dead(&path)?;
        let file = OpenOptions::new().write(true).create_new(true).open(&path).map_err(failed("create", &path))?;
        let temporary = Self { path, file };
        temporary.file.lock().map_err(failed("lock", &temporary.path))?;
        Ok(temporary)
    }

    fn remove(self) -> Result<(), PublishError> {
        fs::remove_file(&self.path).map_err(failed("remove", &self.path))
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // Gone already after `remove`; after an error, the error is what the caller needs to hear of.
        let _best_effort = fs::remove_file(&self.path);
    }
}

/// Whether what stands under the name is what would be published; if so it is synced, since who wrote it is unknown.
fn compare(target: &Path, content: &[u8], older: &[&[u8]]) -> Result<(), PublishError> {
    let occupied = |why: String| PublishError::Occupied { path: target.to_owned(), why };
    let meta = fs::symlink_metadata(target).map_err(failed("look at", target))?;
    if !meta.is_file() {
        let what = if meta.is_dir() { "a folder" } else { "a link or special file" };
        return Err(occupied(format!("it is {what}")));
    }
    let file = File::open(target).map_err(failed("read", target))?;
    let mut found = Vec::with_capacity(content.len());
    (&file).take(content.len() as u64 + 1).read_to_end(&mut found).map_err(failed("read", target))?;
    if found != content && !older.contains(&found.as_slice()) {
        let there = fs::read(target).map_err(failed("read", target))?;
        return Err(occupied(format!("it has SHA-256 {}, this step's is {}", digest(&there), digest(content))));
    }
    file.sync_all().map_err(unsynced(target))
}

/// Makes the names in `folder` durable.
///
/// # Errors
/// See [`PublishError`].
pub fn sync_folder(folder: &Path) -> Result<(), PublishError> {
    let handle = File::open(folder).map_err(failed("open the folder", folder))?;
    match handle.sync_all() {
        // Some file systems have no such operation for folders, and none of the danger either.
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(()),
        result => result.map_err(unsynced(folder)),
    }
}

/// The SHA-256 in hex, as `sha256sum` prints it.
pub(crate) fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(crate) fn failed<'a>(op: &'static str, path: &'a Path) -> impl Fn(io::Error) -> PublishError + 'a {
    move |source| PublishError::Io { op, path: path.to_owned(), source }
}

pub(crate) fn unsynced(path: &Path) -> impl Fn(io::Error) -> PublishError + '_ {
    move |source| PublishError::Sync { path: path.to_owned(), source }
}

//! A file under a name of its own, on its way to the name that it is meant for.
//!
//! Names are not trusted. In containers every program may be process 1, so that two of them choose the same temporary
//! name in a folder that they share; and a name may lead to another file at the next look. What a process vouches for
//! is the file that its own descriptor holds, so that is what gets the final name.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process;

use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, AtFlags};
use nix::unistd::linkat;

use crate::durable::{PublishError, failed, sync_folder, unsynced};
use crate::regular::open_regular;

/// How many names are tried: the first one is taken only by another process 1, the others are random.
const NAMES: usize = 16;

/// A temporary file; where its name still leads to it, the name is removed when it is dropped.
pub(crate) struct Temporary {
    pub(crate) path: PathBuf,
    /// Locked while this process lives, which is how a later run knows that it must not be swept.
    pub(crate) file: File,
}

impl Temporary {
    /// A written and synced one.
    pub(crate) fn write(folder: &Path, key: &str, content: &[u8]) -> Result<Self, PublishError> {
        let mut temporary = Self::create(folder, key)?;
        temporary.file.write_all(content).map_err(failed("write", &temporary.path))?;
        temporary.file.sync_all().map_err(unsynced(&temporary.path))?;
        Ok(temporary)
    }

    /// An empty one, `.<key>.<process id>.tmp`; where a living process has that name, a random number instead.
    pub(crate) fn create(folder: &Path, key: &str) -> Result<Self, PublishError> {
        let mut number = u64::from(process::id());
        let mut last = None;
        for _ in 0..NAMES {
            let path = folder.join(format!(".{key}.{number}.tmp"));
            match Self::at(&path) {
                Ok(Some(temporary)) => return Ok(temporary),
                Ok(None) => {}
                Err(error) => last = Some((path, error)),
            }
            if last.as_ref().is_some_and(|(_, error)| error.kind() != io::ErrorKind::AlreadyExists) {
                break;
            }
            number = u64::from(rand::random::<u32>());
        }
        let gone = || (folder.to_owned(), io::Error::other("each temporary file was removed at once by somebody else"));
        let (path, error) = last.unwrap_or_else(gone);
        Err(failed("create", &path)(error))
    }

    /// `None` where it was swept before it was locked.
    fn at(path: &Path) -> io::Result<Option<Self>> {
        // Process ids come again, so a dead namesake may have left one.
        remove_if_dead(path)?;
        let file = OpenOptions::new().write(true).create_new(true).open(path)?;
        let temporary = Self { path: path.to_owned(), file };
        temporary.file.lock()?;
        Ok(temporary.has_its_name()?.then_some(temporary))
    }

    /// Whether the name still leads to the file.
    pub(crate) fn has_its_name(&self) -> io::Result<bool> {
        leads_to(&self.path, &self.file.metadata()?)
    }

    /// Gives the file its final name, which must not be taken. False where it was swept, so that there is no file any
    /// more that could be named.
    ///
    /// # Errors
    /// [`io::ErrorKind::AlreadyExists`] where the name is taken.
    pub(crate) fn name(&self, target: &Path) -> io::Result<bool> {
        let descriptor = format!("/proc/self/fd/{}", self.file.as_raw_fd());
        match linkat(AT_FDCWD, descriptor.as_str(), AT_FDCWD, target, AtFlags::AT_SYMLINK_FOLLOW) {
            Ok(()) => Ok(true),
            Err(Errno::EEXIST) => Err(Errno::EEXIST.into()),
            Err(_) if self.file.metadata()?.nlink() == 0 => Ok(false),
            // Not every file system has hard links, and not every container shows /proc.
            Err(Errno::EPERM | Errno::EOPNOTSUPP | Errno::ENOSYS | Errno::EMLINK | Errno::EINVAL | Errno::ENOENT) => {
                self.rename(target, rename_to_free_name)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Gives the file another name instead of its own. False where its own name no longer leads to it.
    pub(crate) fn rename(&self, to: &Path, rename: impl Fn(&Path, &Path) -> io::Result<()>) -> io::Result<bool> {
        if !self.has_its_name()? {
            return Ok(false);
        }
        rename(&self.path, to)?;
        // Everybody who removes a temporary file holds its lock, so this can only be somebody who plays by other rules.
        match leads_to(to, &self.file.metadata()?)? {
            true => Ok(true),
            false => Err(io::Error::other("another process took the temporary file away, and its own got the name")),
        }
    }

    /// Removes the name, where it still leads to the file.
    pub(crate) fn remove(self) -> Result<(), PublishError> {
        self.unlink().map_err(failed("remove", &self.path))
    }

    fn unlink(&self) -> io::Result<()> {
        if self.has_its_name()? { fs::remove_file(&self.path) } else { Ok(()) }
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // Gone already after `remove`; after an error, the error is what the caller needs to hear of.
        let _best_effort = self.unlink();
    }
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn rename_to_free_name(from: &Path, to: &Path) -> io::Result<()> {
    use nix::fcntl::{RenameFlags, renameat2};
    Ok(renameat2(AT_FDCWD, from, AT_FDCWD, to, RenameFlags::RENAME_NOREPLACE)?)
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn rename_to_free_name(_: &Path, _: &Path) -> io::Result<()> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "this file system has no hard links"))
}

fn leads_to(path: &Path, file: &Metadata) -> io::Result<bool> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        found => found.map(|found| (found.dev(), found.ino()) == (file.dev(), file.ino())),
    }
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
            let path = entry.path();
            remove_if_dead(&path).map_err(failed("remove", &path))?;
        }
    }
    sync_folder(folder)
}

/// Whether `name` is one that a temporary file for `key` has.
#[must_use]
pub fn is_temporary(name: &str, key: &str) -> bool {
    let number = name.strip_prefix('.').and_then(|name| name.strip_prefix(key));
    let number = number.and_then(|name| name.strip_prefix('.')?.strip_suffix(".tmp"));
    number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}

fn remove_if_dead(path: &Path) -> io::Result<()> {
    // What is not a regular file is not ours: a folder cannot be unlinked, and a link leads elsewhere.
    let remove = || {
        if !fs::symlink_metadata(path)?.is_file() {
            return Ok(());
        }
        let file = open_regular(path)?;
        match file.try_lock() {
            // Another sweep may have been faster, and the name may be that of a living writer's new file by now.
            Ok(()) if leads_to(path, &file.metadata()?)? => fs::remove_file(path),
            Ok(()) | Err(fs::TryLockError::WouldBlock) => Ok(()),
            Err(fs::TryLockError::Error(error)) => Err(error),
        }
    };
    match remove() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(folder: &Path) -> Temporary {
        Temporary::write(folder, "k", b"whole").unwrap()
    }

    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    #[test]
    fn where_there_are_no_hard_links_a_rename_takes_no_name_that_is_taken() {
        let folder = tempfile::tempdir().unwrap();
        let (free, taken) = (folder.path().join("free"), folder.path().join("taken"));
        fs::write(&taken, "theirs").unwrap();
        let temporary = written(folder.path());
        let error = temporary.rename(&taken, rename_to_free_name).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        assert!(temporary.rename(&free, rename_to_free_name).unwrap());
        temporary.remove().unwrap();
        assert_eq!((fs::read(&free).unwrap(), fs::read(&taken).unwrap()), (b"whole".to_vec(), b"theirs".to_vec()));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }

    #[test]
    fn a_rename_moves_its_own_file_only_and_a_drop_removes_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let temporary = written(folder.path());
        fs::remove_file(&temporary.path).unwrap();
        fs::write(&temporary.path, "theirs").unwrap();
        let target = folder.path().join("target");
        assert!(!temporary.rename(&target, |from, to| fs::rename(from, to)).unwrap());
        assert!(!temporary.name(&target).unwrap(), "a file without a name can get none");
        let path = temporary.path.clone();
        drop(temporary);
        assert_eq!(fs::read_to_string(path).unwrap(), "theirs");
        assert!(!target.exists());
    }

    /// A rule that others break is noticed at the latest when it is too late.
    #[test]
    fn a_file_that_is_exchanged_in_the_middle_of_a_rename_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let temporary = written(folder.path());
        let exchanged = |from: &Path, to: &Path| {
            fs::remove_file(from)?;
            fs::write(to, "theirs")
        };
        let error = temporary.rename(&folder.path().join("t"), exchanged).unwrap_err().to_string();
        assert!(error.contains("its own got the name"), "{error}");
    }
}

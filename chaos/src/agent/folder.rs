//! The one folder below which a run of the lab makes all others. A lock in it says that the lab lives, so that a later
//! run can clear away what a lab that was killed has left, and never what is in use.

use std::fs::File;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::agent::live::{self, Kept};
use crate::agent::stray::{self, PREFIX};
use crate::error::LabError;

/// The lock's name.
const LOCK: &str = "lock";

/// The folder of a run of the lab. Dropped, it is removed and what still runs in it is ended.
pub struct Folder {
    // Dropped in this order: removed, taken off the list of a stop, let go.
    dir: TempDir,
    _kept: Kept,
    /// Held by this process alone: the lock ends with it, however it ends. `None` where the file system knows no locks.
    _lock: Option<File>,
}

impl Folder {
    /// A fresh one below `root`, after what dead labs have left there is removed.
    ///
    /// # Errors
    /// A folder that cannot be made.
    pub fn below(root: &Path) -> Result<Self, LabError> {
        // The kernel tells working folders without symbolic links.
        let root = root.canonicalize().map_err(LabError::io("find", root))?;
        sweep(&root);
        let dir = tempfile::Builder::new().prefix(PREFIX).tempdir_in(&root);
        let dir = dir.map_err(LabError::io("create a folder in", &root))?;
        let kept = live::keep(dir.path());
        let lock = hold(dir.path())?;
        Ok(Self { dir, _kept: kept, _lock: lock })
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.dir.path().to_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        stray::kill_below(self.dir.path());
    }
}

/// Makes the lock and takes it. It gets its name only when it is held: a lab that sweeps at this moment must not find
/// one that nobody holds.
fn hold(dir: &Path) -> Result<Option<File>, LabError> {
    let (unnamed, named) = (dir.join("lock.new"), dir.join(LOCK));
    let file = File::create(&unnamed).map_err(LabError::io("create", &unnamed))?;
    if file.try_lock().is_err() {
        return Ok(None);
    }
    std::fs::rename(&unnamed, &named).map_err(LabError::io("rename", &unnamed))?;
    Ok(Some(file))
}

/// Removes the folders of labs that are dead, and ends what still runs for them. What cannot be removed belongs to
/// somebody else.
fn sweep(root: &Path) {
    for entry in std::fs::read_dir(root).into_iter().flatten().flatten() {
        let is_dir = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if !is_dir || !entry.file_name().to_string_lossy().starts_with(PREFIX) {
            continue;
        }
        let folder = entry.path();
        let Ok(lock) = File::open(folder.join(LOCK)) else { continue };
        if lock.try_lock().is_ok() {
            stray::kill_below(&folder);
            let _ = std::fs::remove_dir_all(&folder);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(root: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(root).expect("read").flatten();
        let mut names: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    /// A lab was killed by SIGKILL, and its folders stayed in memory until the next start of the machine.
    #[test]
    fn what_a_dead_lab_has_left_is_swept_and_what_is_in_use_or_foreign_stays() {
        let root = tempfile::tempdir().expect("dir");
        let dead = root.path().join("chaos-dead");
        for folder in [&dead, &root.path().join("chaos-nobody-knows"), &root.path().join("mine")] {
            std::fs::create_dir_all(folder.join("world")).expect("folder");
        }
        for folder in ["chaos-dead", "mine"] {
            std::fs::write(root.path().join(folder).join(LOCK), "").expect("lock");
        }
        let living = Folder::below(root.path()).expect("a folder");
        let second = Folder::below(root.path()).expect("a folder");
        assert!(living.path().is_dir() && second.path().is_dir());
        assert!(!dead.exists());
        drop((living, second));
        assert_eq!(names(root.path()), ["chaos-nobody-knows", "mine"]);
    }

    #[test]
    fn a_folder_whose_lab_has_ended_without_removing_it_is_swept() {
        let root = tempfile::tempdir().expect("dir");
        let mut left = Folder::below(root.path()).expect("a folder");
        left.dir.disable_cleanup(true);
        drop(left);
        assert_eq!(names(root.path()).len(), 1);
        drop(Folder::below(root.path()).expect("a folder"));
        assert_eq!(names(root.path()), Vec::<String>::new());
    }
}

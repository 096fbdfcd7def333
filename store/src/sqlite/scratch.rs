//! A folder for a copy that is needed for a moment.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use tempfile::TempDir;

/// Such a folder. It is locked for as long as its process lives, which is how a later one knows what it must not sweep.
pub(super) struct Scratch {
    folder: TempDir,
    _held: File,
}

const SUFFIX: &str = ".tmp";
const LOCK: &str = "lock";

impl Scratch {
    /// Makes one in `parent`, which is swept of what killed processes left first. `kind` is what its name begins with.
    pub(super) fn make(parent: &Path, kind: &str) -> io::Result<Self> {
        let prefix = format!(".{kind}-");
        sweep(parent, &prefix);
        let folder = tempfile::Builder::new().prefix(&prefix).suffix(SUFFIX).tempdir_in(parent)?;
        // It gets its name when it is locked: one that is not would be swept.
        let unnamed = folder.path().join("locking");
        let held = File::create(&unnamed)?;
        held.lock()?;
        fs::rename(&unnamed, folder.path().join(LOCK))?;
        Ok(Self { folder, _held: held })
    }

    pub(super) fn path(&self) -> &Path {
        self.folder.path()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // The lock goes last: what is left without one would not be swept.
        for entry in fs::read_dir(self.path()).into_iter().flatten().flatten() {
            if entry.file_name() != LOCK {
                let _best_effort = fs::remove_file(entry.path());
            }
        }
    }
}

/// It is not what was asked for, so what cannot be removed stays.
fn sweep(parent: &Path, prefix: &str) {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    for path in entries.map(|entry| entry.path()) {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let is_one = name.starts_with(prefix) && name.ends_with(SUFFIX);
        if is_one && File::open(path.join(LOCK)).is_ok_and(|lock| lock.try_lock().is_ok()) {
            let _best_effort = fs::remove_dir_all(&path);
        }
    }
}

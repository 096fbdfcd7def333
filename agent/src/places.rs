//! Which file a path means: what a person names as a log or report must be none of the files that something else rests
//! on.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use store::sqlite::Place;

/// What a person named belongs to the database.
#[derive(Debug, thiserror::Error)]
#[error("{option} {path} is {what} of the database", path = .path.display())]
pub(crate) struct NotApart {
    option: String,
    path: PathBuf,
    what: &'static str,
}

/// Whether two paths name the same place, links followed as far as they lead. Nothing needs to be there.
pub(crate) fn same_place(one: &Path, other: &Path) -> bool {
    one == other || resolved(one) == resolved(other)
}

/// The place that a path leads to: absolute, without links in what exists of it, without `.` and `..` in the rest.
pub(crate) fn resolved(path: &Path) -> PathBuf {
    Place::of(path).path().to_owned()
}

/// The folder beside a database where it is noted what the attempts of its tasks start, and what that says on standard
/// error.
pub(crate) fn attempts(db: &Path) -> PathBuf {
    Place::of(db).beside(".attempts")
}

/// A file that a person named, to be compared with many others.
pub(crate) struct Named {
    place: PathBuf,
    inode: Option<(u64, u64)>,
}

impl Named {
    pub(crate) fn new(path: &Path) -> Self {
        Self { place: resolved(path), inode: inode(path) }
    }

    /// Whether this path leads to it, by whatever name or link. Neither needs to be there.
    pub(crate) fn is(&self, path: &Path) -> bool {
        if self.inode.is_some() {
            return inode(path) == self.inode;
        }
        // Where it is not there yet, only its own name or a link may lead to it.
        let may_lead = path.file_name() == self.place.file_name() || path.is_symlink();
        may_lead && resolved(path) == self.place
    }
}

/// Refuses a file that is the database, one of those that stand beside it, or a lock of a task: to write anything else
/// to the first would destroy it, and to replace a lock frees what it guards.
pub(crate) fn check_apart(db: &Path, option: &str, path: &Path) -> Result<(), NotApart> {
    let (db, place, inode) = (Place::of(db), resolved(path), inode(path));
    let is_one = |file: PathBuf| place == file || (inode.is_some() && inode == self::inode(&file));
    let name = place.as_os_str().as_encoded_bytes();
    let is_lock = name.starts_with(db.beside(".").as_os_str().as_encoded_bytes()) && name.ends_with(b".lock");
    if is_lock || is_one(db.path().to_owned()) || Place::SUFFIXES.iter().any(|suffix| is_one(db.beside(suffix))) {
        let what = if is_lock { "a lock" } else { "a file" };
        return Err(NotApart { option: option.to_owned(), path: path.to_owned(), what });
    }
    Ok(())
}

fn inode(path: &Path) -> Option<(u64, u64)> {
    fs::metadata(path).ok().map(|meta| (meta.dev(), meta.ino()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    /// A report was sent through a link to `state.db-wal`, which was not there yet or was: steps that were committed
    /// rolled back, and everything said that all was well.
    #[test]
    fn no_spelling_and_no_link_leads_to_a_file_of_the_database() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        symlink(".", at("here")).unwrap();
        symlink("state.db", at("link.db")).unwrap();
        let check = |db: &str, path: &str| check_apart(&at(db), "--out", &at(path));
        for exists in [false, true] {
            if exists {
                fs::write(at("state.db"), "").unwrap();
                fs::hard_link(at("state.db"), at("hard")).unwrap();
                assert!(check("state.db", "hard").is_err());
                assert!(check("link.db", "state.db-wal").is_err());
            }
            for path in
                ["state.db", "here/state.db", "state.db-wal", "here/state.db-journal", "here/./here/state.db-shm"]
            {
                assert!(check("state.db", path).is_err(), "{path}");
                assert!(check("here/state.db", path).is_err(), "{path}");
            }
            assert!(check("state.db", "here/state.db.t1.lock").unwrap_err().to_string().contains("a lock"));
            assert!(check("link.db", "state.db.t1.lock").unwrap_err().to_string().contains("a lock"));
            for path in ["report.json", "state.db.json", "here/other.db.t1.lock", "state.lock"] {
                assert!(check("state.db", path).is_ok(), "{path}");
            }
        }
    }
}

//! Which file a path means: what a person names as a log or report must be none of the files that something else rests on.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use crate::exit::{Exit, Failure};

/// Whether two paths name the same place, links followed as far as they lead. Nothing needs to be there.
pub(crate) fn same_place(one: &Path, other: &Path) -> bool {
    one == other || resolved(one) == resolved(other)
}

/// The place that a path leads to: absolute, without links in what exists of it, without `.` and `..` in the rest.
pub(crate) fn resolved(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    for there in absolute.ancestors() {
        if let (Ok(real), Ok(rest)) = (there.canonicalize(), absolute.strip_prefix(there)) {
            return normal(&real.join(rest));
        }
    }
    normal(&absolute)
}

/// Without `.`, and with `..` taken back where what stands before it is a plain name.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if normal.file_name().is_some() => {
                normal.pop();
            }
            part => normal.push(part),
        }
    }
    normal
}

/// Refuses a file that is the database, one of those that SQLite keeps beside it, or a lock of a task: to write anything
/// else to the first would destroy it, and to replace a lock frees what it guards.
pub(crate) fn check_apart(db: &Path, option: &str, path: &Path) -> Result<(), Failure> {
    let (place, inode) = (resolved(path), inode(path));
    // SQLite keeps its files beside the database that a link leads to, and the locks stand beside the name that is given.
    for database in [resolved(db), resolved(tools::folder_of(db)).join(db.file_name().unwrap_or_default())] {
        let beside = ["", "-wal", "-shm", "-journal"].map(|suffix| with(&database, suffix));
        let is_one = |file: &PathBuf| place == *file || (inode.is_some() && inode == self::inode(file));
        let name = place.as_os_str().as_encoded_bytes();
        let is_lock = name.starts_with(with(&database, ".").as_os_str().as_encoded_bytes()) && name.ends_with(b".lock");
        if is_lock || beside.iter().any(is_one) {
            let what = if is_lock { "a lock" } else { "a file" };
            return Err(Failure::new(Exit::Usage, format!("{option} {} is {what} of the database", path.display())));
        }
    }
    Ok(())
}

fn with(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

fn inode(path: &Path) -> Option<(u64, u64)> {
    fs::metadata(path).ok().map(|meta| (meta.dev(), meta.ino()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use std::os::unix::fs::symlink;

    #[rstest]
    #[case("report.json", "./report.json", true)]
    #[case("a/../report.json", "report.json", true)]
    #[case("/x/y", "/x//y/", true)]
    #[case("report.json", "reports/report.json", false)]
    #[case("../report.json", "report.json", false)]
    fn paths_are_compared_by_where_they_lead(#[case] one: &str, #[case] other: &str, #[case] same: bool) {
        assert_eq!(same_place(Path::new(one), Path::new(other)), same);
    }

    #[test]
    fn links_are_followed_also_to_what_is_not_there_yet() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        symlink(".", at("here")).unwrap();
        symlink("real.db", at("link.db")).unwrap();
        fs::write(at("real.db"), "").unwrap();
        for (one, other) in [("here/new", "new"), ("here/here/a/b", "a/b"), ("link.db", "here/real.db")] {
            assert!(same_place(&at(one), &at(other)), "{one} {other}");
        }
        assert!(!same_place(&at("here/new"), &at("here/other")));
    }

    /// A report was sent through a link to `state.db-wal`, which was not there yet or was: steps that were committed rolled
    /// back, and everything said that all was well.
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
            assert!(check("link.db", "link.db.t1.lock").is_err());
            for path in ["report.json", "state.db.json", "here/other.db.t1.lock", "state.lock"] {
                assert!(check("state.db", path).is_ok(), "{path}");
            }
        }
    }
}

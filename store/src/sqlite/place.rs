//! Which file is meant: one value, made once from the path that a person gave.
//!
//! SQLite keeps its files beside the file that a link leads to, and the locks stand there too. So a path is followed to
//! its end before anything is looked at, also where nothing is there yet: two names of one database would give a task
//! two locks. Names that cannot be followed (a hard link, a file that is mounted by itself) are refused.

use std::fmt;
use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, CWD, RenameFlags, StatxAttributes, StatxFlags};
use rustix::io::Errno;

use super::beside::{ID, beside, has_frames, has_rollback};
use super::error::io_failed;
use crate::error::{ErrorKind, StoreError};
use crate::files::{self, folder_of};
use crate::limits;

/// A database's file, and what stands beside it. It names a place; nothing needs to be there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    given: PathBuf,
    path: PathBuf,
}

impl Place {
    /// What is appended to the name of a database for the files that lie beside it: SQLite's own, and the one that says
    /// whose WAL it is.
    pub const SUFFIXES: [&str; 4] = ["-wal", "-shm", "-journal", ID];

    /// The place that a path leads to. Where it cannot be followed (links in a circle, a folder that may not be
    /// entered), opening it says why.
    #[must_use]
    pub fn of(given: &Path) -> Self {
        let absolute = std::path::absolute(given).unwrap_or_else(|_| given.to_owned());
        Self { given: given.to_owned(), path: followed(&absolute, MOST_LINKS) }
    }

    /// Absolute, without links, `.` and `..`.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The folder of the database and of everything beside it.
    #[must_use]
    pub fn folder(&self) -> &Path {
        folder_of(&self.path)
    }

    /// `<path><suffix>`.
    #[must_use]
    pub fn beside(&self, suffix: &str) -> PathBuf {
        beside(&self.path, suffix)
    }

    /// Refuses what is not a database's file before SQLite sees it: its own message would only say "unable to open".
    pub(super) fn check_file(&self) -> Result<(), StoreError> {
        let length = self.check_kind()?.map(|meta| meta.len());
        if length.is_none_or(|length| length == 0) {
            self.check_no_orphan()?;
        }
        match length {
            None => Err(StoreError::new(ErrorKind::Missing, format!("there is no database at {self}"))),
            // SQLite takes a file of one byte for an empty one, and would write over it.
            Some(length) if (1..HEADER_BYTES).contains(&length) && !has_rollback(&self.path)? => {
                Err(StoreError::new(ErrorKind::Foreign, format!("{self} is not a SQLite database")))
            }
            Some(_) => Ok(()),
        }
    }

    /// Refuses what is not a plain file under one name, be it the database or beside it: SQLite would wait for a writer
    /// into a pipe. `None` where there is nothing.
    pub(super) fn check_kind(&self) -> Result<Option<fs::Metadata>, StoreError> {
        let path = &self.path;
        let foreign = |why: String| Err(StoreError::new(ErrorKind::Foreign, why));
        for path in Self::SUFFIXES.map(|suffix| self.beside(suffix)) {
            if let Ok(meta) = fs::symlink_metadata(&path)
                && !meta.is_file()
            {
                return foreign(format!("{} is {}, where the database has a file", path.display(), what(&meta)));
            }
        }
        let meta = match fs::metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            meta => meta.map_err(io_failed("open the database", path))?,
        };
        if !meta.is_file() {
            return foreign(format!("{self} is {}, not a file", what(&meta)));
        }
        if meta.nlink() > 1 {
            let why = format!(
                "{self} is one file under {} names (hard links), each of which would get locks and a log of its own; make a \
                 copy and remove the other names",
                meta.nlink()
            );
            return foreign(why);
        }
        if is_mount_point(path)? {
            let why = format!(
                "{self} is mounted by itself, and what SQLite keeps beside it would stay outside; mount its folder instead"
            );
            return foreign(why);
        }
        Ok(Some(meta))
    }

    /// Refuses a WAL without a database: SQLite would delete it, and what was committed last with it.
    fn check_no_orphan(&self) -> Result<(), StoreError> {
        let wal = self.beside("-wal");
        // Who makes a database makes its first page before its WAL, so it is looked for once more.
        if has_frames(&wal)? && !fs::metadata(&self.path).is_ok_and(|meta| meta.len() > 0) {
            let why = format!(
                "there is no database at {self}, and {} holds what was committed last to one that was: put that back \
                 beside it, or remove it; nothing was changed",
                wal.display()
            );
            return Err(StoreError::new(ErrorKind::Foreign, why));
        }
        Ok(())
    }

    /// Refuses a place where SQLite would fail half-way, or with less to say.
    pub(super) fn check_free(&self) -> Result<(), StoreError> {
        /// The longest ending that SQLite adds to the name, for the file of a transaction under way.
        const LONGEST: &str = "-journal";
        let refused = |why: String| StoreError::new(ErrorKind::Refused, format!("cannot make {self}: {why}"));
        let folder = self.folder();
        if !folder.is_dir() {
            return Err(refused(format!("there is no folder {}", folder.display())));
        }
        match self.path.file_name().map(|name| name.len() + LONGEST.len()) {
            Some(length) if length <= limits::FILE_NAME_BYTES => Ok(()),
            _ => Err(refused("the name is too long for the files that go with it".to_owned())),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.given.display().fmt(f)
    }
}

/// Length of the header that every SQLite database begins with.
const HEADER_BYTES: u64 = 100;

/// As many links in a row as Linux follows.
const MOST_LINKS: u32 = 40;

/// Follows links as far as they lead, also where nothing is there.
fn followed(path: &Path, links: u32) -> PathBuf {
    if let Ok(real) = path.canonicalize() {
        return real;
    }
    if links > 0
        && let Ok(target) = fs::read_link(path)
    {
        return followed(&folder_of(path).join(target), links - 1);
    }
    match (path.parent(), path.components().next_back()) {
        (Some(parent), Some(Component::Normal(name))) => followed(parent, links).join(name),
        (Some(parent), Some(Component::ParentDir)) => {
            let mut folder = followed(parent, links);
            folder.pop();
            folder
        }
        _ => path.to_owned(),
    }
}

fn is_mount_point(path: &Path) -> Result<bool, StoreError> {
    match rustix::fs::statx(CWD, path, AtFlags::empty(), StatxFlags::BASIC_STATS) {
        Ok(found) => Ok((found.stx_attributes & found.stx_attributes_mask).contains(StatxAttributes::MOUNT_ROOT)),
        // Where the call does not exist, or may not be made, nobody can tell.
        Err(Errno::NOSYS | Errno::PERM) => Ok(false),
        Err(error) => Err(io_failed("look at", path)(error.into())),
    }
}

/// What stands where a file should be.
pub(super) fn what(meta: &fs::Metadata) -> &'static str {
    let kind = meta.file_type();
    match () {
        () if kind.is_dir() => "a folder",
        () if kind.is_symlink() => "a link",
        () if kind.is_fifo() => "a FIFO",
        () if kind.is_socket() => "a socket",
        () => "a device",
    }
}

/// Gives a file a name that must be free. A link would leave it two names if this process were killed before it removes
/// the first, so that is only for file systems that know nothing better.
pub(super) fn name_free(from: &Path, to: &Path) -> io::Result<()> {
    match rustix::fs::renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        Err(Errno::INVAL | Errno::NOSYS) => fs::hard_link(from, to).and_then(|()| fs::remove_file(from)),
        named => Ok(named?),
    }
}

/// Makes the names in a folder durable; see [`files::sync_folder`].
pub(super) fn sync_folder(folder: &Path) -> Result<(), StoreError> {
    use files::SyncFolderError::{Open, Sync};
    files::sync_folder(folder).map_err(|(Open(error) | Sync(error))| io_failed("sync the folder", folder)(error))
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
    #[case("/x/../../y", "/y", true)]
    #[case("report.json", "reports/report.json", false)]
    #[case("../report.json", "report.json", false)]
    fn paths_are_compared_by_where_they_lead(#[case] one: &str, #[case] other: &str, #[case] same: bool) {
        assert_eq!(Place::of(Path::new(one)).path() == Place::of(Path::new(other)).path(), same);
    }

    /// A link led to a database that was not there yet. Its first runner took the lock beside the link; when the file
    /// was there, a second runner took one beside the file, and both ran.
    #[test]
    fn links_are_followed_also_to_what_is_not_there_yet() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        symlink(".", at("here")).unwrap();
        symlink("here/real.db", at("link.db")).unwrap();
        symlink("link.db", at("chain.db")).unwrap();
        symlink("new folder", at("dangling")).unwrap();
        symlink("circle", at("circle")).unwrap();
        let place = |name: &str| Place::of(&at(name)).path().to_owned();
        for exists in [false, true] {
            if exists {
                fs::write(at("real.db"), "").unwrap();
            }
            let pairs =
                [("here/new", "new"), ("here/here/a/b", "a/b"), ("dangling/x", "new folder/x"), ("here/../x/..", "..")];
            let links = [("link.db", "real.db"), ("chain.db", "real.db"), ("here/chain.db", "here/real.db")];
            for (one, other) in pairs.into_iter().chain(links) {
                assert_eq!(place(one), place(other), "{one} {other}");
            }
            assert_ne!(place("here/new"), place("here/other"));
        }
        assert!(Place::of(&at("circle")).check_file().is_err());
    }
}

//! A file whose content is made anew, whole or not at all: what stood there before stays until the new one is complete.
//!
//! [`crate::publish`] is for a name that only one content may ever have. This is for a name that belongs to its writer,
//! who may find an older content there and puts the right one in its place. The content is written by a function that
//! can make it again, so that it never lies in memory as a whole, however long it is.

use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::Path;

use store::files::folder_of;
use store::{CrashScope, CrashSite};

use crate::durable::{PublishError, failed, make_folder, sync_folder, unsynced};
use crate::publish::Published;
use crate::regular::open_regular;
use crate::temporary::Temporary;

/// The crash points between the stages of [`replace`], named by the caller.
#[derive(Clone, Copy, Debug)]
pub struct ReplaceSites {
    /// The temporary file is written and synced; under the name stands what stood there before.
    pub written: CrashSite,
    /// The new content stands under the name; the folder is not synced.
    pub renamed: CrashSite,
    /// The content was there before; the folder is not synced.
    pub unchanged: CrashSite,
    /// All is synced; the caller does not know yet.
    pub published: CrashSite,
}

/// Writes the content, the same at every call.
pub type Content<'a> = dyn FnMut(&mut dyn Write) -> io::Result<()> + 'a;

/// Makes `content` the content of the file at `path`, which keeps its mode. `key` names the temporary file,
/// `.<key>.<number>.tmp` in the same folder.
///
/// # Errors
/// [`PublishError::Occupied`] where something other than a regular file stands there, which is left alone. Whatever
/// fails, no temporary file is left, and the file has the content it had or the new one.
pub fn replace(
    path: &Path,
    key: &str,
    content: &mut Content<'_>,
    sites: ReplaceSites,
    crash: CrashScope<'_>,
) -> Result<Published, PublishError> {
    let folder = folder_of(path);
    make_folder(folder)?;
    if is_there(path, content)? {
        crash.point(sites.unchanged);
        sync_folder(folder)?;
        crash.point(sites.published);
        return Ok(Published::AlreadyThere);
    }
    let temporary = Temporary::create(folder, key)?;
    let mut writer = BufWriter::with_capacity(BUFFER, &temporary.file);
    content(&mut writer).and_then(|()| writer.flush()).map_err(failed("write", &temporary.path))?;
    drop(writer);
    keep_mode(path, &temporary.file).map_err(failed("set the mode of", &temporary.path))?;
    temporary.file.sync_all().map_err(unsynced(&temporary.path))?;
    crash.point(sites.written);
    if !temporary.rename(path, |from, to| fs::rename(from, to)).map_err(failed("name", path))? {
        let taken = io::Error::other("another process took the temporary file away");
        return Err(failed("name", path)(taken));
    }
    crash.point(sites.renamed);
    sync_folder(folder)?;
    crash.point(sites.published);
    Ok(Published::New)
}

/// Whether the file at `path` has that content; false where there is no file.
///
/// # Errors
/// [`PublishError::Occupied`] where something other than a regular file stands there.
pub fn has_content(path: &Path, content: &mut Content<'_>) -> Result<bool, PublishError> {
    Ok(open_there(path)?.is_some_and(|file| matches!(compare(&file, content), Ok(true))))
}

/// Refuses a place at which [`replace`] would never put a file.
///
/// # Errors
/// [`PublishError::Occupied`] where something other than a regular file stands there, or [`PublishError::Io`] where
/// nothing can be looked up there.
pub fn check_replaceable(path: &Path) -> Result<(), PublishError> {
    open_there(path).map(drop)
}

/// A report that only some may read stays one: the new file gets the mode of the one that it replaces.
fn keep_mode(path: &Path, file: &File) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        found => file.set_permissions(found?.permissions()),
    }
}

const BUFFER: usize = 64 << 10;

/// Whether the file has the content already; if so it is synced, since who wrote it is unknown.
fn is_there(path: &Path, content: &mut Content<'_>) -> Result<bool, PublishError> {
    let Some(file) = open_there(path)? else { return Ok(false) };
    let same = compare(&file, content).map_err(failed("compare", path))?;
    if same {
        file.sync_all().map_err(unsynced(path))?;
    }
    Ok(same)
}

/// `None` where there is no file, or one that may not be read: it can still be replaced.
fn open_there(path: &Path) -> Result<Option<File>, PublishError> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed("look at", path)(error)),
        Ok(meta) if meta.is_file() => {}
        Ok(meta) => {
            let what = if meta.is_dir() { "a folder" } else { "a link or special file" };
            return Err(PublishError::Occupied { path: path.to_owned(), why: format!("it is {what}") });
        }
    }
    match open_regular(path) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(None),
        file => file.map(Some).map_err(failed("read", path)),
    }
}

fn compare(file: &File, content: &mut Content<'_>) -> io::Result<bool> {
    let there = BufReader::with_capacity(BUFFER, file);
    let mut comparing = Comparing { there, piece: Vec::new(), differs: false };
    match content(&mut comparing) {
        Err(_) if comparing.differs => Ok(false),
        Err(error) => Err(error),
        Ok(()) => Ok(comparing.there.read(&mut [0])? == 0),
    }
}

/// Takes what would be written and compares it with what is there; the first difference ends the writing.
struct Comparing<R> {
    there: R,
    piece: Vec<u8>,
    differs: bool,
}

impl<R: Read> Write for Comparing<R> {
    fn write(&mut self, due: &[u8]) -> io::Result<usize> {
        self.piece.resize(due.len(), 0);
        match self.there.read_exact(&mut self.piece) {
            Ok(()) if self.piece == due => return Ok(due.len()),
            Err(error) if error.kind() != io::ErrorKind::UnexpectedEof => return Err(error),
            _ => {}
        }
        self.differs = true;
        Err(io::Error::other("the file has other content"))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use std::sync::{Arc, Mutex};
    use store::Crash;

    const SITES: ReplaceSites = ReplaceSites {
        written: CrashSite("written"),
        renamed: CrashSite("renamed"),
        unchanged: CrashSite("unchanged"),
        published: CrashSite("published"),
    };

    fn pieces(text: &str) -> impl FnMut(&mut dyn Write) -> io::Result<()> {
        move |out| text.split_inclusive(' ').try_for_each(|piece| out.write_all(piece.as_bytes()))
    }

    fn put(path: &Path, text: &str) -> (Result<Published, PublishError>, Vec<String>) {
        let passed = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&passed);
        let crash = Crash::watching(move |point| log.lock().unwrap().push(point.to_string()));
        let result = replace(path, "key", &mut pieces(text), SITES, crash.scope(None));
        let passed = passed.lock().unwrap().clone();
        (result, passed)
    }

    #[rstest]
    #[case(None, Published::New)]
    #[case(Some("a b c"), Published::AlreadyThere)]
    #[case(Some("a b"), Published::New)]
    #[case(Some("a b c d"), Published::New)]
    #[case(Some("a x c"), Published::New)]
    #[case(Some(""), Published::New)]
    fn whatever_stood_there_the_new_content_stands_there_then(#[case] old: Option<&str>, #[case] how: Published) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/er/report.tmp");
        if let Some(old) = old {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, old).unwrap();
        }
        assert_eq!(has_content(&path, &mut pieces("a b c")).unwrap(), how == Published::AlreadyThere);
        let (result, passed) = put(&path, "a b c");
        assert_eq!(result.unwrap(), how);
        let points: &[&str] = match how {
            Published::New => &["written", "renamed", "published"],
            Published::AlreadyThere => &["unchanged", "published"],
        };
        assert_eq!(passed, points);
        assert_eq!(fs::read_to_string(&path).unwrap(), "a b c");
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1, "a temporary file is left");
    }

    /// A report that only its owner could read was replaced by one that everybody could.
    #[test]
    fn a_file_keeps_its_mode_and_a_new_one_has_that_of_any_new_file() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("report");
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode();
        put(&path, "a").0.unwrap();
        fs::write(folder.path().join("any"), "").unwrap();
        assert_eq!(mode(&path), mode(&folder.path().join("any")));
        for given in [0o600, 0o664, 0o444] {
            fs::set_permissions(&path, fs::Permissions::from_mode(given)).unwrap();
            put(&path, &format!("for {given}")).0.unwrap();
            assert_eq!(mode(&path) & 0o7777, given);
        }
    }

    /// Two processes with one process id wrote their reports through one temporary name: the first one's name led to
    /// the second one's half of a report when it was renamed.
    #[test]
    fn half_a_report_of_somebody_else_is_never_given_the_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("report");
        fs::write(&path, "old").unwrap();
        let temporary = folder.path().join(format!(".key.{}.tmp", std::process::id()));
        let theirs = temporary.clone();
        let crash = Crash::watching(move |point| {
            if point.site == "written" {
                fs::remove_file(&theirs).unwrap();
                fs::write(&theirs, "half a rep").unwrap();
            }
        });
        let error = replace(&path, "key", &mut pieces("new"), SITES, crash.scope(None)).unwrap_err().to_string();
        assert!(error.contains("another process took the temporary file away"), "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        assert_eq!(fs::read_to_string(&temporary).unwrap(), "half a rep", "it is theirs");
    }

    #[test]
    fn what_is_no_file_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let error = put(folder.path(), "a").0.unwrap_err().to_string();
        assert!(error.contains("it is a folder"), "{error}");
        let link = folder.path().join("link");
        std::os::unix::fs::symlink("elsewhere", &link).unwrap();
        let error = put(&link, "a").0.unwrap_err().to_string();
        assert!(error.contains("it is a link"), "{error}");
        assert_eq!(fs::read_link(&link).unwrap(), Path::new("elsewhere"));
    }

    #[test]
    fn content_that_cannot_be_made_leaves_the_old_one_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("r");
        fs::write(&path, "old").unwrap();
        let mut calls = 0;
        let mut content = |out: &mut dyn Write| {
            calls += 1;
            // The comparison sees a difference; then, while it is written, the source fails.
            out.write_all(b"new")?;
            Err(io::Error::other("the source is gone"))
        };
        let error = replace(&path, "key", &mut content, SITES, Crash::off().scope(None)).unwrap_err();
        assert!(error.to_string().contains("gone"), "{error}");
        assert_eq!(calls, 2);
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}

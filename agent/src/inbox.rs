//! The planner of the inbox: a folder of notes becomes a plan, one step for each.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::fs::{self, DirEntry};
use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use store::limits;
use store::model::{PlanSource, PlannedStep};

use crate::places::{resolved, same_place};

/// The tool that every step calls.
pub(crate) const TOOL: &str = "count_words";

const EXTENSION: &str = ".txt";

/// Why a folder makes no plan.
#[derive(Debug, thiserror::Error)]
pub(crate) enum InboxError {
    /// The folder cannot be listed.
    #[error("cannot read the inbox {folder}")]
    Folder {
        /// The folder.
        folder: String,
        /// What came of it.
        source: io::Error,
    },
    /// Whether an entry is a note cannot be told.
    #[error("cannot look at the note {path}", path = .path.display())]
    Note {
        /// The entry.
        path: PathBuf,
        /// What came of it.
        source: io::Error,
    },
    /// A name that fits into no plan.
    #[error("inbox {folder}: the name of the note {name} is not UTF-8")]
    Name {
        /// The folder.
        folder: String,
        /// The name, as far as it can be shown.
        name: String,
    },
    /// More notes than a plan may have steps.
    #[error("inbox {folder}: {notes} notes, a plan has at most {most} steps", most = limits::PLAN_STEPS)]
    TooMany {
        /// The folder.
        folder: String,
        /// How many notes there are.
        notes: usize,
    },
}

/// A planned inbox. Only the names are held: a step is made when it is asked for, so that a plan of 100,000 notes takes
/// a few megabytes.
#[derive(Debug)]
pub(crate) struct Inbox {
    folder: String,
    goal: String,
    names: Vec<String>,
    completion: Map<String, Value>,
}

impl Inbox {
    /// Looks at the folder: the regular files (or links to such) named `*.txt`, as a shell would have it without those
    /// that begin with a dot, in the order of the bytes of their names.
    ///
    /// # Errors
    /// See [`InboxError`].
    pub(crate) fn plan(folder: &str, completion: Map<String, Value>) -> Result<Self, InboxError> {
        let unreadable = |source: io::Error| InboxError::Folder { folder: folder.to_owned(), source };
        let mut names = Vec::new();
        for entry in fs::read_dir(folder).map_err(unreadable)? {
            let entry = entry.map_err(unreadable)?;
            if is_note(&entry).map_err(|source| InboxError::Note { path: entry.path(), source })? {
                let name = entry.file_name().into_string();
                names.push(name.map_err(|name| InboxError::Name {
                    folder: folder.to_owned(),
                    name: name.display().to_string(),
                })?);
            }
        }
        if names.len() > limits::PLAN_STEPS {
            return Err(InboxError::TooMany { folder: folder.to_owned(), notes: names.len() });
        }
        names.sort_unstable();
        let goal = format!("Count the words of the notes in {folder}");
        Ok(Self { folder: folder.to_owned(), goal, names, completion })
    }

    /// Whether the file at `path` is one of them.
    pub(crate) fn has_note(&self, path: &Path) -> bool {
        let name = path.file_name().and_then(|name| name.to_str());
        let planned = name.is_some_and(|name| self.names.binary_search_by(|other| other.as_str().cmp(name)).is_ok());
        planned && same_place(tools::folder_of(path), Path::new(&self.folder))
    }

    fn step(&self, name: &str) -> PlannedStep {
        let path = Path::new(&self.folder).join(name).to_string_lossy().into_owned();
        PlannedStep::new(TOOL, Map::from_iter([("path".to_owned(), Value::from(path))]))
    }
}

impl PlanSource for Inbox {
    fn goal(&self) -> &str {
        &self.goal
    }

    fn count(&self) -> u32 {
        u32::try_from(self.names.len()).unwrap_or(u32::MAX)
    }

    fn steps(&self) -> Box<dyn Iterator<Item = Cow<'_, PlannedStep>> + '_> {
        Box::new(self.names.iter().map(|name| Cow::Owned(self.step(name))))
    }

    fn completion(&self) -> Option<&Map<String, Value>> {
        Some(&self.completion)
    }
}

/// Whether a file at `path` would be a note of the inbox, links followed.
pub(crate) fn would_be_note(inbox: &Path, path: &Path) -> bool {
    let place = resolved(path);
    place.file_name().is_some_and(is_notes_name) && place.parent() == Some(&resolved(inbox))
}

fn is_notes_name(name: &OsStr) -> bool {
    let bytes = name.as_encoded_bytes();
    bytes.ends_with(EXTENSION.as_bytes()) && !bytes.starts_with(b".")
}

/// Whether an entry is a note. A link that leads to nothing that can be looked at does not count, and keeps no other
/// from being counted.
fn is_note(entry: &DirEntry) -> io::Result<bool> {
    if !is_notes_name(&entry.file_name()) {
        return Ok(false);
    }
    let kind = entry.file_type()?;
    if !kind.is_symlink() {
        return Ok(kind.is_file());
    }
    match fs::metadata(entry.path()) {
        Ok(meta) => Ok(meta.is_file()),
        Err(error) if leads_nowhere(&error) => Ok(false),
        Err(error) => Err(error),
    }
}

fn leads_nowhere(error: &io::Error) -> bool {
    // What a link that loops gives has no stable name in std.
    error.raw_os_error() == Some(nix::libc::ELOOP)
        || matches!(
            error.kind(),
            io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied | io::ErrorKind::NotADirectory
        )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStrExt;
    use store::model::Plan;

    fn planned(folder: &Path) -> Plan {
        let inbox = Inbox::plan(folder.to_str().unwrap(), Map::new()).unwrap();
        let steps: Vec<_> = inbox.steps().map(Cow::into_owned).collect();
        assert_eq!(steps.len() as u32, inbox.count());
        Plan { goal: inbox.goal().to_owned(), steps }
    }

    #[test]
    fn the_notes_are_the_text_files_in_the_order_of_their_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for name in ["b.txt", "a b.txt", "B.txt", "ä.txt", "10.txt", "9.txt", ".hidden.txt", "c.TXT", "d.txt~", "txt"]
        {
            fs::write(at(name), "").unwrap();
        }
        fs::create_dir(at("folder.txt")).unwrap();
        std::os::unix::fs::symlink("b.txt", at("link.txt")).unwrap();
        std::os::unix::fs::symlink("nowhere", at("lost.txt")).unwrap();
        std::os::unix::fs::symlink("loop.txt", at("loop.txt")).unwrap();
        std::os::unix::fs::symlink("folder.txt", at("to-folder.txt")).unwrap();
        let plan = planned(folder.path());
        let paths: Vec<_> = plan.steps.iter().map(|step| step.input["path"].as_str().unwrap().to_owned()).collect();
        let due = ["10.txt", "9.txt", "B.txt", "a b.txt", "b.txt", "link.txt", "ä.txt"];
        assert_eq!(paths, due.map(|name| at(name).to_str().unwrap().to_owned()));
        assert_eq!(tools::check_plan(&tools::Registry::builtin(), &plan), Ok(()));
    }

    /// An action log was opened on a note: its lines were counted as words of the user.
    #[test]
    fn what_would_be_a_note_is_known_also_through_links() {
        let folder = tempfile::tempdir().unwrap();
        let inbox = folder.path().join("inbox");
        fs::create_dir(&inbox).unwrap();
        fs::write(inbox.join("a.txt"), "").unwrap();
        std::os::unix::fs::symlink("inbox/a.txt", folder.path().join("link.jsonl")).unwrap();
        std::os::unix::fs::symlink("inbox", folder.path().join("box")).unwrap();
        for note in ["inbox/a.txt", "inbox/new.txt", "box/new.txt", "link.jsonl"] {
            assert!(would_be_note(&inbox, &folder.path().join(note)), "{note}");
        }
        for other in ["inbox/log.jsonl", "inbox/.a.txt", "new.txt", "inbox/deep/a.txt"] {
            assert!(!would_be_note(&inbox, &folder.path().join(other)), "{other}");
        }
    }

    #[test]
    fn an_empty_folder_is_a_plan_and_a_missing_one_is_none() {
        let folder = tempfile::tempdir().unwrap();
        assert!(planned(folder.path()).steps.is_empty());
        let missing = folder.path().join("missing");
        let error = Inbox::plan(missing.to_str().unwrap(), Map::new()).unwrap_err();
        assert!(matches!(error, InboxError::Folder { .. }));
        assert!(error.to_string().contains("missing"), "{error}");
    }

    #[test]
    fn a_name_that_fits_into_no_plan_is_refused_and_shown() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(OsStr::from_bytes(b"a\xff.txt")), "").unwrap();
        let error = Inbox::plan(folder.path().to_str().unwrap(), Map::new()).unwrap_err();
        assert!(error.to_string().contains("not UTF-8"), "{error}");
    }
}

//! Where a task is at home: the folder that its relative paths start from, those in its plan as well as the artifacts
//! folder and the report.
//!
//! It is the working directory in which the task was created. It is kept relative to the database's folder where the
//! two lie one in the other, so that a task runs the same from any folder and moves along with its database.

use std::io;
use std::path::{Component, Path, PathBuf};

use store::TaskRow;
use store::model::TaskId;
use store::sqlite::Place;
use tools::{Moved, Programs, World};

use crate::engine::Completion;
use crate::places::{attempts, resolved};

/// Why a task cannot be run from its home.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HomeError {
    /// It is gone.
    #[error("the home of task `{task}`, {path}, is missing; `agent rebind {task} --home DIR` says where it is now",
        path = .path.display())]
    Missing {
        /// The task.
        task: TaskId,
        /// Where it should be.
        path: PathBuf,
    },
    /// Its name cannot be stored.
    #[error("the name of the folder {path} is not UTF-8", path = .path.display())]
    Name {
        /// The folder.
        path: PathBuf,
    },
    /// The working directory is gone.
    #[error("the working directory cannot be found")]
    Here(#[source] io::Error),
}

/// What a run of a task may know of its surroundings.
#[derive(Debug)]
pub(crate) struct Bound {
    /// With the task's home.
    pub(crate) world: World,
    /// The home that is to be stored, of a task that an earlier version created.
    pub(crate) keep: Option<String>,
}

/// Binds a task to its folders. One of an earlier version is at home where it is resumed first.
///
/// # Errors
/// See [`HomeError`].
pub(crate) fn bind(
    world: &World,
    db: &Path,
    row: &TaskRow,
    completion: Option<&Completion>,
) -> Result<Bound, HomeError> {
    let here = here()?;
    let (home, keep) = match &row.home {
        None => (here.clone(), Some(text_of(db, &here)?)),
        Some(text) => (folder_of(db, text), None),
    };
    if !home.is_dir() {
        return Err(HomeError::Missing { task: row.id.clone(), path: home });
    }
    let moved = completion.and_then(Completion::moved).map(|(from, to)| Moved { from: from.into(), to: to.into() });
    // What people read is as short as what they wrote, as long as they stand where they wrote it.
    let home = if home == here { PathBuf::new() } else { home };
    let programs = Programs { folder: attempts(db), ..world.programs.clone() };
    Ok(Bound { world: World { home, moved, programs, database: db.to_owned(), ..world.clone() }, keep })
}

/// The home of a task that is created here, as it is stored.
///
/// # Errors
/// See [`HomeError`].
pub(crate) fn text_of_here(db: &Path) -> Result<String, HomeError> {
    text_of(db, &here()?)
}

fn here() -> Result<PathBuf, HomeError> {
    std::env::current_dir().map(|here| resolved(&here)).map_err(HomeError::Here)
}

/// The folder that a stored home means.
pub(crate) fn folder_of(db: &Path, text: &str) -> PathBuf {
    resolved(&Place::of(db).folder().join(text))
}

/// A folder as the home of a task of this database.
///
/// # Errors
/// Its name cannot be stored.
pub(crate) fn text_of(db: &Path, folder: &Path) -> Result<String, HomeError> {
    let (database, folder) = (Place::of(db), resolved(folder));
    let database = database.folder();
    let text = if let Ok(below) = folder.strip_prefix(database) {
        if below.as_os_str().is_empty() { PathBuf::from(".") } else { below.to_owned() }
    } else if let Ok(depth) = database.strip_prefix(&folder)
        && folder != Path::new("/")
    {
        depth.components().map(|_| Component::ParentDir).collect()
    } else {
        folder.clone()
    };
    text.to_str().map(str::to_owned).ok_or(HomeError::Name { path: folder })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::the_same("/x/y", "/x/y", ".")]
    #[case::below("/x/y", "/x/y/z/ü", "z/ü")]
    #[case::above("/x/y/z", "/x", "../..")]
    #[case::root("/x", "/", "/")]
    #[case::elsewhere("/x/y", "/x/z", "/x/z")]
    #[case::the_root_of_all("/", "/", ".")]
    fn a_home_is_kept_relative_to_the_database_where_one_lies_in_the_other(
        #[case] database: &str,
        #[case] home: &str,
        #[case] text: &str,
    ) {
        let db = Path::new(database).join("state.db");
        assert_eq!(text_of(&db, Path::new(home)).unwrap(), text);
        assert_eq!(folder_of(&db, text), Path::new(home));
    }
}

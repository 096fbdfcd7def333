//! The commands, one file each. A command says what it found on standard output, what it did on standard error.

mod asks;
mod backup;
mod check;
mod completions;
mod create;
mod demo;
mod export;
mod inbox;
mod keeper;
mod list;
mod log;
mod opening;
mod parts;
mod rebind;
mod restore;
mod retry;
mod run;
mod speak;
mod status;
mod stderr;
mod tools;
mod verify;
mod work;

pub(crate) use backup::backup;
pub(crate) use check::check;
pub(crate) use completions::completions;
pub(crate) use create::create;
pub use create::{NewTask, create_with};
pub(crate) use demo::demo;
pub(crate) use export::export;
pub(crate) use inbox::inbox;
pub use inbox::{InboxRequest, inbox_with};
pub(crate) use keeper::keeper;
pub(crate) use list::{list, list_waiting};
pub use log::LogChoice;
pub use parts::Parts;
pub(crate) use rebind::{Moves, rebind};
pub(crate) use restore::restore;
pub(crate) use retry::retry;
pub(crate) use run::run;
pub use run::run_with;
pub use speak::{Says, cancel_with, speak_with};
pub(crate) use speak::{cancel, speak};
pub(crate) use status::status;
pub(crate) use stderr::stderr;
pub(crate) use tools::tools;
pub(crate) use verify::verify;

use std::path::Path;

use ::store::ErrorKind;
use ::store::model::TaskId;
use ::store::sqlite::SqliteReader;

use crate::exit::{Exit, Failure};

/// Says what was done, to people. Where nobody can be told, it is done all the same.
macro_rules! say {
    ($($arg:tt)*) => {{
        use std::io::Write as _;
        let _best_effort = writeln!(anstream::stderr(), "{}", $crate::exit::printable(&format!($($arg)*)));
    }};
}
pub(crate) use say;

/// A number with its noun.
fn counted(number: u32, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

fn task_id(text: &str) -> Result<TaskId, Failure> {
    TaskId::new(text).map_err(|error| Failure::new(Exit::Usage, error.to_string()))
}

fn unknown(db: &Path, task: &TaskId) -> Failure {
    Failure::new(
        Exit::UnknownTask,
        format!("there is no task `{task}` in {}; `agent list` shows what there is", db.display()),
    )
}

/// Opens the database for reading; where there is none, the task is unknown.
fn open_for(db: &Path, task: &TaskId) -> Result<SqliteReader, Failure> {
    SqliteReader::open(db).map_err(|error| match error.kind() {
        ErrorKind::Missing => {
            let why = format!("there is no task `{task}`: {error}; `agent create` makes one");
            Failure::new(Exit::UnknownTask, why)
        }
        _ => error.into(),
    })
}

//! `agent rebind`: folders move, and tasks have to follow.

use std::path::{Path, PathBuf};

use serde_json::Value;
use store::machine::Command;
use store::model::TaskStatus;
use store::sqlite::SqliteStore;
use store::{Reader, TaskRow};
use tools::World;

use super::inbox::check_out;
use super::opening::Opening;
use super::{Parts, say};
use crate::config::Config;
use crate::engine::Completion;
use crate::exit::{Exit, Failure};
use crate::home;
use crate::inbox::would_be_note;
use crate::places::resolved;

/// Where things are now; what is not named stays as it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moves<'a> {
    /// The folder that the task's relative paths start from.
    pub(crate) home: Option<&'a Path>,
    /// The folder of the notes that are not counted yet.
    pub(crate) inbox: Option<&'a Path>,
    /// Where the report goes.
    pub(crate) out: Option<&'a Path>,
}

pub(crate) fn rebind(db: &Path, task: &str, moves: Moves<'_>) -> Result<Exit, Failure> {
    let config = Config::from_env()?;
    let parts = Parts::right();
    let opening = Opening::new(db, task, &config, &parts, None)?;
    // Looked at without a trace first; what counts is what is found under the lock.
    let mut seen = opening.look()?;
    moved(&opening, seen.reader(), moves)?;
    drop(seen);
    let (mut store, work) = opening.open(SqliteStore::open)?;
    let mut session = work.session(store.as_mut())?;
    let command = moved(&opening, session.reader(), moves)?;
    session.apply(&command)?;
    let (task, status) = (&opening.task, session.state().status);
    let next = match status {
        TaskStatus::Failed => "it has failed, `agent retry` gives it new attempts",
        TaskStatus::Done => "it is done",
        TaskStatus::Cancelled => "it is cancelled",
        TaskStatus::Pending | TaskStatus::Running | TaskStatus::Waiting | TaskStatus::InDoubt => "`agent run` runs it",
    };
    say!("task `{task}` is bound to its new place; {next}");
    Ok(Exit::Done)
}

/// What is to be recorded.
fn moved(opening: &Opening<'_>, reader: &mut dyn Reader, moves: Moves<'_>) -> Result<Command, Failure> {
    let usage = |why: String| Failure::new(Exit::Usage, why);
    let row = reader.task(&opening.task)?;
    let row = row.ok_or_else(|| super::unknown(opening.db, &opening.task))?;
    let home = home_of(opening, &row, moves.home)?;
    let text = moves.home.map(|_| home::text_of(opening.db, &home)).transpose()?;
    if moves.inbox.is_none() && moves.out.is_none() {
        return Ok(Command::Rebind { home: text, completion: None });
    }
    let Some(Completion::Report { inbox, out, moved }) = Completion::of(reader, &opening.task)? else {
        return Err(usage(format!(
            "task `{}` has no inbox and no report: `agent inbox` did not make it",
            opening.task
        )));
    };
    let moved = match moves.inbox {
        None => moved,
        Some(folder) if !folder.is_dir() => {
            let why = format!("--inbox {} is not a folder", folder.display());
            return Err(Failure::new(Exit::NoInput, why));
        }
        Some(folder) => Some(text_below(&home, "--inbox", &resolved(folder))?).filter(|text| *text != inbox),
    };
    let out = match moves.out {
        None => out,
        Some(file) => {
            check_out(opening, file)?;
            // Not where a link of that name would lead: such a one is left alone.
            let name = file.file_name().unwrap_or_default();
            text_below(&home, "--out", &resolved(tools::folder_of(file)).join(name))?
        }
    };
    let completion = Completion::Report { inbox, out, moved };
    let world = World { home, ..opening.config.settings.world.clone() };
    completion.check_place(&world)?;
    if would_be_note(&completion.inbox(&world), &completion.out(&world)) {
        return Err(usage("the report would be a note of the inbox, and be counted".to_owned()));
    }
    let completion = Value::Object(completion.to_json()).to_string();
    Ok(Command::Rebind { home: text, completion: Some(completion) })
}

/// The home that the task has then.
fn home_of(opening: &Opening<'_>, row: &TaskRow, moved: Option<&Path>) -> Result<PathBuf, Failure> {
    match (moved, &row.home) {
        (Some(folder), _) if !folder.is_dir() => {
            Err(Failure::new(Exit::NoInput, format!("--home {} is not a folder", folder.display())))
        }
        (Some(folder), _) => Ok(resolved(folder)),
        (None, Some(text)) => Ok(home::folder_of(opening.db, text)),
        // Created by an earlier version: at home wherever it is resumed first.
        (None, None) => Ok(resolved(Path::new("."))),
    }
}

/// A path as the task has it: relative to its home where it lies below that.
fn text_below(home: &Path, option: &str, place: &Path) -> Result<String, Failure> {
    let text = place.strip_prefix(home).unwrap_or(place);
    let text = if text.as_os_str().is_empty() { Path::new(".") } else { text };
    let why = || Failure::new(Exit::Usage, format!("{option} {}: the path is not UTF-8", place.display()));
    text.to_str().map(str::to_owned).ok_or_else(why)
}

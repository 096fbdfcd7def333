//! `agent list`

use std::path::Path;

use serde::Serialize;
use store::model::{TaskState, Timestamp};
use store::sqlite::SqliteReader;
use store::{ErrorKind, Reader, TaskRow, line};

use super::Parts;
use super::asks::{Asks, text_of};
use crate::exit::{Exit, Failure};
use crate::narrate::utc;
use crate::output::{Output, table};

#[derive(Serialize)]
struct List {
    schema: u32,
    tasks: Vec<Task>,
}

#[derive(Serialize)]
struct Task {
    task: String,
    goal: String,
    status: &'static str,
    steps: u32,
    done: u32,
    created_at: f64,
    updated_at: f64,
}

pub(crate) fn list(db: &Path, json: bool) -> Result<Exit, Failure> {
    let mut reader = SqliteReader::open(db)?;
    let (mut tasks, mut unreadable) = (Vec::new(), Vec::new());
    for row in reader.tasks()? {
        // A task that cannot be read hides no other, and is told in the end.
        match row.and_then(|row| Ok((reader.load(&row.id)?, row))) {
            Ok((Some(state), row)) => tasks.push(task(row, state)),
            Ok((None, _)) => {}
            Err(error) if error.kind() == ErrorKind::Corrupt => unreadable.push(error),
            Err(error) => return Err(error.into()),
        }
    }
    let mut out = Output::new();
    if json {
        out.pretty(&List { schema: 1, tasks })?;
    } else {
        let rows = tasks.into_iter().map(|task| {
            let progress = format!("{}/{}", task.done, task.steps);
            vec![task.task, task.status.to_owned(), progress, utc(Timestamp::from_seconds(task.updated_at)), task.goal]
        });
        out.line(&table(&["TASK", "STATUS", "STEPS", "CHANGED", "GOAL"], rows))?;
    }
    out.finish()?;
    match unreadable.len() {
        0 => Ok(Exit::Done),
        1 => Err(unreadable.remove(0).into()),
        more => {
            let why = format!("{more} tasks cannot be read, see `agent verify`; the first: {}", line(&unreadable[0]));
            Err(Failure::new(Exit::BadStore, why))
        }
    }
}

/// What waits for a person.
pub(crate) fn list_waiting(db: &Path, json: bool) -> Result<Exit, Failure> {
    let mut reader = SqliteReader::open(db)?;
    let (mut waiting, mut unreadable) = (Vec::new(), Vec::new());
    for question in reader.questions()? {
        match question.and_then(|found| Asks::of(&mut reader, Parts::right().tools, &found.task.id, &found.step)) {
            Ok(asks) => waiting.push(asks),
            Err(error) if error.kind() == ErrorKind::Corrupt => unreadable.push(error),
            Err(error) => return Err(error.into()),
        }
    }
    let mut out = Output::new();
    if json {
        out.pretty(&Waiting { schema: 1, waiting })?;
    } else {
        let rows = waiting.into_iter().map(|asks| {
            let step = format!("{} ({})", asks.step, asks.tool);
            vec![asks.task, step, asks.kind.to_owned(), text_of(&asks.what), asks.command]
        });
        out.line(&table(&["TASK", "STEP", "WAITS FOR", "WHAT", "COMMAND"], rows))?;
    }
    out.finish()?;
    unreadable.into_iter().next().map_or(Ok(Exit::Done), |error| Err(error.into()))
}

#[derive(Serialize)]
struct Waiting {
    schema: u32,
    waiting: Vec<Asks>,
}

fn task(row: TaskRow, state: TaskState) -> Task {
    Task {
        task: row.id.to_string(),
        goal: row.goal,
        status: row.status.as_str(),
        steps: state.steps,
        done: state.cursor,
        created_at: row.created_at.as_seconds(),
        updated_at: row.updated_at.as_seconds(),
    }
}

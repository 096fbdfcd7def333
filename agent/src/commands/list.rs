//! `agent list`

use std::path::Path;

use serde::Serialize;
use store::Reader;
use store::model::Timestamp;
use store::sqlite::SqliteReader;

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
    let mut tasks = Vec::new();
    for row in reader.tasks()? {
        let Some(state) = reader.load(&row.id)? else { continue };
        tasks.push(Task {
            task: row.id.to_string(),
            goal: row.goal,
            status: row.status.as_str(),
            steps: state.steps,
            done: state.cursor,
            created_at: row.created_at.as_seconds(),
            updated_at: row.updated_at.as_seconds(),
        });
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
    Ok(Exit::Done)
}

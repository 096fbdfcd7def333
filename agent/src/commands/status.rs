//! `agent status`

use std::path::Path;

use serde::Serialize;
use store::{Reader, limits};

use super::{open_for, task_id, unknown};
use crate::exit::{Exit, Failure};
use crate::output::Output;

#[derive(Serialize)]
struct Status {
    task: String,
    goal: String,
    status: &'static str,
    steps: Vec<Step>,
}

#[derive(Serialize)]
struct Step {
    idx: u32,
    tool: String,
    status: &'static str,
    attempts: u32,
}

pub(crate) fn status(db: &Path, task: &str) -> Result<Exit, Failure> {
    let task = task_id(task)?;
    let mut reader = open_for(db, &task)?;
    let row = reader.task(&task)?.ok_or_else(|| unknown(db, &task))?;
    let mut steps: Vec<Step> = Vec::new();
    loop {
        let from = steps.last().map_or(0, |step| step.idx + 1);
        let page = reader.steps(&task, from, limits::JOURNAL_PAGE)?;
        if page.is_empty() {
            break;
        }
        steps.extend(page.into_iter().map(|row| Step {
            idx: row.idx,
            tool: row.tool,
            status: row.state.status.as_str(),
            attempts: row.state.attempts,
        }));
    }
    let mut out = Output::new();
    out.pretty(&Status { task: row.id.to_string(), goal: row.goal, status: row.status.as_str(), steps })?;
    out.finish()?;
    Ok(Exit::Done)
}

//! `agent status`

use std::collections::HashMap;
use std::path::Path;

use serde::{Serialize, Serializer};
use store::model::StepStatus;
use store::{Reader, StepRow, TaskRow, limits};

use super::{open_for, task_id, unknown};
use crate::exit::{Exit, Failure};
use crate::output::Output;

#[derive(Serialize)]
struct Status<'a> {
    task: &'a str,
    goal: &'a str,
    status: &'static str,
    steps: Steps,
}

/// The steps of a task as they are printed, in a few bytes each: a plan may have a million.
#[derive(Default)]
struct Steps {
    tools: Vec<String>,
    numbers: HashMap<String, u32>,
    rows: Vec<Row>,
}

struct Row {
    idx: u32,
    tool: u32,
    attempts: u32,
    status: StepStatus,
}

#[derive(Serialize)]
struct Step<'a> {
    idx: u32,
    tool: &'a str,
    status: &'static str,
    attempts: u32,
}

impl Steps {
    fn push(&mut self, row: StepRow) {
        let tool = match self.numbers.get(&row.tool) {
            Some(&number) => number,
            None => {
                let number = u32::try_from(self.tools.len()).unwrap_or(u32::MAX);
                self.tools.push(row.tool.clone());
                *self.numbers.entry(row.tool).or_insert(number)
            }
        };
        self.rows.push(Row { idx: row.idx, tool, attempts: row.state.attempts, status: row.state.status });
    }
}

impl Serialize for Steps {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.rows.iter().map(|&Row { idx, tool, attempts, status }| {
            let tool = self.tools.get(tool as usize).map_or("", String::as_str);
            Step { idx, tool, status: status.as_str(), attempts }
        }))
    }
}

pub(crate) fn status(db: &Path, task: &str) -> Result<Exit, Failure> {
    let task = task_id(task)?;
    let mut found: Option<(TaskRow, Steps)> = None;
    // Nothing is printed in here: it may be run again from its start.
    open_for(db, &task)?.snapshot(&mut |reader| {
        let mut steps = Steps::default();
        let row = reader.task(&task)?;
        loop {
            let from = steps.rows.last().map_or(0, |step| step.idx + 1);
            let page = reader.steps(&task, from, limits::STEP_PAGE)?;
            if page.is_empty() {
                break;
            }
            page.into_iter().for_each(|row| steps.push(row));
        }
        found = row.map(|row| (row, steps));
        Ok(())
    })?;
    let (row, steps) = found.ok_or_else(|| unknown(db, &task))?;
    let mut out = Output::new();
    out.pretty(&Status { task: row.id.as_str(), goal: &row.goal, status: row.status.as_str(), steps })?;
    out.finish()?;
    Ok(Exit::Done)
}

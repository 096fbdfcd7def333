//! `agent status`

use std::collections::HashMap;
use std::path::Path;

use serde::{Serialize, Serializer};
use serde_json::{Map, Value};
use store::model::{Origin, StepState, StepStatus, Timestamp, Wait};
use store::{Reader, StepRow, TaskRow, limits};

use super::{open_for, task_id, unknown};
use crate::exit::{Exit, Failure};
use crate::output::Output;

#[derive(Serialize)]
struct Status<'a> {
    task: &'a str,
    goal: &'a str,
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    inputs: Option<&'a Map<String, Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    labels: Option<&'a Map<String, Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    plan_sha256: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    language: Option<u32>,
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
    id: Option<Box<str>>,
    attempts: u32,
    status: StepStatus,
    /// Only the step at which the task stands can wait.
    wait: Option<Wait>,
}

#[derive(Serialize)]
struct Step<'a> {
    idx: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    tool: &'a str,
    status: &'static str,
    attempts: u32,
    /// What it waits for.
    #[serde(rename = "for", skip_serializing_if = "Option::is_none")]
    waits_for: Option<&'static str>,
    /// When that is, or when its question expires; seconds since the epoch.
    #[serde(skip_serializing_if = "Option::is_none")]
    until: Option<f64>,
}

impl Steps {
    fn push(&mut self, row: StepRow) {
        let id = row.id().map(Box::from);
        let tool = match self.numbers.get(&row.tool) {
            Some(&number) => number,
            None => {
                let number = u32::try_from(self.tools.len()).unwrap_or(u32::MAX);
                self.tools.push(row.tool.clone());
                *self.numbers.entry(row.tool).or_insert(number)
            }
        };
        let StepState { attempts, status, wait, .. } = row.state;
        let wait = wait.filter(|_| status == StepStatus::Waiting);
        self.rows.push(Row { idx: row.idx, tool, id, attempts, status, wait });
    }
}

impl Serialize for Steps {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.rows.iter().map(|Row { idx, tool, id, attempts, status, wait }| {
            let tool = self.tools.get(*tool as usize).map_or("", String::as_str);
            let (waits_for, until) = match wait {
                None => (None, None),
                Some(Wait::Until(due)) => (Some("time"), Some(*due)),
                Some(Wait::Approval { expires }) => (Some("approval"), *expires),
            };
            let until = until.map(Timestamp::as_seconds);
            let (idx, attempts, id) = (*idx, *attempts, id.as_deref());
            Step { idx, id, tool, status: status.as_str(), attempts, waits_for, until }
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
    let Origin { inputs, labels, digest, language } = &row.origin;
    out.pretty(&Status {
        task: row.id.as_str(),
        goal: &row.goal,
        status: row.status.as_str(),
        inputs: inputs.as_ref(),
        labels: labels.as_ref(),
        plan_sha256: digest.map(|digest| digest.to_string()),
        language: *language,
        steps,
    })?;
    out.finish()?;
    Ok(Exit::Done)
}

//! `agent export`

use std::path::Path;

use serde::Serialize;
use serde_json::{Map, Value};
use store::{Reader, limits};

use super::{open_for, task_id, unknown};
use crate::exit::{Exit, Failure};
use crate::output::Output;

#[derive(Serialize)]
struct Line<'a> {
    seq: i64,
    ts: f64,
    run: &'a str,
    kind: &'a str,
    step: Option<u32>,
    #[serde(flatten)]
    data: &'a Map<String, Value>,
}

pub(crate) fn export(db: &Path, task: &str) -> Result<Exit, Failure> {
    let task = task_id(task)?;
    let mut reader = open_for(db, &task)?;
    if reader.task(&task)?.is_none() {
        return Err(unknown(db, &task));
    }
    let mut out = Output::new();
    let mut after = 0;
    while !out.is_closed() {
        let page = reader.journal(Some(&task), after, limits::JOURNAL_PAGE)?;
        let Some(last) = page.last() else { break };
        after = last.seq;
        for entry in &page {
            let (run, kind, data) = (entry.run.as_str(), entry.kind.as_str(), &entry.data);
            out.json(&Line { seq: entry.seq, ts: entry.ts, run, kind, step: entry.step, data })?;
        }
    }
    out.finish()?;
    Ok(Exit::Done)
}

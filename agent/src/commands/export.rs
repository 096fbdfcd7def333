//! `agent export`

use std::path::Path;

use serde::Serialize;
use store::{Reader, limits};

use super::{open_for, task_id, unknown};
use crate::exit::{Exit, Failure};
use crate::fields::OwnFields;
use crate::output::Output;

#[derive(Serialize)]
struct Line<'a> {
    seq: i64,
    ts: f64,
    run: &'a str,
    kind: &'a str,
    step: Option<u32>,
    #[serde(flatten)]
    own: OwnFields<'a>,
}

/// The names that [`Line`] has for every event.
const TAKEN: [&str; 5] = ["seq", "ts", "run", "kind", "step"];

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
            let (run, kind, own) = (entry.run.as_str(), entry.kind.as_str(), OwnFields::of(&entry.data, &TAKEN));
            out.json(&Line { seq: entry.seq, ts: entry.ts.as_seconds(), run, kind, step: entry.step, own })?;
        }
    }
    out.finish()?;
    Ok(Exit::Done)
}

//! `agent stderr`

use std::path::Path;

use store::Reader;
use store::model::IdempotencyKey;

use super::asks::step_named;
use super::{open_for, task_id, unknown};
use crate::exit::{Exit, Failure, printable};
use crate::output::Output;
use crate::places::attempts;

/// Prints what was kept of the standard error of each attempt of a step; control characters are shown, not obeyed.
pub(crate) fn stderr(db: &Path, task: &str, step: &str) -> Result<Exit, Failure> {
    let task = task_id(task)?;
    let mut reader = open_for(db, &task)?;
    reader.load(&task)?.ok_or_else(|| unknown(db, &task))?;
    let step = step_named(&mut reader, &task, step)?.idx;
    let folder = attempts(db);
    let unreadable =
        |path: &Path, error: std::io::Error| Failure::new(Exit::Io, format!("cannot read {}: {error}", path.display()));
    let key = IdempotencyKey::new(task, step).file_stem();
    let mut out = Output::new();
    for (attempt, path) in tools::stderr_files(&folder, &key).map_err(|error| unreadable(&folder, error))? {
        let said = std::fs::read(&path).map_err(|error| unreadable(&path, error))?;
        out.line(&format!("--- attempt {attempt}"))?;
        for line in String::from_utf8_lossy(&said).lines() {
            out.line(&printable(line))?;
        }
    }
    out.finish()?;
    Ok(Exit::Done)
}

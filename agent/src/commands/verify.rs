//! `agent verify`

use std::path::Path;

use serde::Serialize;
use store::audit::{Finding, audit};
use store::model::{IdempotencyKey, StepStatus, TaskId, TaskStatus};
use store::sqlite::SqliteReader;
use store::{Crash, Reader, StepRow, limits, line};
use tools::{Attempt, Audit, Input, Registry, Stop, ToolContext, World};

use super::{Parts, open_for, task_id, unknown};
use crate::config::Config;
use crate::engine::{Completion, EngineError, Prepared, Stored, stored_output};
use crate::exit::{Exit, Failure};
use crate::home;
use crate::output::Output;

#[derive(Serialize)]
struct Report {
    schema: u32,
    ok: bool,
    tasks: usize,
    findings: Vec<Row>,
    /// Finished steps whose effects nobody can look at.
    not_looked_at: Vec<Unseen>,
}

#[derive(Serialize)]
struct Unseen {
    task: String,
    step: u32,
    tool: String,
}

#[derive(Serialize)]
struct Row {
    task: Option<String>,
    step: Option<u32>,
    what: String,
}

pub(crate) fn verify(db: &Path, task: Option<&str>, json: bool) -> Result<Exit, Failure> {
    let world = Config::from_env()?.settings.world;
    let (mut reader, only) = match task {
        None => (SqliteReader::open(db)?, None),
        Some(task) => {
            let task = task_id(task)?;
            (open_for(db, &task)?, Some(task))
        }
    };
    let mut findings = audit(&mut reader, only.as_ref()).map_err(|error| match (&only, error.kind()) {
        (Some(task), store::ErrorKind::NoTask) => unknown(db, task),
        _ => error.into(),
    })?;
    let tasks = match &only {
        Some(task) => vec![task.clone()],
        // Rows that do not decode are among the findings.
        None => reader.tasks()?.into_iter().flatten().map(|row| row.id).collect(),
    };
    let mut unseen = Vec::new();
    for task in &tasks {
        match audit_world(&mut reader, db, task, &world, &mut unseen) {
            Ok(found) => findings.extend(found),
            // What cannot be read has been found by the audit of the tables, and hides nothing of other tasks.
            Err(error) if error.exit() == Exit::BadStore && !findings.is_empty() => {}
            Err(error) => return Err(error),
        }
    }
    report(findings, unseen, tasks.len(), json)
}

/// Whether what a task did outside the database is still there. Where its home is not, nothing can be said of it.
fn audit_world(
    reader: &mut SqliteReader,
    db: &Path,
    task: &TaskId,
    world: &World,
    unseen: &mut Vec<Unseen>,
) -> Result<Vec<Finding>, Failure> {
    let (row, completion) = (reader.task(task)?, Completion::of(reader, task)?);
    let Some(row) = row else { return Ok(Vec::new()) };
    let world = match home::bind(world, db, &row, completion.as_ref()) {
        Ok(bound) => bound.world,
        Err(error) => return Ok(vec![Finding { task: Some(task.clone()), step: None, what: line(&error) }]),
    };
    let mut findings = audit_effects(reader, task, Parts::right().tools, &world, unseen)?;
    if let Some(completion) = completion.filter(|_| row.status == TaskStatus::Done) {
        let finding = |what| Finding { task: Some(task.clone()), step: None, what };
        findings.extend(completion.audit(reader, task, &world)?.map(finding));
    }
    Ok(findings)
}

/// Asks each tool whether the effects of its finished steps are still there.
fn audit_effects(
    reader: &mut SqliteReader,
    task: &TaskId,
    tools: &Registry,
    world: &World,
    unseen: &mut Vec<Unseen>,
) -> Result<Vec<Finding>, Failure> {
    let mut findings = Vec::new();
    let mut from = 0;
    loop {
        let page = reader.steps(task, from, limits::STEP_PAGE)?;
        let Some(last) = page.last() else { return Ok(findings) };
        from = last.idx + 1;
        for row in page.iter().filter(|row| row.state.status == StepStatus::Done) {
            match audit_effect(reader, task, row, tools, world)? {
                Audit::Sound => {}
                Audit::Differs(what) => findings.push(Finding { task: Some(task.clone()), step: Some(row.idx), what }),
                Audit::NotLookedAt => {
                    unseen.push(Unseen { task: task.to_string(), step: row.idx, tool: row.tool.clone() });
                }
            }
        }
    }
}

fn audit_effect(
    reader: &mut SqliteReader,
    task: &TaskId,
    row: &StepRow,
    tools: &Registry,
    world: &World,
) -> Result<Audit, Failure> {
    if tools.find(&row.tool).is_none() {
        return Ok(Audit::Differs(format!("this program has no tool `{}` to check it with", row.tool)));
    }
    let output = match stored_output(reader, tools, task, row.idx) {
        Ok(output) => output,
        // The audit of the tables has said so already.
        Err(Stored::Unreadable(_) | Stored::Never(_)) => return Ok(Audit::Sound),
        Err(Stored::Wrong(why)) => return Ok(Audit::Differs(format!("step {}: {why}", row.idx))),
    };
    let prepared = match Prepared::read(reader, task, row.clone(), tools, None, &world.secrets) {
        Ok(prepared) => prepared,
        Err(EngineError::Store(_)) => return Ok(Audit::Sound),
        Err(error) => return Ok(Audit::Differs(line(&error))),
    };
    let Prepared { tool, input, outputs, .. } = &prepared;
    let key = IdempotencyKey::new(task.clone(), row.idx);
    let (crash, stop) = (Crash::off(), Stop::default());
    let attempt = Attempt::first(tool.effect(input));
    let crash = crash.scope(Some(row.idx));
    let ctx = ToolContext { key: &key, world, outputs, crash, stop: &stop, attempt };
    Ok(tool.audit(&ctx, Input(input), &output))
}

fn report(findings: Vec<Finding>, unseen: Vec<Unseen>, tasks: usize, json: bool) -> Result<Exit, Failure> {
    let exit = if findings.is_empty() { Exit::Done } else { Exit::Findings };
    let mut out = Output::new();
    if json {
        let rows = findings.into_iter().map(|finding| Row {
            task: finding.task.map(|task| task.to_string()),
            step: finding.step,
            what: finding.what,
        });
        let (ok, findings) = (exit == Exit::Done, rows.collect());
        out.pretty(&Report { schema: 1, ok, tasks, findings, not_looked_at: unseen })?;
        out.finish()?;
        return Ok(exit);
    }
    if findings.is_empty() {
        out.line(&format!("{tasks} task{}: database, journal and artifacts agree", if tasks == 1 { "" } else { "s" }))?;
    } else {
        for finding in findings {
            let place = match (&finding.task, finding.step) {
                (None, _) => "database".to_owned(),
                (Some(task), None) => format!("task `{task}`"),
                (Some(task), Some(step)) => format!("task `{task}`, step {step}"),
            };
            out.line(&format!("{place}: {}", finding.what))?;
        }
    }
    for Unseen { task, step, tool } in unseen {
        out.line(&format!("not looked at: task `{task}`, step {step}: {tool} cannot look at its effect"))?;
    }
    out.finish()?;
    Ok(exit)
}

//! `agent resolve`, `agent approve`, `agent reject`, `agent cancel`: what a person says. None of them is a run.

use std::path::Path;
use std::time::Instant;

use serde_json::{Map, Value};
use store::machine::{Command, Refused, decide};
use store::model::{RunId, TaskState, Word};
use store::sqlite::SqliteStore;
use store::{Clock as _, ErrorKind, Reader, SessionError, StepRow, Store, SystemClock, TaskSession, limits};
use tools::{Pause, Stop};

use super::asks::{shown, step_named, text_of};
use super::opening::Opening;
use super::work::Work;
use super::{Parts, say};
use crate::config::{self, Config};
use crate::engine::{goes_on, said};
use crate::exit::{Exit, Failure};
use crate::language;
use crate::narrate::sentence;

/// What is said of a step.
#[derive(Clone, Copy, Debug)]
pub enum Says<'a> {
    /// Its effect has happened, with this output as JSON.
    Happened(Option<&'a str>),
    /// Its effect has not happened, and will not.
    Absent,
    /// It is given up.
    Abandon,
    /// Its question is answered with this JSON, or with yes.
    Approve(Option<&'a str>),
    /// Its question is answered with no.
    Reject,
}

/// Says it, and is heard once.
///
/// # Errors
/// As the commands: what went wrong, for `main` to print.
pub fn speak_with(
    db: &Path,
    task: &str,
    step: &str,
    says: Says<'_>,
    why: Option<&str>,
    config: &Config,
    parts: &Parts<'_>,
) -> Result<Exit, Failure> {
    let opening = Opening::new(db, task, config, parts, None)?;
    let mut seen = opening.look()?;
    let row = step_named(seen.reader(), &opening.task, step)?;
    let output = output_of(says, &row, parts)?;
    check_answer(says, &row, &opening, seen.reader())?;
    let word = |row: &StepRow| command(says, row, why);
    // What counts is what is found under the lock; but who comes too late is told so without one.
    if let Err(refused) = decide(&seen.state, &word(&row)?, SystemClock.now()) {
        return Err(too_late(&opening, seen.reader(), row.idx, &refused));
    }
    drop(seen);
    let (mut store, work) = opening.open(SqliteStore::open)?;
    let mut session = patiently(store.as_mut(), &work)?;
    let row = step_named(session.reader(), &opening.task, step)?;
    let command = word(&row)?;
    let heard = match output {
        Some(output) => session.apply_with(&command, Value::Object(output).to_string(), &mut |_| false),
        None => session.apply(&command),
    };
    match heard {
        Ok(_) => {
            told(&opening, row.idx, says, session.state());
            Ok(Exit::Done)
        }
        Err(SessionError::Refused(refused)) => Err(too_late(&opening, session.reader(), row.idx, &refused)),
        Err(SessionError::Store(error)) => Err(error.into()),
    }
}

/// See [`speak_with`].
pub(crate) fn speak(db: &Path, task: &str, step: &str, says: Says<'_>, why: Option<&str>) -> Result<Exit, Failure> {
    speak_with(db, task, step, says, why, &Config::from_env()?, &Parts::right())
}

/// Ends the task.
///
/// # Errors
/// As the command.
pub fn cancel_with(
    db: &Path,
    task: &str,
    why: Option<&str>,
    config: &Config,
    parts: &Parts<'_>,
) -> Result<Exit, Failure> {
    let opening = Opening::new(db, task, config, parts, None)?;
    let command = Command::Cancel { by: config::person(), why: why.map(str::to_owned) };
    let refused = |refused: &Refused| Failure::new(Exit::Refused, format!("task `{}`: {refused}", opening.task));
    decide(&opening.look()?.state, &command, SystemClock.now()).map_err(|why| refused(&why))?;
    let (mut store, work) = opening.open(SqliteStore::open)?;
    let mut session = patiently(store.as_mut(), &work)?;
    let state = session.state();
    decide(&state, &command, SystemClock.now()).map_err(|why| refused(&why))?;
    if state.running().is_some() {
        // What a dead attempt has left may still act.
        work.cancel(session, config::person(), why.map(str::to_owned))?;
    } else {
        session.apply(&command)?;
    }
    say!("task `{}` is cancelled", opening.task);
    Ok(Exit::Done)
}

/// See [`cancel_with`].
pub(crate) fn cancel(db: &Path, task: &str, why: Option<&str>) -> Result<Exit, Failure> {
    cancel_with(db, task, why, &Config::from_env()?, &Parts::right())
}

/// Takes the lease, and waits for whoever has it: a run that is at work ends, or another person's command does.
fn patiently<'s>(store: &'s mut dyn Store, work: &Work<'_>) -> Result<TaskSession<'s>, Failure> {
    let (task, run, start) = (&work.opening.task, RunId::random(), Instant::now());
    let lease = loop {
        match store.acquire(task, &run) {
            Err(error) if error.kind() == ErrorKind::Held && start.elapsed() < limits::LOCK_WAIT => {
                Stop::default().sleep(limits::LOCK_LOOK);
                if work.signals.stop.asked() {
                    return Err(error.into());
                }
            }
            held => break held?,
        }
    };
    Ok(TaskSession::under(store, &SystemClock, lease)?)
}

fn command(says: Says<'_>, row: &StepRow, why: Option<&str>) -> Result<Command, Failure> {
    let (step, goes_on, by, why) = (row.idx, goes_on(row), config::person(), why.map(str::to_owned));
    let word = match says {
        Says::Happened(_) => Word::Happened,
        Says::Absent => Word::Absent,
        Says::Abandon => Word::Abandon,
        Says::Approve(_) | Says::Reject => {
            let answer = match says {
                Says::Approve(Some(answer)) => Some(json("--answer", answer)?.to_string()),
                Says::Approve(None) => Some("true".to_owned()),
                _ => None,
            };
            let shown = row.state.intent.map(|intent| intent.digest);
            return Ok(Command::Answer { step, answer, by, why, shown, goes_on });
        }
    };
    Ok(Command::Resolve { step, word, by, why, goes_on })
}

fn json(option: &str, text: &str) -> Result<Value, Failure> {
    let read = store::model::codec::value_from_json(text);
    read.map_err(|why| Failure::new(Exit::Usage, format!("{option} {text}: {why}")))
}

/// The output of a step whose effect has happened: as it is given, and as its tool would have given it.
fn output_of(says: Says<'_>, row: &StepRow, parts: &Parts<'_>) -> Result<Option<Map<String, Value>>, Failure> {
    let output = match says {
        Says::Happened(text) => json("--happened", text.unwrap_or("{}"))?,
        _ => return Ok(None),
    };
    let usage = |why: String| Failure::new(Exit::Usage, format!("--happened {output}: {why}"));
    let Value::Object(output) = &output else { return Err(usage("an output is a JSON object".to_owned())) };
    if let Some(tool) = parts.tools.find(&row.tool) {
        tools::check_output(tool.spec(), output).map_err(usage)?;
    }
    Ok(Some(output.clone()))
}

/// Whether an answer is what the question asks for.
fn check_answer(says: Says<'_>, row: &StepRow, opening: &Opening<'_>, reader: &mut dyn Reader) -> Result<(), Failure> {
    let Says::Approve(answer) = says else { return Ok(()) };
    let Some(Pause::Approval { schema: Some(schema), .. }) = shown(reader, opening.parts.tools, &opening.task, row)?
    else {
        return Ok(());
    };
    let answer = answer.map_or(Ok(Value::Bool(true)), |answer| json("--answer", answer))?;
    language::fits(&schema, &answer).map_err(|why| Failure::new(Exit::Usage, format!("--answer {answer} {why}")))
}

/// Why it cannot be said now, and what was said first.
fn too_late(opening: &Opening<'_>, reader: &mut dyn Reader, step: u32, refused: &Refused) -> Failure {
    let task = &opening.task;
    let first = match said(reader, task, step) {
        Ok(said) => said.word.map_or(String::new(), |entry| format!("; {}", sentence(&entry))),
        Err(error) => return error.into(),
    };
    Failure::new(Exit::Refused, format!("task `{task}`, step {step}: {refused}{first}"))
}

fn told(opening: &Opening<'_>, step: u32, says: Says<'_>, after: TaskState) {
    let task = &opening.task;
    let heard = match says {
        Says::Happened(_) => "is done".to_owned(),
        Says::Absent => "will be tried again".to_owned(),
        Says::Abandon => "is given up".to_owned(),
        Says::Approve(answer) => {
            format!("is answered with {}", answer.map_or_else(|| "true".to_owned(), |text| text_of(&Value::from(text))))
        }
        Says::Reject => "is refused".to_owned(),
    };
    let next = if after.status.is_over() {
        format!("the task has {}", after.status)
    } else {
        format!("`agent run {task}` goes on")
    };
    say!("step {step} of task `{task}` {heard}; {next}");
}

//! `agent inbox`

use std::path::Path;
use std::time::Duration;

use store::model::{RunId, TaskId};
use store::sqlite::{SqliteReader, SqliteStore};
use store::{Clock, ErrorKind, NewTask, Reader, SystemClock, TaskSession};

use super::work::{Log, LogChoice, Work, check_ahead};
use super::{Parts, say, task_id};
use crate::arm::{self, Course};
use crate::completion::{self, Completion};
use crate::config::Config;
use crate::exit::{Exit, Failure};
use crate::inbox::{self, Inbox};
use crate::places::{check_apart, same_place};
use crate::signals::Stop;

/// What was asked for.
#[derive(Clone, Copy, Debug)]
pub struct InboxRequest<'a> {
    /// The task's id.
    pub task: &'a str,
    /// The folder of the notes.
    pub inbox: &'a Path,
    /// Where the report goes.
    pub out: &'a Path,
    /// The action log.
    pub log: LogChoice<'a>,
}

pub(crate) fn inbox(db: &Path, request: InboxRequest<'_>, delay: Option<Duration>) -> Result<Exit, Failure> {
    let mut config = Config::from_env()?;
    config.step_delay = delay.unwrap_or(config.step_delay);
    inbox_with(db, request, &config, &Parts::RIGHT)
}

/// `agent inbox` with these settings and parts.
///
/// # Errors
/// As the command: what went wrong, for `main` to print.
pub fn inbox_with(db: &Path, request: InboxRequest<'_>, config: &Config, parts: &Parts<'_>) -> Result<Exit, Failure> {
    let task = task_id(request.task)?;
    let wanted = wanted(db, &task, &request)?;
    // The plan is made, and all that is there is looked at, before anything is changed.
    let plan = match look(db, &task, config, &wanted)? {
        Found::Task => None,
        Found::Nothing => Some(plan(&wanted, config)?),
    };
    let stop = Stop::on_signals()?;
    let crash = arm::arm(config)?;
    let run = RunId::random();
    let log = Log::open(Some(request.log), &task, &run, &crash, parts.log)?;
    let work = Work { task: &task, run: &run, config, crash: &crash, stop: &stop, parts, log };
    let Some(plan) = plan else {
        let mut store = (parts.store)(SqliteStore::open(db, crash.clone())?, &crash);
        return work.take_up(store.as_mut());
    };
    let mut store = (parts.store)(SqliteStore::open_or_create(db, crash.clone())?, &crash);
    // Created under its lock: who is refused because another process was faster has not made the task either.
    let new = NewTask { id: &task, plan: &plan, run: &run, at: SystemClock.now() };
    match TaskSession::create(store.as_mut(), &SystemClock, &new) {
        Err(error) if error.kind() == ErrorKind::Exists => {}
        session => return work.carry_on(session?),
    }
    check_same(&task, Completion::of(store.as_mut(), &task)?.as_ref(), &wanted)?;
    work.take_up(store.as_mut())
}

/// The completion that the request means, once its paths make sense together.
fn wanted(db: &Path, task: &TaskId, request: &InboxRequest<'_>) -> Result<Completion, Failure> {
    let usage = |why: String| Failure::new(Exit::Usage, why);
    let text = |option: &str, path: &Path| match path.to_str() {
        Some(text) => Ok(text.to_owned()),
        None => Err(usage(format!("{option} {}: the path is not UTF-8", path.display()))),
    };
    let out = request.out;
    check_apart(db, "--log", request.log.path)?;
    check_apart(db, "--out", out)?;
    let Some(name) = out.file_name() else {
        return Err(usage(format!("--out {} names no file", out.display())));
    };
    if out.is_dir() {
        return Err(usage(format!("--out {} is a folder, the report is a file", out.display())));
    }
    if name.to_str().is_some_and(|name| tools::is_temporary(name, &completion::temporary_key(task))) {
        return Err(usage(format!("--out {}: temporary files of this task have such names", out.display())));
    }
    let wanted = Completion::Report { inbox: text("--inbox", request.inbox)?, out: text("--out", out)? };
    wanted.check_log(request.log.path)?;
    wanted.check_place()?;
    Ok(wanted)
}

enum Found {
    Nothing,
    Task,
}

/// Whether the task is there, and is the one that is meant.
fn look(db: &Path, task: &TaskId, config: &Config, wanted: &Completion) -> Result<Found, Failure> {
    let mut reader = match SqliteReader::open(db) {
        Err(error) if error.kind() == ErrorKind::Missing => return Ok(Found::Nothing),
        reader => reader?,
    };
    let Some(state) = reader.load(task)? else { return Ok(Found::Nothing) };
    let stored = check_ahead(&mut reader, task, state)?;
    check_same(task, stored.as_ref(), wanted)?;
    if let Some(point) = &config.crash_at {
        arm::check(point, Course { steps: state.steps, log: true, completion: true }, |step| {
            Ok(reader.steps(task, step, 1)?.pop().map(|row| row.tool).unwrap_or_default())
        })?;
    }
    Ok(Found::Task)
}

/// The plan is frozen with the task, and where its report goes too: another folder or file is a slip, or another task.
fn check_same(task: &TaskId, stored: Option<&Completion>, wanted: &Completion) -> Result<(), Failure> {
    let usage = |why: String| Err(Failure::new(Exit::Usage, why));
    let Completion::Report { inbox, out } = wanted;
    match stored {
        None => usage(format!("task `{task}` was not made by `agent inbox`; `agent run` runs it")),
        Some(Completion::Report { inbox: of, .. }) if !same_place(Path::new(of), Path::new(inbox)) => {
            usage(format!("task `{task}` is about the inbox {of}, not {inbox}: give it, or take another task id"))
        }
        Some(Completion::Report { out: to, .. }) if !same_place(Path::new(to), Path::new(out)) => usage(format!(
            "task `{task}` has its report at {to}, not {out}: give that as --out, or take another task id"
        )),
        Some(_) => Ok(()),
    }
}

fn plan(wanted: &Completion, config: &Config) -> Result<Inbox, Failure> {
    let Completion::Report { inbox, out } = wanted;
    let plan = Inbox::plan(inbox, out)?;
    if plan.has_note(Path::new(out)) {
        return Err(Failure::new(Exit::Usage, format!("--out {out} is a note, the report would replace it")));
    }
    if let Some(point) = &config.crash_at {
        let course = Course { steps: plan.len(), log: true, completion: true };
        arm::check(point, course, |_| Ok(inbox::TOOL.to_owned()))?;
    }
    if plan.len() == 0 {
        say!("the inbox {inbox} is empty: there is no *.txt file in it, and the report will be an empty list");
    }
    Ok(plan)
}

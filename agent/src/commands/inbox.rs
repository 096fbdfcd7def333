//! `agent inbox`

use std::path::Path;
use std::time::Duration;

use store::model::TaskId;
use store::sqlite::SqliteStore;
use store::{Clock, ErrorKind, NewTask, SystemClock, TaskSession};

use super::opening::Opening;
use super::work::LogChoice;
use super::{Parts, say};
use crate::config::Config;
use crate::engine::{Completion, temporary_key};
use crate::exit::{Exit, Failure};
use crate::inbox::{self, Inbox};
use crate::places::{check_apart, same_place};

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

pub(crate) fn inbox(
    db: &Path,
    request: InboxRequest<'_>,
    delay: Option<Duration>,
    grace: Option<Duration>,
) -> Result<Exit, Failure> {
    let mut config = Config::from_env()?;
    config.grace = grace.unwrap_or(config.grace);
    config.settings.step_delay = delay.unwrap_or(config.settings.step_delay);
    inbox_with(db, request, &config, &Parts::RIGHT)
}

/// `agent inbox` with these settings and parts.
///
/// # Errors
/// As the command: what went wrong, for `main` to print.
pub fn inbox_with(db: &Path, request: InboxRequest<'_>, config: &Config, parts: &Parts<'_>) -> Result<Exit, Failure> {
    let opening = Opening::new(db, request.task, config, parts, Some(request.log))?;
    let wanted = wanted(&opening, &request)?;
    // The plan is made, and all that is there is looked at, before anything is changed.
    let plan = match opening.look() {
        Ok(seen) => {
            check_same(&opening.task, seen.completion.as_ref(), &wanted)?;
            None
        }
        Err(unknown) if unknown.exit() == Exit::UnknownTask => Some(plan(&opening, &wanted)?),
        Err(failure) => return Err(failure),
    };
    let Some(plan) = plan else {
        let (mut store, work) = opening.open(SqliteStore::open)?;
        return work.take_up(store.as_mut());
    };
    let (mut store, work) = opening.open(SqliteStore::open_or_create)?;
    // Created under its lock: who is refused because another process was faster has not made the task either.
    let new = NewTask { id: &opening.task, plan: &plan, run: &work.run, at: SystemClock.now(), home: None };
    match TaskSession::create(store.as_mut(), &SystemClock, &new) {
        Err(error) if error.kind() == ErrorKind::Exists => {}
        session => return work.carry_on(session?),
    }
    check_same(&opening.task, Completion::of(store.as_mut(), &opening.task)?.as_ref(), &wanted)?;
    work.take_up(store.as_mut())
}

/// The completion that the request means, once its paths make sense together.
fn wanted(opening: &Opening<'_>, request: &InboxRequest<'_>) -> Result<Completion, Failure> {
    let usage = |why: String| Failure::new(Exit::Usage, why);
    let text = |option: &str, path: &Path| match path.to_str() {
        Some(text) => Ok(text.to_owned()),
        None => Err(usage(format!("{option} {}: the path is not UTF-8", path.display()))),
    };
    let out = request.out;
    check_apart(opening.db, "--out", out)?;
    let Some(name) = out.file_name() else {
        return Err(usage(format!("--out {} names no file", out.display())));
    };
    if out.is_dir() {
        return Err(usage(format!("--out {} is a folder, the report is a file", out.display())));
    }
    if name.to_str().is_some_and(|name| tools::is_temporary(name, &temporary_key(&opening.task))) {
        return Err(usage(format!("--out {}: temporary files of this task have such names", out.display())));
    }
    let wanted = Completion::Report { inbox: text("--inbox", request.inbox)?, out: text("--out", out)? };
    check_log(&wanted, request.log.path)?;
    wanted.check_place()?;
    Ok(wanted)
}

/// Refuses an action log that the report would replace, or that is a note and would be changed before it is counted.
pub(super) fn check_log(completion: &Completion, log: &Path) -> Result<(), Failure> {
    let Completion::Report { inbox, out } = completion;
    let usage = |why: &str| Err(Failure::new(Exit::Usage, format!("--log {} {why}", log.display())));
    if same_place(log, Path::new(out)) {
        return usage("is the report of the task, which would replace it");
    }
    if inbox::would_be_note(Path::new(inbox), log) {
        return usage("would be a note of the inbox, and be counted");
    }
    Ok(())
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

fn plan(opening: &Opening<'_>, wanted: &Completion) -> Result<Inbox, Failure> {
    let Completion::Report { inbox, out } = wanted;
    let plan = Inbox::plan(inbox, wanted.to_json())?;
    if plan.has_note(Path::new(out)) {
        return Err(Failure::new(Exit::Usage, format!("--out {out} is a note, the report would replace it")));
    }
    opening.check_crash_point(plan.len(), true, |_| Ok(inbox::TOOL.to_owned()))?;
    if plan.len() == 0 {
        say!("the inbox {inbox} is empty: there is no *.txt file in it, and the report will be an empty list");
    }
    Ok(plan)
}

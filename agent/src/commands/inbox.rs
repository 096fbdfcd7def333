//! `agent inbox`

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use store::model::{PlanSource as _, TaskId};
use store::sqlite::SqliteStore;
use store::{ErrorKind, SystemClock, TaskSession};
use tools::World;

use super::log::LogChoice;
use super::opening::{Opening, check_log_apart};
use super::{Parts, say};
use crate::config::Config;
use crate::engine::{Completion, temporary_key};
use crate::exit::{Exit, Failure};
use crate::home::text_of_here;
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
    inbox_with(db, request, &config, &Parts::right())
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
        Ok(mut seen) => {
            let world = opening.bind_seen(&mut seen)?.world;
            check_same(&opening.task, seen.completion.as_ref(), &world, &wanted)?;
            opening.check_ahead(&mut seen)?;
            None
        }
        Err(unknown) if unknown.exit() == Exit::UnknownTask => Some(plan(&opening, &wanted)?),
        Err(failure) => return Err(failure),
    };
    let Some(plan) = plan else {
        let (mut store, work) = opening.open(SqliteStore::open)?;
        return work.take_up(store.as_mut());
    };
    let home = text_of_here(db)?;
    let (mut store, work) = opening.open(SqliteStore::open_or_create)?;
    // Created under its lock: who is refused because another process was faster has not made the task either.
    let (task, run) = (&opening.task, &work.run);
    let created = TaskSession::create(store.as_mut(), &SystemClock, task, run, Arc::new(plan), Some(home));
    match created {
        Err(error) if error.kind() == ErrorKind::Exists => {}
        session => return work.carry_on(session?),
    }
    let completion = Completion::of(store.as_mut(), &opening.task)?;
    let world = opening.bind(store.as_mut(), completion.as_ref())?.world;
    check_same(&opening.task, completion.as_ref(), &world, &wanted)?;
    work.take_up(store.as_mut())
}

/// The completion that the request means, once its paths make sense together. They start from the working directory,
/// which is the home of a task that is created here.
fn wanted(opening: &Opening<'_>, request: &InboxRequest<'_>) -> Result<Completion, Failure> {
    let text = |option: &str, path: &Path| match path.to_str() {
        Some(text) => Ok(text.to_owned()),
        None => Err(Failure::new(Exit::Usage, format!("{option} {}: the path is not UTF-8", path.display()))),
    };
    check_out(opening, request.out)?;
    let (inbox, out) = (text("--inbox", request.inbox)?, text("--out", request.out)?);
    let wanted = Completion::Report { inbox, out, moved: None };
    let here = &opening.config.settings.world;
    check_log_apart(&wanted, here, request.log.path)?;
    wanted.check_place(here)?;
    Ok(wanted)
}

/// Refuses what cannot be a report.
pub(super) fn check_out(opening: &Opening<'_>, out: &Path) -> Result<(), Failure> {
    check_apart(opening.db, "--out", out)?;
    let usage = |why: &str| Err(Failure::new(Exit::Usage, format!("--out {} {why}", out.display())));
    let Some(name) = out.file_name() else { return usage("names no file") };
    if out.is_dir() {
        return usage("is a folder, the report is a file");
    }
    if name.to_str().is_some_and(|name| tools::is_temporary(name, &temporary_key(&opening.task))) {
        return usage("has a name that temporary files of this task have");
    }
    Ok(())
}

/// The plan is frozen with the task, and where its report goes too: another folder or file is a slip, or another task.
fn check_same(task: &TaskId, stored: Option<&Completion>, world: &World, wanted: &Completion) -> Result<(), Failure> {
    let usage = |why: String| Err(Failure::new(Exit::Usage, why));
    let Completion::Report { inbox, out, .. } = wanted;
    let Some(stored) = stored else {
        return usage(format!("task `{task}` was not made by `agent inbox`; `agent run` runs it"));
    };
    let (of, to) = (stored.inbox(world), stored.out(world));
    let way = format!("give that, take another task id, or see `agent rebind {task}`");
    if !same_place(&of, Path::new(inbox)) {
        return usage(format!("task `{task}` is about the inbox {}, not {inbox}: {way}", of.display()));
    }
    if !same_place(&to, Path::new(out)) {
        return usage(format!("task `{task}` has its report at {}, not {out}: {way}", to.display()));
    }
    Ok(())
}

fn plan(opening: &Opening<'_>, wanted: &Completion) -> Result<Inbox, Failure> {
    let Completion::Report { inbox, out, .. } = wanted;
    let plan = Inbox::plan(inbox, wanted.to_json())?;
    if plan.has_note(Path::new(out)) {
        return Err(Failure::new(Exit::Usage, format!("--out {out} is a note, the report would replace it")));
    }
    opening.check_crash_point(plan.count(), true, |_| Ok(inbox::TOOL.to_owned()))?;
    if plan.count() == 0 {
        say!("the inbox {inbox} is empty: there is no *.txt file in it, and the report will be an empty list");
    }
    Ok(plan)
}

//! How a command that changes a task opens it: it looks without a trace, checks all that can be checked, and only then
//! opens signals, crash points, action log and store, in this order.

use std::path::Path;

use store::model::{IdempotencyKey, TaskId, TaskState};
use store::sqlite::SqliteReader;
use store::{Reader, StepRow, limits};
use tools::{Effect, World};

use super::log::LogChoice;
use super::{Parts, open_for, task_id, unknown};
use crate::arm::{self, Course};
use crate::config::Config;
use crate::engine::{Completion, Ended, preflight};
use crate::exit::{Exit, Failure};
use crate::home::{self, Bound};
use crate::inbox;
use crate::places::{Named, check_apart, same_place};

/// A command that is to change a task, and has touched nothing yet.
pub(super) struct Opening<'a> {
    pub(super) db: &'a Path,
    pub(super) task: TaskId,
    pub(super) config: &'a Config,
    pub(super) parts: &'a Parts<'a>,
    pub(super) log: Option<LogChoice<'a>>,
}

/// A task, as it was found without a trace. What counts is what is found under its lock.
pub(super) struct Seen {
    pub(super) state: TaskState,
    pub(super) completion: Option<Completion>,
    /// How it has ended, if it has.
    pub(super) ended: Option<Ended>,
    reader: SqliteReader,
}

impl Seen {
    /// Reads on where it was found.
    pub(super) fn reader(&mut self) -> &mut dyn Reader {
        &mut self.reader
    }
}

impl<'a> Opening<'a> {
    pub(super) fn new(
        db: &'a Path,
        task: &str,
        config: &'a Config,
        parts: &'a Parts<'a>,
        log: Option<LogChoice<'a>>,
    ) -> Result<Self, Failure> {
        let task = task_id(task)?;
        if let Some(log) = log {
            check_apart(db, "--log", log.path)?;
        }
        Ok(Self { db, task, config, parts, log })
    }

    /// The task as it is. A task that is unknown or over gets no lock file and no migration.
    ///
    /// # Errors
    /// [`crate::Exit::UnknownTask`] where there is no such task, or no database.
    pub(super) fn look(&self) -> Result<Seen, Failure> {
        let mut reader = open_for(self.db, &self.task)?;
        let state = reader.load(&self.task)?.ok_or_else(|| unknown(self.db, &self.task))?;
        let completion = Completion::of(&mut reader, &self.task)?;
        self.check_crash_point(state.steps, completion.is_some(), |step| {
            Ok(reader.steps(&self.task, step, 1)?.pop().map(|row| row.tool).unwrap_or_default())
        })?;
        let ended = match state.status.is_over() {
            true => Some(Ended::of(&mut reader, &self.task, state)?),
            false => None,
        };
        Ok(Seen { state, completion, ended, reader })
    }

    /// Looks ahead, as far as reading tells, at what a run would stumble over: a fault that is found here costs no
    /// attempt and leaves no trace.
    ///
    /// # Errors
    /// What is at fault.
    pub(super) fn check_ahead(&self, seen: &mut Seen) -> Result<World, Failure> {
        let world = self.bind_seen(seen)?.world;
        self.check_log(seen, &world)?;
        if seen.ended.is_none() {
            preflight(&mut seen.reader, &self.task, seen.state, self.parts.tools, &world)?;
            if let Some(completion) = &seen.completion {
                if seen.state.step().is_some() {
                    self.check_inbox(&completion.inbox(&world))?;
                }
                completion.check_place(&world)?;
            }
        }
        Ok(world)
    }

    /// Refuses an inbox that is gone: each of its notes would use up its attempts.
    fn check_inbox(&self, inbox: &Path) -> Result<(), Failure> {
        if inbox.is_dir() {
            return Ok(());
        }
        let (task, inbox) = (&self.task, inbox.display());
        let way = format!("`agent rebind {task} --inbox DIR` says where it is now");
        Err(Failure::new(Exit::NoInput, format!("the inbox of task `{task}`, {inbox}, is missing; {way}")))
    }

    /// Refuses an action log that the report would replace, that a step reads, so that its lines would be taken for a
    /// text of the user, or that stands where a step publishes.
    pub(super) fn check_log(&self, seen: &mut Seen, world: &World) -> Result<(), Failure> {
        let Some(LogChoice { path, .. }) = self.log else { return Ok(()) };
        if let Some(completion) = &seen.completion {
            // All steps read in one folder.
            return check_log_apart(completion, world, path);
        }
        let log = Named::new(path);
        let mut from = 0;
        loop {
            let page = seen.reader.steps(&self.task, from, limits::STEP_PAGE)?;
            let Some(last) = page.last() else { return Ok(()) };
            from = last.idx + 1;
            let reads = |row: &StepRow| match self.parts.tools.find(&row.tool) {
                Some(tool) => tool.reads(world, &row.input).iter().any(|input| log.is(input)),
                None => false,
            };
            let publishes = |row: &StepRow| {
                let tool = self.parts.tools.find(&row.tool);
                let key = IdempotencyKey::new(self.task.clone(), row.idx).file_stem();
                tool.is_some_and(|tool| tool.effect(&row.input) != Effect::Pure)
                    && log.is(&world.at(&world.artifacts).join(format!("{key}.md")))
            };
            for row in &page {
                let what = match () {
                    () if reads(row) => "reads",
                    () if publishes(row) => "publishes",
                    () => continue,
                };
                let why = format!("--log {} is what step {} of the task {what}", path.display(), row.idx);
                return Err(Failure::new(Exit::Usage, why));
            }
        }
    }

    /// Finds the task's folders, as they were seen.
    pub(super) fn bind_seen(&self, seen: &mut Seen) -> Result<Bound, Failure> {
        self.bind(&mut seen.reader, seen.completion.as_ref())
    }

    /// Finds the task's folders.
    pub(super) fn bind(&self, reader: &mut dyn Reader, completion: Option<&Completion>) -> Result<Bound, Failure> {
        let row = reader.task(&self.task)?.ok_or_else(|| unknown(self.db, &self.task))?;
        Ok(home::bind(&self.config.settings.world, self.db, &row, completion)?)
    }

    /// Refuses a crash point that a task of this form can never pass.
    pub(super) fn check_crash_point(
        &self,
        steps: u32,
        completion: bool,
        tool_of: impl FnOnce(u32) -> Result<String, Failure>,
    ) -> Result<(), Failure> {
        let Some(point) = &self.config.crash_at else { return Ok(()) };
        arm::check(point, Course { tools: self.parts.tools, steps, log: self.log.is_some(), completion }, tool_of)
    }
}

/// Refuses an action log that the report would replace, or that is a note and would be changed before it is counted.
pub(super) fn check_log_apart(completion: &Completion, world: &World, log: &Path) -> Result<(), Failure> {
    let usage = |why: &str| Err(Failure::new(Exit::Usage, format!("--log {} {why}", log.display())));
    if same_place(log, &completion.out(world)) {
        return usage("is the report of the task, which would replace it");
    }
    if inbox::would_be_note(&completion.inbox(world), log) {
        return usage("would be a note of the inbox, and be counted");
    }
    Ok(())
}

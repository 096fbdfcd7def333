//! The loop: one run of one task.

use std::collections::VecDeque;

use store::crash::{
    AFTER_COMMIT, AFTER_EFFECT, BEFORE_EFFECT, COMPLETE_DONE, COMPLETE_READY, RECOVER_SWEPT, RUN_STARTED,
};
use store::machine::{Command, Next, next};
use store::model::{Event, IdempotencyKey, TaskId, TaskState, TaskStatus};
use store::{Crash, Reader, StepRow, TaskSession, limits};
use tools::{Input, Outputs, Tool, ToolContext, ToolError};

use crate::completion::{Completion, Replace};
use crate::config::Config;
use crate::exit::{Exit, Failure};
use crate::signals::Stop;

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The task is done.
    Done,
    /// The task has failed at this step; the error is that of its last attempt, where this run saw it.
    Failed {
        /// The step.
        step: u32,
        /// What its tool said last.
        error: Option<String>,
    },
    /// A signal stopped the run between two commits; its exit code.
    Stopped(Exit),
}

/// Hears of what was committed, in order and at once.
pub trait Observer {
    /// `events` are durable; the session's state is the state after them.
    ///
    /// # Errors
    /// The run stops, as safely as if it were killed here.
    fn committed(&mut self, session: &mut TaskSession<'_>, events: &[Event]) -> Result<(), Failure>;
}

/// Hears nothing.
#[derive(Debug)]
pub struct Silent;

impl Observer for Silent {
    fn committed(&mut self, _session: &mut TaskSession<'_>, _events: &[Event]) -> Result<(), Failure> {
        Ok(())
    }
}

/// A run of a task under lease.
pub struct Runner<'a, 's> {
    /// The task.
    pub session: TaskSession<'s>,
    /// Its settings.
    pub config: &'a Config,
    /// Its crash points.
    pub crash: &'a Crash,
    /// Whether it has to stop.
    pub stop: &'a Stop,
    /// Who hears of its progress.
    pub observer: &'a mut dyn Observer,
    /// Where its tools come from: [`tools::find`], or what a test puts in its place.
    pub tools: Lookup<'a>,
    /// Puts the report into the world: [`tools::replace`], or what a test puts in its place.
    pub replace: Replace<'a>,
}

/// Finds a tool by the name that plans call it by.
pub type Lookup<'a> = &'a dyn Fn(&str) -> Option<&'static dyn Tool>;

/// A step with everything that its attempt needs, looked at before the attempt is counted.
struct Prepared {
    step: StepRow,
    tool: &'static dyn Tool,
    outputs: Outputs,
}

impl Runner<'_, '_> {
    /// Recovers, then runs to the end.
    ///
    /// # Errors
    /// The process must stop; whatever was committed is durable, and the next run goes on from there.
    pub fn run(mut self) -> Result<Outcome, Failure> {
        let state = self.session.state();
        if state.status.is_over() {
            return Ok(over(state, None));
        }
        self.recover()?;
        let mut page = VecDeque::new();
        let mut error = None;
        loop {
            if let Some(exit) = self.stop.requested() {
                return Ok(Outcome::Stopped(exit));
            }
            match next(&self.session.state()) {
                Next::Over(_) => return Ok(over(self.session.state(), error)),
                Next::Complete => self.complete()?,
                Next::Step(step) => {
                    let prepared = self.prepare(step, &mut page)?;
                    if let Err(why) = self.attempt(&prepared)? {
                        page.push_front(prepared.step);
                        error = Some(why);
                    }
                }
            }
        }
    }

    /// Sweeps what a killed attempt left, then sets its step back. In that order: once recovery is committed, nothing
    /// says any more that there may be something to sweep.
    fn recover(&mut self) -> Result<(), Failure> {
        if let Some(step) = self.session.state().running() {
            let prepared = self.prepare(step, &mut VecDeque::new())?;
            let state = self.session.state();
            let key = self.key(step, state.current.attempts);
            prepared.tool.sweep(&self.context(&key, &prepared)).map_err(|error| tool_failure(step, &error))?;
        }
        if self.session.state().all_done()
            && let Some(completion) = self.completion()?
        {
            completion.sweep(self.session.task())?;
        }
        self.crash.scope(None).point(RECOVER_SWEPT);
        self.commit(&Command::Begin { max_attempts: self.config.max_attempts })?;
        self.crash.scope(None).point(RUN_STARTED);
        Ok(())
    }

    fn complete(&mut self) -> Result<(), Failure> {
        self.crash.scope(None).point(COMPLETE_READY);
        if let Some(completion) = self.completion()? {
            let task = self.session.task().clone();
            completion.carry_out(self.session.reader(), &task, self.replace, self.crash.scope(None))?;
        }
        self.commit(&Command::Complete)?;
        self.crash.scope(None).point(COMPLETE_DONE);
        Ok(())
    }

    fn completion(&mut self) -> Result<Option<Completion>, Failure> {
        let task = self.session.task().clone();
        Completion::of(self.session.reader(), &task)
    }

    fn prepare(&mut self, step: u32, page: &mut VecDeque<StepRow>) -> Result<Prepared, Failure> {
        let task = self.session.task().clone();
        if page.is_empty() {
            page.extend(self.session.reader().steps(&task, step, limits::STEP_PAGE)?);
        }
        match page.pop_front() {
            Some(row) if row.idx == step => prepare(self.session.reader(), &task, row, self.tools),
            _ => Err(Failure::new(Exit::BadStore, format!("task `{task}` has no step {step}"))),
        }
    }

    /// One attempt of a step: its start, its effect, its end. The inner error is the tool's, journaled already.
    fn attempt(&mut self, prepared: &Prepared) -> Result<Result<(), String>, Failure> {
        let step = prepared.step.idx;
        let tool = prepared.tool.spec().name;
        let max_attempts = self.config.max_attempts;
        self.commit(&Command::Start { step, tool: tool.to_owned(), max_attempts })?;
        let state = self.session.state();
        if state.status.is_over() {
            return Ok(Ok(()));
        }
        let points = self.crash.scope(Some(step));
        points.point(BEFORE_EFFECT);
        self.stop.sleep(self.config.step_delay);
        if self.stop.requested().is_some() {
            return Ok(Ok(()));
        }
        let key = self.key(step, state.current.attempts);
        let result = prepared.tool.call(&self.context(&key, prepared), Input(&prepared.step.input));
        points.point(AFTER_EFFECT);
        let result = match result {
            Ok(output) => tools::check_output(prepared.tool.spec(), &output).map(|()| output),
            Err(ToolError::Step(why)) => Err(why),
            Err(poison @ ToolError::Poison(_)) => return Err(tool_failure(step, &poison)),
        };
        match result {
            Ok(output) => {
                let events = self.session.finish(step, tool, output)?;
                points.point(AFTER_COMMIT);
                self.observer.committed(&mut self.session, &events)?;
                Ok(Ok(()))
            }
            Err(why) => {
                let error = one_line(&why);
                self.commit(&Command::Fail { step, error: error.clone() })?;
                Ok(Err(error))
            }
        }
    }

    fn commit(&mut self, command: &Command) -> Result<(), Failure> {
        let events = self.session.apply(command)?;
        self.observer.committed(&mut self.session, &events)
    }

    fn key(&self, step: u32, attempt: u32) -> IdempotencyKey {
        let task = self.session.task().clone();
        if self.config.unsafe_keys {
            IdempotencyKey::fresh_for_attempt(task, step, attempt)
        } else {
            IdempotencyKey::new(task, step)
        }
    }

    fn context<'c>(&'c self, key: &'c IdempotencyKey, prepared: &'c Prepared) -> ToolContext<'c> {
        let crash = self.crash.scope(Some(prepared.step.idx));
        ToolContext { key, world: &self.config.world, outputs: &prepared.outputs, crash }
    }
}

/// Whether the step at the cursor can be run, as far as reading tells: a fault that is found here costs no attempt and
/// changes nothing.
pub(crate) fn preflight(reader: &mut dyn Reader, task: &TaskId, state: TaskState) -> Result<(), Failure> {
    if state.all_done() {
        return Ok(());
    }
    match reader.steps(task, state.cursor, 1)?.pop() {
        Some(row) => prepare(reader, task, row, &tools::find).map(|_| ()),
        None => Err(Failure::new(Exit::BadStore, format!("task `{task}` has no step {}", state.cursor))),
    }
}

fn prepare(reader: &mut dyn Reader, task: &TaskId, step: StepRow, tools: Lookup<'_>) -> Result<Prepared, Failure> {
    let bad = |why: String| Failure::new(Exit::BadStore, format!("task `{task}`, step {}: {why}", step.idx));
    let Some(tool) = tools(&step.tool) else {
        return Err(bad(format!("this program has no tool `{}`; another version created the task", step.tool)));
    };
    let mut outputs = Outputs::new();
    for source in tools::named_steps(tool.spec(), &step.input) {
        outputs.insert(
            source,
            stored_output(reader, task, source).map_err(|why| match why {
                Stored::Unreadable(failure) => failure,
                Stored::Wrong(why) => bad(format!("it reads step {source}, but {why}")),
            })?,
        );
    }
    Ok(Prepared { step, tool, outputs })
}

/// Why a stored output cannot be used.
pub(crate) enum Stored {
    Unreadable(Failure),
    Wrong(String),
}

/// The committed output of a step, checked against the schema of its tool.
pub(crate) fn stored_output(
    reader: &mut dyn Reader,
    task: &TaskId,
    step: u32,
) -> Result<serde_json::Map<String, serde_json::Value>, Stored> {
    let unreadable = |error: store::StoreError| Stored::Unreadable(error.into());
    let row = reader.steps(task, step, 1).map_err(unreadable)?.pop().filter(|row| row.idx == step);
    let row = row.ok_or_else(|| Stored::Wrong("there is no such step".to_owned()))?;
    let output = reader.output(task, step).map_err(unreadable)?;
    let output = output.ok_or_else(|| Stored::Wrong("that step has no output".to_owned()))?;
    if let Some(tool) = tools::find(&row.tool) {
        tools::check_output(tool.spec(), &output).map_err(Stored::Wrong)?;
    }
    Ok(output)
}

fn over(state: TaskState, error: Option<String>) -> Outcome {
    match state.status {
        TaskStatus::Failed => Outcome::Failed { step: state.cursor, error },
        _ => Outcome::Done,
    }
}

fn tool_failure(step: u32, error: &ToolError) -> Failure {
    Failure::new(Exit::Io, format!("step {step}: {error}; run the task again once the cause is mended"))
}

/// A message for the journal: one line of bounded length, without control characters, which names of files may have.
fn one_line(text: &str) -> String {
    let parts = text.split(char::is_control).map(str::trim).filter(|part| !part.is_empty());
    let mut line = parts.collect::<Vec<_>>().join(" ");
    if line.len() > limits::ERROR_TEXT_BYTES {
        let end = (0..=limits::ERROR_TEXT_BYTES).rev().find(|&at| line.is_char_boundary(at)).unwrap_or_default();
        line.truncate(end);
        line.push('…');
    }
    line
}

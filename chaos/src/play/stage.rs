//! One scenario at work: a sandbox in which the agent is started, killed and looked at, and the evidence that gathers
//! meanwhile.

use std::sync::Arc;
use std::time::Duration;

use nix::sys::signal::Signal;

use crate::agent::process::{Outcome, Running};
use crate::case::TASK;
use crate::case::plan::PlanCase;
use crate::crash::kill_at;
use crate::error::LabError;
use crate::look::evidence::{Evidence, Expect, RunRecord, TaskEnd};
use crate::look::lab::Lab;
use crate::look::reader::LiveReader;
use crate::look::sandbox::Sandbox;
use crate::look::snapshot::Snapshot;
use crate::play::person;
use crate::schedule::{CrashPoint, Kill, Sign};

/// Between two looks at a journal that is being written.
const POLL: Duration = Duration::from_micros(500);

/// How long a stopped process stays stopped.
const STOPPED: Duration = Duration::from_millis(30);

/// How long a step sleeps while the lab waits for its start, in seconds.
pub const HOLD: f64 = 0.12;

/// A scenario's folder and what was seen in it so far.
pub struct Stage<'a> {
    /// The lab.
    pub lab: &'a Lab,
    /// The folder.
    pub sandbox: Sandbox,
    evidence: Evidence,
    /// How long a step sleeps while the lab waits for it, in seconds.
    pub hold: f64,
    /// Whether what follows a SIGKILL from outside follows it at once, whatever the
    /// killed process has left.
    pub at_once: bool,
}

/// A folder that is left as it is, and what was seen in it.
pub struct Left {
    sandbox: Sandbox,
    evidence: Evidence,
}

impl<'a> Stage<'a> {
    /// A fresh folder in which `tasks` are created from the plan; or will be by their first run, where the case is
    /// played like that.
    ///
    /// # Errors
    /// The lab's own failures; what the agent does wrong is evidence.
    pub fn new(lab: &'a Lab, case: &Arc<PlanCase>, tasks: &[String]) -> Result<Self, LabError> {
        let mut sandbox = Sandbox::new(&lab.root, case)?;
        let mut creates = Vec::new();
        for task in tasks.iter().filter(|_| case.kind.is_created()) {
            creates.push(sandbox.create(&lab.target, task)?);
        }
        let evidence = Evidence {
            case: Arc::clone(case),
            tasks: tasks.to_vec(),
            end: TaskEnd::Done,
            creates,
            created: sandbox.look()?,
            runs: Vec::new(),
            observed: Vec::new(),
            strays: Vec::new(),
        };
        Ok(Self { lab, sandbox, evidence, hold: HOLD, at_once: false })
    }

    /// A fresh folder with the one task [`TASK`].
    ///
    /// # Errors
    /// See [`Stage::new`].
    pub fn single(lab: &'a Lab, case: &Arc<PlanCase>) -> Result<Self, LabError> {
        Self::new(lab, case, &[TASK.to_owned()])
    }

    /// A folder with the one task [`TASK`]: a copy of `left`, where that is given.
    ///
    /// # Errors
    /// See [`Stage::new`].
    pub fn begun(lab: &'a Lab, case: &Arc<PlanCase>, left: Option<&Left>) -> Result<Self, LabError> {
        left.map_or_else(|| Self::single(lab, case), |left| Self::after(lab, left))
    }

    /// What has happened so far, to be continued more than once.
    #[must_use]
    pub fn into_left(self) -> Left {
        Left { sandbox: self.sandbox, evidence: self.evidence }
    }

    /// Another continuation of the same left, in a folder of its own.
    ///
    /// # Errors
    /// Files that cannot be copied.
    pub fn after(lab: &'a Lab, left: &Left) -> Result<Self, LabError> {
        Ok(Self {
            lab,
            sandbox: left.sandbox.fork(&lab.root)?,
            evidence: left.evidence.clone(),
            hold: HOLD,
            at_once: false,
        })
    }

    /// What is played.
    #[must_use]
    pub fn case(&self) -> &Arc<PlanCase> {
        &self.evidence.case
    }

    /// The last look at the folder.
    #[must_use]
    pub fn last(&self) -> &Snapshot {
        self.evidence.last()
    }

    /// Everything that was seen, of tasks that had to end like this; and the processes that have not ended, though all
    /// that was started here has.
    #[must_use]
    pub fn close(mut self, end: TaskEnd) -> Evidence {
        self.evidence.end = end;
        self.evidence.strays = self.sandbox.strays();
        self.evidence
    }

    /// Tables that a reader saw while a run was at work.
    pub fn observed(&mut self, tables: Vec<crate::look::tables::Tables>) {
        self.evidence.observed.extend(tables);
    }

    /// Runs the task to its end, whatever that is, and looks at the folder. Where it asks a person, it is answered and
    /// goes on in another run, to which the same is done.
    ///
    /// # Errors
    /// See [`Stage::new`].
    pub fn run(
        &mut self,
        task: &str,
        kill: Option<&Kill>,
        expect: Expect,
        env: &[(&'static str, String)],
    ) -> Result<&RunRecord, LabError> {
        loop {
            let (outcome, signalled) = self.play(task, kill, env)?;
            let after = Some(self.sandbox.look()?);
            self.record(RunRecord { task: task.to_owned(), kill: kill.cloned(), expect, outcome, signalled, after });
            if !person::answers(&self.lab.target, &mut self.sandbox, &mut self.evidence.runs)? {
                break;
            }
        }
        Ok(&self.evidence.runs[self.evidence.runs.len() - 1])
    }

    /// Like [`Stage::run`], with the crash points that the agent passed; `None` where it records none.
    ///
    /// # Errors
    /// See [`Stage::new`].
    pub fn run_recorded(&mut self, kill: Option<&Kill>, expect: Expect) -> Result<Option<Vec<CrashPoint>>, LabError> {
        let file = self.sandbox.record_file();
        let env = vec![("AGENT_CRASH_RECORD", file.to_string_lossy().into_owned())];
        self.run(TASK, kill, expect, &env)?;
        Sandbox::recorded(&file)
    }

    /// Does something to the action log while no process is at work. The look that was had stays, so that nobody is
    /// blamed for what the lab does.
    ///
    /// # Errors
    /// Files that cannot be read, and those of `change`.
    pub fn damage_log(&mut self, change: impl FnOnce(&Sandbox) -> Result<(), LabError>) -> Result<(), LabError> {
        change(&self.sandbox)?;
        let found = self.sandbox.log()?.unwrap_or_default();
        let last = self.evidence.runs.iter_mut().rev().find_map(|run| run.after.as_mut());
        last.unwrap_or(&mut self.evidence.created).damaged_log = Some(found);
        Ok(())
    }

    /// Lets time pass for the files while no process is at work: all look so many seconds old, or from that far ahead.
    /// The look that was had takes their new times, so that nobody is blamed for them.
    ///
    /// # Errors
    /// Files that cannot be dated or read.
    pub fn age(&mut self, seconds: i64) -> Result<(), LabError> {
        self.sandbox.age(seconds, |_| true)?;
        let written = self.sandbox.look()?.written;
        let last = self.evidence.runs.iter_mut().rev().find_map(|run| run.after.as_mut());
        last.unwrap_or(&mut self.evidence.created).written = written;
        Ok(())
    }

    /// The clock of the last run was so many seconds ahead, or behind: the times that it wrote are judged by that.
    pub fn lived_at(&mut self, seconds: i64) {
        if let Some(run) = self.evidence.runs.last_mut() {
            run.outcome.started_at += seconds as f64;
            run.outcome.ended_at += seconds as f64;
        }
    }

    /// Notes a run that was played by hand.
    pub fn record(&mut self, run: RunRecord) {
        self.evidence.runs.push(run);
    }

    /// Waits for a run that was started by hand and notes it; `look` says whether the folder is at rest then.
    ///
    /// # Errors
    /// See [`Stage::new`].
    pub fn finish(&mut self, task: &str, running: Running, expect: Expect, look: bool) -> Result<(), LabError> {
        let outcome = self.sandbox.finish(running)?;
        let after = if look { Some(self.sandbox.look()?) } else { None };
        self.record(RunRecord { task: task.to_owned(), kill: None, expect, outcome, signalled: false, after });
        Ok(())
    }

    /// Starts a run without waiting for it.
    ///
    /// # Errors
    /// See [`Stage::new`].
    pub fn start(&mut self, task: &str, env: &[(&'static str, String)]) -> Result<Running, LabError> {
        let words = self.evidence.case.kind.words(task);
        self.sandbox.start(&self.lab.target, &words, env)
    }

    fn play(
        &mut self,
        task: &str,
        kill: Option<&Kill>,
        env: &[(&'static str, String)],
    ) -> Result<(Outcome, bool), LabError> {
        let mut env = env.to_vec();
        match kill {
            None => {}
            Some(Kill::Point(point)) => env.push(("AGENT_CRASH_AT", point.to_string())),
            Some(Kill::Delay(us)) => {
                let mut running = self.start(task, &env)?;
                let in_time = !running.ended_within(Duration::from_micros(*us));
                if in_time {
                    running.signal(Signal::SIGKILL);
                }
                return Ok((self.sandbox.finish(running)?, in_time));
            }
            Some(Kill::Call(point)) => {
                let words = self.evidence.case.kind.words(task);
                return kill_at(self.lab, &mut self.sandbox, &words, &env, point);
            }
            Some(Kill::Signal { sign, group, step }) => {
                env.push(("AGENT_STEP_DELAY", self.hold.to_string()));
                return self.play_signal(task, *sign, *group, *step, &env);
            }
        }
        let running = self.start(task, &env)?;
        Ok((self.sandbox.finish(running)?, false))
    }

    fn play_signal(
        &mut self,
        task: &str,
        sign: Sign,
        group: bool,
        step: usize,
        env: &[(&'static str, String)],
    ) -> Result<(Outcome, bool), LabError> {
        let (mut running, seen) = self.start_and_wait(task, step, env)?;
        let send = |running: &Running, signal| if group { running.signal_all(signal) } else { running.signal(signal) };
        if seen {
            match sign {
                Sign::Kill => send(&running, Signal::SIGKILL),
                Sign::Term => send(&running, Signal::SIGTERM),
                Sign::Int => send(&running, Signal::SIGINT),
                Sign::Stop => {
                    send(&running, Signal::SIGSTOP);
                    running.ended_within(STOPPED);
                    send(&running, Signal::SIGCONT);
                }
            }
        }
        let at_once = self.at_once && seen && sign == Sign::Kill;
        let finish = if at_once { Sandbox::finish_at_once } else { Sandbox::finish };
        Ok((finish(&mut self.sandbox, running)?, seen))
    }

    /// Starts a run and waits until the journal shows a new start of `step`; `false` where the run ended or its time
    /// was up before.
    ///
    /// # Errors
    /// See [`Stage::new`], and a database that cannot be read.
    pub fn start_and_wait(
        &mut self,
        task: &str,
        step: usize,
        env: &[(&'static str, String)],
    ) -> Result<(Running, bool), LabError> {
        let db = self.sandbox.db();
        let mut reader = LiveReader::when_ready(&db)?;
        let starts = |reader: &Option<LiveReader>| reader.as_ref().map_or(Ok(0), |reader| reader.starts(task, step));
        let before = starts(&reader)?;
        let mut running = self.start(task, env)?;
        loop {
            if reader.is_none() {
                reader = LiveReader::when_ready(&db)?;
            }
            if starts(&reader)? > before {
                return Ok((running, true));
            }
            if running.ended_within(POLL) || running.time_left().is_zero() {
                return Ok((running, false));
            }
        }
    }
}

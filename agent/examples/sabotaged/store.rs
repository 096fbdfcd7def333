//! The real store with wrong parts around it.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Map, Value};
use store::model::{Event, JournalEntry, RunId, TaskId, TaskState};
use store::sqlite::SqliteStore;
use store::{
    Commit, Crash, ErrorKind, FencingToken, Lease, LogPosition, NewTask, Reader, StepRow, Store, StoreError, TaskRow,
};

use crate::artifact::Late;
use crate::known::Known;
use crate::plant::{Hold, Lock, Log, Plant, Report};
use crate::unit::{Raw, Unit, failed};
use crate::{log, report};

/// How long a lock is waited for by the bug that waits: shorter than the lab's patience.
const PATIENCE: Duration = Duration::from_millis(300);

pub(crate) struct PlantedStore {
    inner: SqliteStore,
    db: PathBuf,
    raw: rusqlite::Result<Raw>,
    plant: &'static Plant,
    /// A commit that the caller takes for durable.
    held: Option<Unit>,
    /// Events that the caller takes for durable.
    unwritten: Vec<Event>,
    /// The state as it was read before the lock.
    early: Option<TaskState>,
    /// Steps that were set back before the lock.
    recovered: Vec<u32>,
    late: Late,
    known: Known,
}

impl PlantedStore {
    pub(crate) fn new(
        inner: SqliteStore,
        db: &Path,
        plant: &'static Plant,
        crash: Crash,
        late: Late,
        known: Known,
    ) -> Self {
        Self {
            inner,
            db: db.to_owned(),
            raw: Raw::open(db, plant.synchronous, crash),
            plant,
            held: None,
            unwritten: Vec::new(),
            early: None,
            recovered: Vec::new(),
            late,
            known,
        }
    }

    fn raw(&mut self) -> Result<&mut Raw, StoreError> {
        self.raw.as_mut().map_err(|error| StoreError::new(ErrorKind::Io, format!("the bug has no database: {error}")))
    }

    fn write(&mut self, mut unit: Unit) -> Result<(), StoreError> {
        let plant = self.plant;
        if let Some(held) = self.held.take() {
            self.raw()?.write(&held, plant.cut)?;
        }
        if plant.hold == Hold::Journal {
            let last = unit.ends_the_task();
            let new = std::mem::take(&mut unit.events);
            unit.events = std::mem::replace(&mut self.unwritten, new);
            if last {
                unit.events.append(&mut self.unwritten);
            }
        }
        self.raw()?.write(&unit, plant.cut)
    }

    /// What is told of a commit before it is one.
    fn tell_early(&mut self, unit: &Unit) -> std::io::Result<()> {
        if matches!(self.plant.log, Log::Early) && log::finishes_a_step(unit) {
            log::announce(&self.known, unit, &mut self.inner)?;
        }
        let starts = unit.events.iter().find(|event| matches!(event, Event::StepStarted { .. })).and_then(Event::step);
        let last = self.known.found().map_or(0, |state| state.steps.saturating_sub(1));
        if self.plant.report == Report::Early && starts == Some(last) {
            let task = TaskId::new(&unit.task).map_err(std::io::Error::other)?;
            report::publish_part(&mut self.inner, &task, last)?;
        }
        Ok(())
    }

    fn wait_for(&mut self, task: &TaskId, run: &RunId) -> Result<Lease, StoreError> {
        let start = Instant::now();
        loop {
            match self.inner.acquire(task, run) {
                Err(error) if error.kind() == ErrorKind::Held => {
                    if start.elapsed() > PATIENCE {
                        return Err(StoreError::new(ErrorKind::Busy, error.to_string()));
                    }
                    std::thread::sleep(Duration::from_millis(5));
                }
                result => return result,
            }
        }
    }

    /// A lease that excludes the runs of other tasks too.
    fn with_shared_lock(&mut self, task: &TaskId, run: &RunId) -> Result<Lease, StoreError> {
        let io = |error: std::io::Error| StoreError::new(ErrorKind::Io, error.to_string());
        let file = File::open(&self.db).map_err(io)?;
        file.try_lock().map_err(|_| StoreError::new(ErrorKind::Held, "another process is running some task"))?;
        let lease = self.inner.acquire(task, run)?;
        let token = lease.token();
        Ok(Lease::new(task.clone(), run.clone(), token, Box::new((file, lease))))
    }

    /// A lease that excludes nobody.
    fn without_lock(&mut self, task: &TaskId, run: &RunId) -> Result<Lease, StoreError> {
        let fence = self.raw()?.number("SELECT fence FROM tasks WHERE id = ?1", task.as_str()).map_err(failed)?;
        Ok(Lease::new(task.clone(), run.clone(), FencingToken(fence), Box::new(())))
    }

    fn recover_early(&mut self, task: &TaskId, run: &RunId) -> Result<(), StoreError> {
        const BACK: &str = "UPDATE steps SET status = 'pending' WHERE task_id = ?1 AND status = 'running'";
        const SAY: &str = "INSERT INTO events(ts, task_id, run_id, kind, step_idx, data)
             SELECT ?3, ?1, ?2, 'step_recovered', idx, '{}' FROM steps WHERE task_id = ?1 AND status = 'running'";
        let raw = self.raw()?;
        let recovered = raw.running(task.as_str()).map_err(failed)?;
        for sql in [SAY, BACK] {
            raw.run(sql, task.as_str(), run.as_str()).map_err(failed)?;
        }
        self.recovered = recovered;
        Ok(())
    }
}

impl Store for PlantedStore {
    fn create(&mut self, task: &NewTask<'_>) -> Result<(), StoreError> {
        if self.plant.created_in_two {
            return self.raw()?.create_in_two(task).map_err(failed);
        }
        self.inner.create(task)
    }

    fn create_leased(&mut self, task: &NewTask<'_>) -> Result<Lease, StoreError> {
        self.inner.create_leased(task)
    }

    fn acquire(&mut self, task: &TaskId, run: &RunId) -> Result<Lease, StoreError> {
        match self.plant.lock {
            Lock::Taken => self.inner.acquire(task, run),
            Lock::Not => self.without_lock(task, run),
            Lock::Dropped => {
                drop(self.inner.acquire(task, run)?);
                self.without_lock(task, run)
            }
            Lock::FenceOnly => {
                let sql = "UPDATE tasks SET fence = fence + 1 WHERE id = ?1";
                self.raw()?.run(sql, task.as_str(), run.as_str()).map_err(failed)?;
                self.without_lock(task, run)
            }
            Lock::Shared => self.with_shared_lock(task, run),
            Lock::Waited => self.wait_for(task, run),
            Lock::AfterRecovery => {
                self.recover_early(task, run)?;
                self.inner.acquire(task, run)
            }
            Lock::AfterLoad => {
                self.early = self.inner.load(task)?;
                self.inner.acquire(task, run)
            }
        }
    }

    fn commit(&mut self, commit: &Commit<'_>) -> Result<(), StoreError> {
        let mut unit = Unit::of(commit);
        if !unit.has(|event| matches!(event, Event::StepFinished { .. })) {
            self.late.catch_up()?;
        }
        if matches!(self.plant.lock, Lock::Not | Lock::Dropped) {
            unit.fence = None;
        }
        if !self.recovered.is_empty() {
            let early = std::mem::take(&mut self.recovered);
            for event in &mut unit.events {
                if let Event::RunStarted { recovered, .. } = event {
                    recovered.clone_from(&early);
                }
            }
        }
        (self.plant.edit)(&mut unit);
        let held = match self.plant.hold {
            Hold::Start => unit.has(|event| matches!(event, Event::StepStarted { .. })),
            Hold::Finish => unit.has(|event| matches!(event, Event::StepFinished { .. })),
            Hold::Nothing | Hold::Journal => false,
        };
        if held && self.held.is_none() {
            self.held = Some(unit);
            return Ok(());
        }
        let failed = |error: std::io::Error| StoreError::new(ErrorKind::Io, format!("the bug does not work: {error}"));
        self.tell_early(&unit).map_err(failed)?;
        self.write(unit)?;
        report::catch_up(&self.known).map_err(failed)
    }

    fn keep_log_position(&mut self, log: &str, task: &TaskId, position: &LogPosition) -> Result<(), StoreError> {
        self.inner.keep_log_position(log, task, position)
    }
}

impl Reader for PlantedStore {
    fn tasks(&mut self) -> Result<Vec<TaskRow>, StoreError> {
        self.inner.tasks()
    }

    fn task(&mut self, task: &TaskId) -> Result<Option<TaskRow>, StoreError> {
        self.inner.task(task)
    }

    fn load(&mut self, task: &TaskId) -> Result<Option<TaskState>, StoreError> {
        let state = match self.early.take() {
            Some(state) => Some(state),
            None => self.inner.load(task)?,
        };
        if let Some(state) = state {
            self.known.find(state);
        }
        Ok(state.map(self.plant.load))
    }

    fn steps(&mut self, task: &TaskId, from: u32, limit: u32) -> Result<Vec<StepRow>, StoreError> {
        self.inner.steps(task, from, limit)
    }

    fn output(&mut self, task: &TaskId, step: u32) -> Result<Option<Map<String, Value>>, StoreError> {
        let held = self.held.as_ref().and_then(|unit| unit.output.as_ref()).filter(|(held, _)| *held == step);
        match held.map(|(_, text)| serde_json::from_str(text)) {
            Some(Ok(Value::Object(output))) => Ok(Some(output)),
            _ => self.inner.output(task, step),
        }
    }

    fn completion(&mut self, task: &TaskId) -> Result<Option<Map<String, Value>>, StoreError> {
        self.inner.completion(task)
    }

    fn log_position(&mut self, log: &str, task: &TaskId) -> Result<Option<LogPosition>, StoreError> {
        self.inner.log_position(log, task)
    }

    fn journal(&mut self, task: Option<&TaskId>, after: i64, limit: u32) -> Result<Vec<JournalEntry>, StoreError> {
        self.inner.journal(task, after, limit)
    }

    fn integrity(&mut self) -> Result<Vec<String>, StoreError> {
        self.inner.integrity()
    }

    fn snapshot(&mut self, look: &mut dyn FnMut(&mut dyn Reader) -> Result<(), StoreError>) -> Result<(), StoreError> {
        self.inner.snapshot(look)
    }
}

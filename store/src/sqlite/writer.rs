//! Writing: one transaction per commit, guarded by the lease's token and by the rows' present state.

use std::path::Path;

use rusqlite::{Transaction, TransactionBehavior, params};
use serde_json::Value;

use super::Source;
use super::connection::{Access, Connected};
use super::error::failed;
use super::lock;
use super::place::{Place, sync_folder};
use super::reader::SqliteReader;
use super::schema::Schema;
use super::tables::Tables;
use crate::commit::{Commit, Places, StepChange, TaskChange};
use crate::crash::{COMMIT_DONE, COMMIT_WRITTEN, Crash};
use crate::error::{ErrorKind, StoreError};
use crate::lease::{FencingToken, Lease};
use crate::model::{Event, RunId, TaskId, TaskStatus, codec};
use crate::store::{NewTask, Store};

/// A database that is open for writing.
pub struct SqliteStore {
    place: Place,
    access: Access,
    crash: Crash,
    /// Set when a write or sync failed. What the disk holds is then unknown, so the connection is never closed:
    /// that would move the WAL into the database on the strength of pages that may not have arrived.
    poisoned: bool,
}

impl SqliteStore {
    /// Opens an existing database. It is opened for writing when its first lease is taken, and not before: a run that is
    /// refused because another agent is at work must leave that agent's database as it is.
    ///
    /// # Errors
    /// What is not a database of ours, or damaged, is refused and left as it is.
    pub fn open(path: &Path, crash: Crash) -> Result<Self, StoreError> {
        let place = Place::of(path);
        let mut found = SqliteReader::open_at(&place)?;
        found.check_small()?;
        Ok(Self { place, access: Access::Reading(Box::new(found)), crash, poisoned: false })
    }

    /// Opens a database, or makes one where there is none or an empty file.
    ///
    /// # Errors
    /// As [`SqliteStore::open`]; and the folder must exist.
    pub fn open_or_create(path: &Path, crash: Crash) -> Result<Self, StoreError> {
        let place = Place::of(path);
        let fresh = match SqliteReader::open_at(&place) {
            Ok(mut found) => {
                found.check_small()?;
                found.schema() == Schema::Empty
            }
            Err(error) if error.kind() == ErrorKind::Missing => {
                place.check_free()?;
                true
            }
            Err(error) => return Err(error),
        };
        let access = Access::Writing(Connected::open(&place, true)?);
        let mut store = Self { place, access, crash, poisoned: false };
        store.migrate()?;
        if fresh {
            sync_folder(store.place.folder())?;
        }
        Ok(store)
    }

    /// The connection that may write.
    fn connected(&mut self) -> Result<&mut Connected, StoreError> {
        if !matches!(self.access, Access::Writing(_)) {
            // SQLite shares within a process what it knows of a file, and a reader's index may not be written.
            self.access = Access::Closed;
            self.access = Access::Writing(Connected::open(&self.place, false)?);
        }
        match &mut self.access {
            Access::Writing(connected) => Ok(connected),
            _ => unreachable!("it was opened for writing"),
        }
    }

    fn migrate(&mut self) -> Result<(), StoreError> {
        let place = self.place.clone();
        let result = self.connected()?.migrate(&place);
        self.poison_on_io(result)
    }

    fn begin(&mut self, op: &str) -> Result<Transaction<'_>, StoreError> {
        let path = self.place.path().to_owned();
        let conn = &mut self.connected()?.conn;
        conn.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed(op, &path))
    }

    fn poison_on_io<T>(&mut self, result: Result<T, StoreError>) -> Result<T, StoreError> {
        if let Err(error) = &result
            && error.kind() == ErrorKind::Io
        {
            self.poisoned = true;
        }
        result
    }

    fn try_create(&mut self, task: &NewTask<'_>, fence: FencingToken) -> Result<(), StoreError> {
        const OP: &str = "store the task";
        let path = self.place.path().to_owned();
        let failed = failed(OP, &path);
        let crash = self.crash.clone();
        let identity = self.connected()?.identity;
        let tx = self.begin(OP)?;
        let id = task.id.as_str();
        let completion = task.plan.completion().map(|completion| Value::Object(completion.clone()).to_string());
        let inserted = tx.execute(
            "INSERT INTO tasks(id, goal, status, created_at, updated_at, completion, fence, home, first_event)
             VALUES (?1, ?2, ?3, ?4, ?4, ?5, ?6, ?7, (SELECT coalesce(max(seq), 0) + 1 FROM events))
             ON CONFLICT DO NOTHING",
            params![id, task.plan.goal(), TaskStatus::Pending.as_str(), task.at, completion, fence.0, task.home],
        );
        if inserted.map_err(&failed)? == 0 {
            return Err(StoreError::new(
                ErrorKind::Exists,
                format!("there is a task `{id}` already in {}", path.display()),
            ));
        }
        let mut steps = 0;
        {
            let mut insert =
                tx.prepare("INSERT INTO steps(task_id, idx, tool, input) VALUES (?1, ?2, ?3, ?4)").map_err(&failed)?;
            for (idx, step) in (0u32..).zip(task.plan.steps()) {
                let step = step.into_owned();
                let input = Value::Object(step.input).to_string();
                insert.execute(params![id, idx, step.tool, input]).map_err(&failed)?;
                steps = idx + 1;
            }
        }
        let created = Event::TaskCreated { steps, home: task.home.map(str::to_owned) };
        journal(&tx, task.id, task.run, task.at, &created, &failed)?;
        identity.check(&path)?;
        let points = crash.scope(None);
        points.point(COMMIT_WRITTEN);
        tx.commit().map_err(&failed)?;
        points.point(COMMIT_DONE);
        Ok(())
    }

    fn try_acquire(&mut self, task: &TaskId) -> Result<FencingToken, StoreError> {
        const OP: &str = "take the lease";
        let path = self.place.path().to_owned();
        let failed = failed(OP, &path);
        let tx = self.begin(OP)?;
        let fence: i64 = tx
            .query_row("UPDATE tasks SET fence = fence + 1 WHERE id = ?1 RETURNING fence", [task.as_str()], |row| {
                row.get(0)
            })
            .map_err(|error| match error {
                rusqlite::Error::QueryReturnedNoRows => unknown(task),
                error => failed(error),
            })?;
        tx.commit().map_err(&failed)?;
        Ok(FencingToken(fence))
    }

    fn try_commit(&mut self, commit: &Commit<'_>) -> Result<(), StoreError> {
        const OP: &str = "commit";
        let path = self.place.path().to_owned();
        let failed = failed(OP, &path);
        let crash = self.crash.clone();
        let points = crash.scope(commit.events().iter().find_map(Event::step));
        let (task, run) = (commit.lease().task(), commit.lease().run());
        let identity = self.connected()?.identity;
        let tx = self.begin(OP)?;
        check_fence(&tx, commit.lease(), &failed)?;
        for change in commit.steps() {
            change_step(&tx, task, change, &failed)?;
        }
        if !commit.places().are_unchanged() {
            change_places(&tx, task, commit.places(), &failed)?;
        }
        if let Some(change) = commit.task() {
            change_task(&tx, task, change, commit.at(), &failed)?;
        }
        for event in commit.events() {
            journal(&tx, task, run, commit.at(), event, &failed)?;
        }
        // Before a promise is made, not at each start: a call saved, and the end of that very step looks.
        if !matches!(commit.events(), [Event::StepStarted { .. }]) {
            identity.check(&path)?;
        }
        points.point(COMMIT_WRITTEN);
        tx.commit().map_err(&failed)?;
        points.point(COMMIT_DONE);
        Ok(())
    }
}

impl Source for SqliteStore {
    fn read<T>(&mut self, mut query: impl FnMut(&Tables<'_>) -> Result<T, StoreError>) -> Result<T, StoreError> {
        if let Access::Closed = self.access {
            self.access = Access::Reading(Box::new(SqliteReader::open_at(&self.place)?));
        }
        match &mut self.access {
            Access::Closed => unreachable!("it was opened for reading"),
            Access::Reading(reader) => reader.read(query),
            Access::Writing(Connected { conn, schema, .. }) => {
                query(&Tables { conn, path: self.place.path(), schema: *schema })
            }
        }
    }
}

impl Store for SqliteStore {
    fn create(&mut self, task: &NewTask<'_>) -> Result<(), StoreError> {
        lock::check_lock_name(self.place.path(), task.id)?;
        let result = self.try_create(task, FencingToken(0));
        self.poison_on_io(result)
    }

    fn create_leased(&mut self, task: &NewTask<'_>) -> Result<Lease, StoreError> {
        lock::check_lock_name(self.place.path(), task.id)?;
        let file = lock::try_lock(self.place.path(), task.id)?;
        let token = FencingToken(1);
        let result = self.try_create(task, token);
        self.poison_on_io(result)?;
        Ok(Lease::new(task.id.clone(), task.run.clone(), token, Box::new(file)))
    }

    fn acquire(&mut self, task: &TaskId, run: &RunId) -> Result<Lease, StoreError> {
        // A lock file for a task that does not exist would be there for ever.
        if !self.read(|tables| tables.has_task(task))? {
            return Err(unknown(task));
        }
        let file = lock::try_lock(self.place.path(), task)?;
        self.migrate()?;
        let token = self.try_acquire(task);
        let token = self.poison_on_io(token)?;
        Ok(Lease::new(task.clone(), run.clone(), token, Box::new(file)))
    }

    fn commit(&mut self, commit: &Commit<'_>) -> Result<(), StoreError> {
        let result = self.try_commit(commit);
        self.poison_on_io(result)
    }
}

impl Drop for SqliteStore {
    fn drop(&mut self) {
        if self.poisoned {
            std::mem::forget(std::mem::replace(&mut self.access, Access::Closed));
        }
    }
}

fn unknown(task: &TaskId) -> StoreError {
    StoreError::new(ErrorKind::Missing, format!("there is no task `{task}`"))
}

type Failed<'a> = &'a dyn Fn(rusqlite::Error) -> StoreError;

fn check_fence(tx: &Transaction<'_>, lease: &Lease, failed: Failed<'_>) -> Result<(), StoreError> {
    let fence: i64 = tx
        .prepare_cached("SELECT fence FROM tasks WHERE id = ?1")
        .and_then(|mut query| query.query_row([lease.task().as_str()], |row| row.get(0)))
        .map_err(|error| match error {
            rusqlite::Error::QueryReturnedNoRows => changed_by_others(&format!("task `{}`", lease.task())),
            error => failed(error),
        })?;
    if FencingToken(fence) == lease.token() {
        return Ok(());
    }
    let why = format!("task `{}` was taken over by a later run; this run stops", lease.task());
    Err(StoreError::new(ErrorKind::Fenced, why))
}

fn change_step(tx: &Transaction<'_>, task: &TaskId, change: &StepChange, failed: Failed<'_>) -> Result<(), StoreError> {
    const STEP: &str = "UPDATE steps SET status = ?1, attempts = ?2, forgiven = ?3, output = ?8
         WHERE task_id = ?4 AND status = ?5 AND attempts = ?6 AND forgiven = ?7 AND idx = ?9";
    const COMPLETION: &str =
        "UPDATE tasks SET completion_status = ?1, completion_attempts = ?2, completion_forgiven = ?3
         WHERE id = ?4 AND completion_status = ?5 AND completion_attempts = ?6 AND completion_forgiven = ?7";
    let StepChange { step, from, to, output } = change;
    let id = task.as_str();
    let was = (from.status.as_str(), from.attempts, from.forgiven);
    let is = (to.status.as_str(), to.attempts, to.forgiven);
    let changed = match step {
        Some(step) => tx
            .prepare_cached(STEP)
            .and_then(|mut row| row.execute(params![is.0, is.1, is.2, id, was.0, was.1, was.2, output, step])),
        None => tx
            .prepare_cached(COMPLETION)
            .and_then(|mut row| row.execute(params![is.0, is.1, is.2, id, was.0, was.1, was.2])),
    };
    expect_one(changed.map_err(failed)?, || match step {
        Some(step) => format!("step {step} of task `{task}`"),
        None => format!("the completion of task `{task}`"),
    })
}

fn change_places(tx: &Transaction<'_>, task: &TaskId, places: &Places, failed: Failed<'_>) -> Result<(), StoreError> {
    const SQL: &str = "UPDATE tasks SET home = coalesce(?1, home), artifacts = coalesce(?2, artifacts),
         completion = coalesce(?3, completion) WHERE id = ?4";
    let Places { home, artifacts, completion } = places;
    let changed =
        tx.prepare_cached(SQL).and_then(|mut row| row.execute(params![home, artifacts, completion, task.as_str()]));
    expect_one(changed.map_err(failed)?, || format!("task `{task}`"))
}

fn change_task(
    tx: &Transaction<'_>,
    task: &TaskId,
    change: TaskChange,
    at: f64,
    failed: Failed<'_>,
) -> Result<(), StoreError> {
    if change.to == TaskStatus::Done {
        // The state holds that finished steps are a prefix. Before that is made final, the rows are asked.
        let open: bool = tx
            .query_row(
                "SELECT EXISTS (SELECT 1 FROM steps WHERE task_id = ?1 AND status <> 'done')",
                [task.as_str()],
                |row| row.get(0),
            )
            .map_err(failed)?;
        expect_one(usize::from(!open), || format!("an open step before the last of task `{task}`"))?;
    }
    let changed = tx
        .prepare_cached("UPDATE tasks SET status = ?1, updated_at = ?2 WHERE id = ?3 AND status = ?4")
        .and_then(|mut update| update.execute(params![change.to.as_str(), at, task.as_str(), change.from.as_str()]))
        .map_err(failed)?;
    expect_one(changed, || format!("task `{task}`"))
}

fn expect_one(changed: usize, what: impl FnOnce() -> String) -> Result<(), StoreError> {
    if changed == 1 {
        return Ok(());
    }
    Err(changed_by_others(&what()))
}

fn changed_by_others(what: &str) -> StoreError {
    let why = format!("{what} is not as this run left it: somebody else has changed the database; see `agent verify`");
    StoreError::new(ErrorKind::Conflict, why)
}

fn journal(
    tx: &Transaction<'_>,
    task: &TaskId,
    run: &RunId,
    at: f64,
    event: &Event,
    failed: Failed<'_>,
) -> Result<(), StoreError> {
    const SQL: &str = "INSERT INTO events(ts, task_id, run_id, kind, step_idx, data) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    let (kind, data) = (event.kind().as_str(), codec::event_data(event).to_string());
    let written = tx
        .prepare_cached(SQL)
        .and_then(|mut row| row.execute(params![at, task.as_str(), run.as_str(), kind, event.step(), data]));
    // A trigger of somebody else's can swallow the row without an error.
    expect_one(written.map_err(failed)?, || format!("the journal of task `{task}`"))
}

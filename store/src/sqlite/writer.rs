//! Writing: one transaction per commit, guarded by the lease's token and by the rows' present state.

use std::fs::File;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use rusqlite::{Transaction, TransactionBehavior};

use super::Source;
use super::connection::{Access, Connected};
use super::error::failed;
use super::lock;
use super::place::{Place, sync_folder};
use super::reader::SqliteReader;
use super::schema::Schema;
use super::tables::Tables;
use super::transaction::{self, exists};
use crate::commit::Commit;
use crate::crash::{COMMIT_DONE, COMMIT_WRITTEN, Crash};
use crate::error::{ErrorKind, StoreError};
use crate::lease::{Fence, FencingToken, Lease};
use crate::model::{Event, RunId, TaskId};
use crate::store::Store;

/// A database that is open for writing.
pub struct SqliteStore {
    place: Place,
    access: Access,
    crash: Crash,
    /// Set when a write or sync failed. What the disk holds is then unknown, so the connection is never closed: that
    /// would move the WAL into the database on the strength of pages that may not have arrived.
    poisoned: bool,
}

/// SQLite shares within a process what it knows of a file: a connection that is opened for writing while a thread
/// beside it only looks gets the other's index, which may not be written.
static OPENING: Mutex<()> = Mutex::new(());

impl SqliteStore {
    /// Opens an existing database. It is opened for writing when its first lease is taken, and not before: a run that
    /// is refused because another agent is at work must leave that agent's database as it is.
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
        let _one_at_a_time = OPENING.lock().unwrap_or_else(PoisonError::into_inner);
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

    /// After an error that leaves it open what the files hold, the connection is not closed in the ordinary way.
    fn poison_on_io<T>(&mut self, result: Result<T, StoreError>) -> Result<T, StoreError> {
        result.map_err(|error| match (error.kind(), &self.access) {
            (ErrorKind::Io | ErrorKind::Unsettled, _) => {
                self.poisoned = true;
                error
            }
            (ErrorKind::Conflict, Access::Writing(connected)) => match connected.rescue(self.place.path()) {
                Some(rescued) => {
                    self.poisoned = true;
                    StoreError::new(ErrorKind::Conflict, format!("{error}{rescued}"))
                }
                None => error,
            },
            _ => error,
        })
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

    fn try_commit(&mut self, commit: &Commit) -> Result<(), StoreError> {
        const OP: &str = "commit";
        let path = self.place.path().to_owned();
        let failed = failed(OP, &path);
        let crash = self.crash.clone();
        let points = crash.scope(commit.events().iter().find_map(Event::step));
        let mut opened = self.connected()?.opened;
        let tx = self.begin(OP)?;
        transaction::write(&tx, commit, &path, &failed)?;
        // Before a promise is made, not at each start: a call saved, and the end of that very step looks.
        match commit.events() {
            [Event::StepStarted { .. }] => {}
            // What is committed is in the WAL, wherever its database is: that is soon enough found out by every other
            // step.
            [Event::StepFinished { step, .. }] if step % 2 == 1 => opened.check_wal(&path)?,
            _ => opened.check(&path)?,
        }
        points.point(COMMIT_WRITTEN);
        tx.commit().map_err(&failed)?;
        points.point(COMMIT_DONE);
        self.connected()?.opened = opened;
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
    fn acquire(&mut self, task: &TaskId, run: &RunId) -> Result<Lease, StoreError> {
        // A lock file for a task that does not exist would be there for ever.
        if !self.read(|tables| tables.has_task(task))? {
            return Err(unknown(task));
        }
        let file = lock::try_lock(self.place.path(), task)?;
        self.migrate()?;
        let token = self.try_acquire(task);
        let token = self.poison_on_io(token)?;
        Ok(lease(task, run, token, file))
    }

    fn reserve(&mut self, task: &TaskId, run: &RunId) -> Result<Lease, StoreError> {
        lock::check_lock_name(self.place.path(), task)?;
        if self.read(|tables| tables.has_task(task))? {
            return Err(exists(task, self.place.path()));
        }
        let file = lock::try_lock(self.place.path(), task)?;
        Ok(lease(task, run, FencingToken(1), file))
    }

    /// The kernel's lock has no end, so there is nothing to put off: the token alone tells.
    fn renew(&mut self, lease: &Lease) -> Result<(), StoreError> {
        let path = self.place.path().to_owned();
        transaction::check_fence(&self.connected()?.conn, lease.fence(), &failed("renew the lease", &path))
    }

    fn release(&mut self, lease: Lease) -> Result<(), StoreError> {
        drop(lease);
        Ok(())
    }

    fn commit(&mut self, commit: &Commit) -> Result<(), StoreError> {
        if commit.created().is_some() {
            lock::check_lock_name(self.place.path(), &commit.fence().task)?;
        }
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
    StoreError::new(ErrorKind::NoTask, format!("there is no task `{task}`"))
}

fn lease(task: &TaskId, run: &RunId, token: FencingToken, file: File) -> Lease {
    Lease::new(Fence { task: task.clone(), run: run.clone(), token }, Box::new(file))
}

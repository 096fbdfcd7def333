//! The embedded backend: one SQLite file in WAL mode, `synchronous=FULL`.
//!
//! [`SqliteReader`] reads and leaves no trace; [`SqliteStore`] writes. Both read through the same [`tables`] queries.

mod backup;
mod beside;
mod columns;
mod configure;
mod connection;
mod error;
mod lock;
mod opened;
mod owner;
mod place;
mod reader;
mod restore;
mod schema;
mod scratch;
mod tables;
mod transaction;
mod uri;
mod writer;

pub use backup::backup;
pub use columns::Later;
pub use lock::lock_path;
pub use place::Place;
pub use reader::SqliteReader;
pub use restore::restore;
pub use schema::VERSION;
pub use writer::SqliteStore;

use crate::error::StoreError;
use crate::model::{JournalEntry, TaskId, TaskState};
use crate::store::{Question, Reader, StepRow, TaskRow};
use tables::Tables;

/// Something that queries can be run on; every such thing is a [`Reader`].
trait Source {
    /// Runs `query`, more than once where the file changed underneath it.
    fn read<T>(&mut self, query: impl FnMut(&Tables<'_>) -> Result<T, StoreError>) -> Result<T, StoreError>;
}

/// One state of a database, within a read transaction.
struct Snapshot<'t>(&'t Tables<'t>);

impl Source for Snapshot<'_> {
    fn read<T>(&mut self, mut query: impl FnMut(&Tables<'_>) -> Result<T, StoreError>) -> Result<T, StoreError> {
        query(self.0)
    }
}

impl<S: Source> Reader for S {
    fn snapshot(&mut self, read: &mut dyn FnMut(&mut dyn Reader) -> Result<(), StoreError>) -> Result<(), StoreError> {
        self.read(|tables| tables.at_once(|| read(&mut Snapshot(tables))))
    }

    #[expect(clippy::redundant_closure_for_method_calls, reason = "a path is not general enough over the lifetime")]
    fn tasks(&mut self) -> Result<Vec<Result<TaskRow, StoreError>>, StoreError> {
        self.read(|tables| tables.tasks())
    }

    fn task(&mut self, task: &TaskId) -> Result<Option<TaskRow>, StoreError> {
        self.read(|tables| tables.task(task))
    }

    fn source(&mut self, task: &TaskId) -> Result<Option<String>, StoreError> {
        self.read(|tables| tables.source(task))
    }

    #[expect(clippy::redundant_closure_for_method_calls, reason = "a path is not general enough over the lifetime")]
    fn questions(&mut self) -> Result<Vec<Result<Question, StoreError>>, StoreError> {
        self.read(|tables| tables.questions())
    }

    fn load(&mut self, task: &TaskId) -> Result<Option<TaskState>, StoreError> {
        self.read(|tables| tables.load(task))
    }

    fn steps(&mut self, task: &TaskId, from: u32, limit: u32) -> Result<Vec<StepRow>, StoreError> {
        self.read(|tables| tables.steps(task, from, limit))
    }

    fn output(
        &mut self,
        task: &TaskId,
        step: u32,
    ) -> Result<Option<serde_json::Map<String, serde_json::Value>>, StoreError> {
        self.read(|tables| tables.output(task, step))
    }

    fn completion(&mut self, task: &TaskId) -> Result<Option<serde_json::Map<String, serde_json::Value>>, StoreError> {
        self.read(|tables| tables.completion(task))
    }

    fn journal(&mut self, task: Option<&TaskId>, after: i64, limit: u32) -> Result<Vec<JournalEntry>, StoreError> {
        self.read(|tables| tables.journal(task, after, limit))
    }

    #[expect(clippy::redundant_closure_for_method_calls, reason = "a path is not general enough over the lifetime")]
    fn integrity(&mut self) -> Result<Vec<String>, StoreError> {
        self.read(|tables| tables.integrity())
    }
}

//! The queries. They read every schema version that this program knows, so that reading never needs a migration.

use std::path::Path;

use rusqlite::{Connection, OptionalExtension, Row, params};
use serde_json::{Map, Value};

use super::columns;
use super::error::failed;
use super::schema::Schema;
use crate::error::{ErrorKind, StoreError};
use crate::limits;
use crate::model::{
    JournalEntry, Origin, RunId, StepState, StepStatus, TaskId, TaskState, Timestamp, UnknownWord, Wait, codec,
};
use crate::store::{Question, StepRow, TaskRow};

/// A connection with what is known of its schema.
pub(super) struct Tables<'c> {
    pub(super) conn: &'c Connection,
    pub(super) path: &'c Path,
    pub(super) schema: Schema,
}

impl Tables<'_> {
    fn is_empty(&self) -> bool {
        self.schema == Schema::Empty
    }

    /// True where the database has what that version added.
    fn has(&self, version: u32) -> bool {
        matches!(self.schema, Schema::Version(found) if found >= version)
    }

    /// The columns, where the database has what that version added; else what stands for them in older ones.
    fn columns(&self, version: u32, columns: &'static str, before: &'static str) -> &'static str {
        if self.has(version) { columns } else { before }
    }

    fn state_columns(&self) -> String {
        let forgiven = self.columns(2, "forgiven", "0");
        format!("status, attempts, {forgiven}, {}", self.columns(4, columns::LATER, columns::BEFORE))
    }

    fn task_columns(&self) -> String {
        const PLACES: &str = "home, artifacts, completion_status, completion_attempts, completion_forgiven";
        let places = self.columns(3, PLACES, "NULL, NULL, 'pending', 0, 0");
        let origin = self.columns(4, "inputs, labels, plan_sha256, language", "NULL, NULL, NULL, NULL");
        format!("id, goal, status, created_at, updated_at, {places}, {origin}")
    }

    pub(super) fn tasks(&self) -> Result<Vec<Result<TaskRow, StoreError>>, StoreError> {
        if self.is_empty() {
            return Ok(Vec::new());
        }
        let sql = format!("SELECT {} FROM tasks ORDER BY created_at, rowid", self.task_columns());
        self.rows("list the tasks", &sql, [], |row| Ok(self.task_row(row)))
    }

    pub(super) fn task(&self, task: &TaskId) -> Result<Option<TaskRow>, StoreError> {
        if self.is_empty() {
            return Ok(None);
        }
        let sql = format!("SELECT {} FROM tasks WHERE id = ?1", self.task_columns());
        Ok(self.rows("read the task", &sql, [task.as_str()], |row| self.task_row(row))?.pop())
    }

    pub(super) fn has_task(&self, task: &TaskId) -> Result<bool, StoreError> {
        let found = self.rows("look for the task", "SELECT 1 FROM tasks WHERE id = ?1", [task.as_str()], |_| Ok(()))?;
        Ok(!found.is_empty())
    }

    fn task_row(&self, row: &Row<'_>) -> Result<TaskRow, StoreError> {
        let id: String = row.get(0).map_err(failed("read a task", self.path))?;
        let bad = |why: rusqlite::Error| self.corrupt(&format!("task `{id}`: {why}"));
        let status: String = row.get(2).map_err(bad)?;
        Ok(TaskRow {
            status: status.parse().map_err(|error| self.corrupt(&format!("task `{id}`: {error}")))?,
            completion: columns::counted(row, 7)
                .map_err(|why| self.corrupt(&format!("task `{id}`, its completion: {why}")))?,
            origin: self.origin(row, 10).map_err(|why| self.corrupt(&format!("task `{id}`: {why}")))?,
            goal: row.get(1).map_err(bad)?,
            created_at: row.get(3).map(Timestamp::from_seconds).map_err(bad)?,
            updated_at: row.get(4).map(Timestamp::from_seconds).map_err(bad)?,
            home: row.get(5).map_err(bad)?,
            artifacts: row.get(6).map_err(bad)?,
            id: self.task_id(id)?,
        })
    }

    fn origin(&self, row: &Row<'_>, first: usize) -> Result<Origin, String> {
        let why = |error: rusqlite::Error| error.to_string();
        let digest: Option<String> = row.get(first + 2).map_err(why)?;
        Ok(Origin {
            inputs: maybe_object(row, first, "its inputs column")?,
            labels: maybe_object(row, first + 1, "its labels column")?,
            digest: digest.map(|text| text.parse()).transpose().map_err(|error: UnknownWord| error.to_string())?,
            language: row.get(first + 3).map_err(why)?,
        })
    }

    pub(super) fn source(&self, task: &TaskId) -> Result<Option<String>, StoreError> {
        if !self.has(4) {
            return Ok(None);
        }
        const OP: &str = "read the plan file";
        let found = self.rows(OP, "SELECT source FROM tasks WHERE id = ?1", [task.as_str()], |row| {
            row.get::<_, Option<String>>(0).map_err(failed(OP, self.path))
        })?;
        Ok(found.into_iter().next().flatten())
    }

    pub(super) fn questions(&self) -> Result<Vec<Result<Question, StoreError>>, StoreError> {
        // Before version 4 nothing could wait.
        if !self.has(4) {
            return Ok(Vec::new());
        }
        let sql = format!(
            "SELECT {} FROM tasks WHERE status IN ('waiting', 'in_doubt') ORDER BY created_at, rowid",
            self.task_columns()
        );
        let tasks = self.rows("list what waits", &sql, [], |row| Ok(self.task_row(row)))?;
        let questions = tasks.into_iter().map(|task| task.and_then(|task| self.question(task)));
        Ok(questions.filter_map(Result::transpose).collect())
    }

    /// What the task asks a person; none where it waits for a time.
    fn question(&self, task: TaskRow) -> Result<Option<Question>, StoreError> {
        let Some(step) = self.load(&task.id)?.and_then(|state| state.step()) else { return Ok(None) };
        let Some(step) = self.steps(&task.id, step, 1)?.pop() else { return Ok(None) };
        let asks = step.state.status == StepStatus::InDoubt || matches!(step.state.wait, Some(Wait::Approval { .. }));
        Ok(asks.then_some(Question { task, step }))
    }

    /// Finds the cursor by bisection: settled steps are a prefix, so a long history costs a few look-ups.
    pub(super) fn load(&self, task: &TaskId) -> Result<Option<TaskState>, StoreError> {
        let Some(row) = self.task(task)? else { return Ok(None) };
        let failed = failed("read the steps", self.path);
        let last: Option<u32> = self
            .conn
            .prepare_cached("SELECT max(idx) FROM steps WHERE task_id = ?1")
            .and_then(|mut query| query.query_row([task.as_str()], |row| row.get(0)))
            .map_err(failed)?;
        let steps = last.map_or(0, |last| last.saturating_add(1));
        let (mut settled, mut open, mut last) = (0, steps, StepStatus::Pending);
        while settled < open {
            let middle = settled + (open - settled) / 2;
            let status = self.step_state(task, middle)?.status;
            if status.is_settled() {
                (settled, last) = (middle + 1, status);
            } else {
                open = middle;
            }
        }
        let cursor = TaskState::cursor_after(settled, last, row.status, row.completion.status);
        let current = if cursor < steps { self.step_state(task, cursor)? } else { row.completion };
        Ok(Some(TaskState { status: row.status, steps, cursor, current }))
    }

    fn step_state(&self, task: &TaskId, step: u32) -> Result<StepState, StoreError> {
        let sql = format!("SELECT {} FROM steps WHERE task_id = ?1 AND idx = ?2", self.state_columns());
        let found = self.rows("read a step", &sql, params![task.as_str(), step], |row| {
            columns::state(row, 0).map_err(|why| self.corrupt(&format!("task `{task}`, step {step}: {why}")))
        })?;
        found.into_iter().next().ok_or_else(|| self.corrupt(&format!("task `{task}` has no step {step}")))
    }

    pub(super) fn steps(&self, task: &TaskId, from: u32, limit: u32) -> Result<Vec<StepRow>, StoreError> {
        if self.is_empty() {
            return Ok(Vec::new());
        }
        let sql = format!(
            "SELECT idx, tool, input, output IS NOT NULL, {}, {} FROM steps
             WHERE task_id = ?1 AND idx >= ?2 ORDER BY idx LIMIT ?3",
            self.columns(4, "settings, checkpoint, answer", "NULL, NULL, NULL"),
            self.state_columns()
        );
        self.rows("read the steps", &sql, params![task.as_str(), from, limit], |row| self.step_row(task, row))
    }

    fn step_row(&self, task: &TaskId, row: &Row<'_>) -> Result<StepRow, StoreError> {
        let failed = failed("read a step", self.path);
        let idx: u32 = row.get(0).map_err(&failed)?;
        let corrupt = |why: String| self.corrupt(&format!("task `{task}`, step {idx}: {why}"));
        let input: String = row.get(2).map_err(&failed)?;
        Ok(StepRow {
            idx,
            tool: row.get(1).map_err(&failed)?,
            input: object(&input).map_err(|why| corrupt(format!("its input {why}")))?,
            has_output: row.get(3).map_err(&failed)?,
            settings: maybe_object(row, 4, "its settings column").map_err(corrupt)?,
            checkpoint: maybe_json(row, 5, "its checkpoint").map_err(corrupt)?,
            answer: maybe_object(row, 6, "its answer").map_err(corrupt)?,
            state: columns::state(row, 7).map_err(corrupt)?,
        })
    }

    pub(super) fn output(&self, task: &TaskId, step: u32) -> Result<Option<Map<String, Value>>, StoreError> {
        if self.is_empty() {
            return Ok(None);
        }
        let failed = failed("read an output", self.path);
        let text: Option<Option<String>> = self
            .conn
            .prepare_cached("SELECT output FROM steps WHERE task_id = ?1 AND idx = ?2 AND status = 'done'")
            .and_then(|mut query| query.query_row(params![task.as_str(), step], |row| row.get(0)).optional())
            .map_err(failed)?;
        let corrupt = |why: String| self.corrupt(&format!("task `{task}`, step {step}: its output {why}"));
        match text {
            None => Ok(None),
            Some(None) => Err(corrupt("is missing".to_owned())),
            Some(Some(text)) => object(&text).map(Some).map_err(corrupt),
        }
    }

    pub(super) fn completion(&self, task: &TaskId) -> Result<Option<Map<String, Value>>, StoreError> {
        if !self.has(2) {
            return Ok(None);
        }
        let found =
            self.rows("read the completion", "SELECT completion FROM tasks WHERE id = ?1", [task.as_str()], |row| {
                row.get::<_, Option<String>>(0).map_err(failed("read the completion", self.path))
            })?;
        let Some(text) = found.into_iter().next().flatten() else { return Ok(None) };
        object(&text).map(Some).map_err(|why| self.corrupt(&format!("task `{task}`: its completion {why}")))
    }

    pub(super) fn journal(
        &self,
        task: Option<&TaskId>,
        after: i64,
        limit: u32,
    ) -> Result<Vec<JournalEntry>, StoreError> {
        if self.is_empty() {
            return Ok(Vec::new());
        }
        const COLUMNS: &str = "SELECT seq, ts, task_id, run_id, kind, step_idx, data FROM events";
        const OP: &str = "read the journal";
        match task {
            Some(task) => {
                let first = self.columns(2, "coalesce((SELECT first_event FROM tasks WHERE id = ?1), 0)", "0");
                let sql = format!("{COLUMNS} WHERE task_id = ?1 AND seq > max(?2, {first} - 1) ORDER BY seq LIMIT ?3");
                self.rows(OP, &sql, params![task.as_str(), after, limit], |row| self.entry(row))
            }
            None => {
                let sql = format!("{COLUMNS} WHERE seq > ?1 ORDER BY seq LIMIT ?2");
                self.rows(OP, &sql, params![after, limit], |row| self.entry(row))
            }
        }
    }

    fn entry(&self, row: &Row<'_>) -> Result<JournalEntry, StoreError> {
        let failed = failed("read the journal", self.path);
        let seq: i64 = row.get(0).map_err(&failed)?;
        let data: Option<String> = row.get(6).map_err(&failed)?;
        let data = data.as_deref().map_or(Ok(Map::new()), object);
        Ok(JournalEntry {
            seq,
            ts: row.get(1).map(Timestamp::from_seconds).map_err(&failed)?,
            task: self.task_id(row.get(2).map_err(&failed)?)?,
            run: RunId::from_stored(row.get::<_, Option<String>>(3).map_err(&failed)?.unwrap_or_default()),
            kind: row.get(4).map_err(&failed)?,
            step: row.get(5).map_err(&failed)?,
            data: data.map_err(|why| self.corrupt(&format!("journal row {seq}: its data {why}")))?,
        })
    }

    /// What SQLite's own check finds. A file so damaged that the check cannot run is a finding too.
    pub(super) fn integrity(&self) -> Result<Vec<String>, StoreError> {
        let check = self.rows("check the database", "PRAGMA integrity_check", [], |row| {
            row.get::<_, String>(0).map_err(failed("check the database", self.path))
        });
        match check {
            Ok(lines) => Ok(lines.into_iter().filter(|line| line != "ok").map(|line| on_one_line(&line)).collect()),
            Err(error) if error.kind() == ErrorKind::Corrupt => Ok(vec![crate::line(&error)]),
            Err(error) => Err(error),
        }
    }

    /// Looks at every page where that is free, which is in small files.
    pub(super) fn check_small(&self) -> Result<(), StoreError> {
        let failed = failed("check the database", self.path);
        let bytes: i64 = self
            .conn
            .query_row("SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()", [], |row| {
                row.get(0)
            })
            .map_err(&failed)?;
        if bytes > limits::CHECK_AT_OPEN_BYTES {
            return Ok(());
        }
        let found: String = self.conn.query_row("PRAGMA quick_check(1)", [], |row| row.get(0)).map_err(&failed)?;
        if found == "ok" {
            return Ok(());
        }
        let why = format!("{} is damaged: {}", self.path.display(), on_one_line(&found));
        Err(StoreError::new(ErrorKind::Corrupt, why))
    }

    /// Runs `read` in one read transaction.
    pub(super) fn at_once<T>(&self, read: impl FnOnce() -> Result<T, StoreError>) -> Result<T, StoreError> {
        let snapshot = self.conn.unchecked_transaction().map_err(failed("begin to read", self.path))?;
        let answer = read();
        // Nothing was written, so there is nothing to keep.
        drop(snapshot);
        answer
    }

    fn rows<T>(
        &self,
        op: &str,
        sql: &str,
        params: impl rusqlite::Params,
        mut read: impl FnMut(&Row<'_>) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, StoreError> {
        let failed = failed(op, self.path);
        let mut query = self.conn.prepare_cached(sql).map_err(&failed)?;
        let mut rows = query.query(params).map_err(&failed)?;
        let mut found = Vec::new();
        while let Some(row) = rows.next().map_err(&failed)? {
            found.push(read(row)?);
        }
        Ok(found)
    }

    fn task_id(&self, id: String) -> Result<TaskId, StoreError> {
        TaskId::new(id).map_err(|error| self.corrupt(&error.to_string()))
    }

    fn corrupt(&self, why: &str) -> StoreError {
        StoreError::new(ErrorKind::Corrupt, format!("{} is out of order: {why}", self.path.display()))
    }
}

fn maybe_json(row: &Row<'_>, column: usize, what: &str) -> Result<Option<Value>, String> {
    let text: Option<String> = row.get(column).map_err(|error| error.to_string())?;
    text.map(|text| serde_json::from_str(&text).map_err(|error| format!("{what} is not JSON ({error})"))).transpose()
}

fn maybe_object(row: &Row<'_>, column: usize, what: &str) -> Result<Option<Map<String, Value>>, String> {
    let text: Option<String> = row.get(column).map_err(|error| error.to_string())?;
    text.map(|text| object(&text).map_err(|why| format!("{what} {why}"))).transpose()
}

fn object(text: &str) -> Result<Map<String, Value>, String> {
    match serde_json::from_str(text) {
        Ok(Value::Object(map)) => Ok(map),
        Ok(other) => Err(format!("is {}, not an object", codec::kind_of(&other))),
        Err(error) => Err(format!("is not JSON ({error})")),
    }
}

fn on_one_line(text: &str) -> String {
    text.replace('\n', "; ")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rusqlite::Connection;

    use crate::clock::SystemClock;
    use crate::crash::Crash;
    use crate::model::{Plan, TaskId};
    use crate::sqlite::SqliteStore;
    use crate::store::Reader;

    /// Starting a task once took longer the more other tasks had happened: its journal was looked for among theirs.
    #[test]
    fn the_journal_of_a_task_is_looked_for_where_it_begins() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state.db");
        let mut store = SqliteStore::open_or_create(&path, Crash::off()).unwrap();
        let plan = Arc::new(Plan { goal: "g".into(), steps: Vec::new() });
        let tasks = ["a", "b"].map(|id| TaskId::new(id).unwrap());
        for task in &tasks {
            crate::create(&mut store, &SystemClock, task, plan.clone(), None).unwrap();
        }
        let seq = store.journal(Some(&tasks[1]), 0, 9).unwrap()[0].seq;
        assert_eq!(seq, 2);

        let other = Connection::open(&path).unwrap();
        let kept = |id: &str| other.query_row("SELECT first_event FROM tasks WHERE id = ?1", [id], |row| row.get(0));
        assert_eq!((kept("a"), kept("b")), (Ok(1), Ok(seq)));
        // What stands before is not looked at; where the place is not known, everything is.
        for (first, found) in [(seq + 1, 0), (0, 1)] {
            other.execute("UPDATE tasks SET first_event = ?1 WHERE id = 'b'", [first]).unwrap();
            assert_eq!(store.journal(Some(&tasks[1]), 0, 9).unwrap().len(), found);
        }
    }
}

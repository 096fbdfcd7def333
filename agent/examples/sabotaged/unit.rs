//! A commit in pieces, and SQL of our own that writes them in whatever order and grouping a bug wants.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, Transaction, TransactionBehavior, params};
use store::crash::{COMMIT_DONE, COMMIT_WRITTEN};
use store::model::{Event, StepStatus, codec};
use store::{Commit, Crash, ErrorKind, NewTask, StepChange, StoreError};

use crate::plant::{Cut, Piece};

/// How long another writer is waited for.
const BUSY: Duration = Duration::from_secs(30);

/// Everything that a [`Commit`] says, to be changed freely.
#[derive(Clone)]
pub(crate) struct Unit {
    pub(crate) task: String,
    pub(crate) run: String,
    pub(crate) at: f64,
    pub(crate) steps: Vec<StepChange>,
    /// The status that the task gets.
    pub(crate) status: Option<&'static str>,
    /// The step that finishes, and its output.
    pub(crate) output: Option<(u32, String)>,
    pub(crate) events: Vec<Event>,
    /// Statements for the first transaction; `?1` is the task, `?2` the run, `?3` the time.
    pub(crate) extra: &'static [&'static str],
    /// The fencing token to check, if it is checked.
    pub(crate) fence: Option<i64>,
}

impl Unit {
    pub(crate) fn of(commit: &Commit<'_>) -> Self {
        let finished = commit.steps().iter().find(|change| change.to.status == StepStatus::Done);
        Self {
            task: commit.lease().task().as_str().to_owned(),
            run: commit.lease().run().as_str().to_owned(),
            at: commit.at(),
            steps: commit.steps().to_vec(),
            status: commit.task().map(|change| change.to.as_str()),
            output: finished.and_then(|change| Some((change.step, commit.output()?.to_owned()))),
            events: commit.events().to_vec(),
            extra: &[],
            fence: Some(commit.lease().token().0),
        }
    }

    pub(crate) fn has(&self, wanted: impl Fn(&Event) -> bool) -> bool {
        self.events.iter().any(wanted)
    }

    /// Whether it ends the task.
    pub(crate) fn ends_the_task(&self) -> bool {
        self.has(|event| matches!(event, Event::TaskDone | Event::TaskFailed { .. }))
    }

    fn says_anything(&self, piece: Piece) -> bool {
        match piece {
            Piece::Steps => !self.steps.is_empty(),
            Piece::Output => self.output.is_some(),
            Piece::Status => self.status.is_some(),
            Piece::Journal => !self.events.is_empty(),
            Piece::Recoveries => self.has(|event| !is_announcement(event)),
            Piece::Announcement => self.has(is_announcement),
        }
    }
}

fn is_announcement(event: &Event) -> bool {
    matches!(event, Event::RunStarted { .. })
}

/// The second connection to the agent's database.
pub(crate) struct Raw {
    conn: Connection,
    crash: Crash,
}

impl Raw {
    pub(crate) fn open(db: &Path, synchronous: &str, crash: Crash) -> rusqlite::Result<Self> {
        let conn = Connection::open(db)?;
        conn.busy_timeout(BUSY)?;
        conn.pragma_update(None, "synchronous", synchronous)?;
        Ok(Self { conn, crash })
    }

    /// Writes `unit`, cut as `cut` says; a transaction that would be empty is left out.
    pub(crate) fn write(&mut self, unit: &Unit, cut: Cut) -> Result<(), StoreError> {
        let wanted: Vec<_> =
            cut.transactions.iter().filter(|pieces| pieces.iter().any(|&piece| unit.says_anything(piece))).collect();
        let scope = unit.events.iter().find_map(Event::step);
        for (number, pieces) in wanted.iter().enumerate() {
            let points = (cut.points || number + 1 == wanted.len()).then(|| self.crash.scope(scope));
            let tx = Transaction::new_unchecked(&self.conn, TransactionBehavior::Immediate).map_err(failed)?;
            if number == 0 {
                check_fence(&tx, unit)?;
                extras(&tx, unit).map_err(failed)?;
            }
            for &piece in pieces.iter() {
                put(&tx, unit, piece).map_err(failed)?;
            }
            if let Some(points) = points {
                points.point(COMMIT_WRITTEN);
            }
            tx.commit().map_err(failed)?;
            if let Some(points) = points {
                points.point(COMMIT_DONE);
            }
        }
        Ok(())
    }

    /// Stores a task with its steps, and then the event that tells of it.
    pub(crate) fn create_in_two(&mut self, task: &NewTask<'_>) -> rusqlite::Result<()> {
        let id = task.id.as_str();
        let points = self.crash.scope(None);
        let tx = Transaction::new_unchecked(&self.conn, TransactionBehavior::Immediate)?;
        let sql = "INSERT INTO tasks(id, goal, status, created_at, updated_at) VALUES (?1, ?2, 'pending', ?3, ?3)";
        tx.execute(sql, params![id, task.plan.goal(), task.at])?;
        let mut steps = 0u32;
        for step in task.plan.steps() {
            let input = serde_json::Value::Object(step.input.clone()).to_string();
            let sql = "INSERT INTO steps(task_id, idx, tool, input) VALUES (?1, ?2, ?3, ?4)";
            tx.execute(sql, params![id, steps, step.tool, input])?;
            steps += 1;
        }
        points.point(COMMIT_WRITTEN);
        tx.commit()?;
        points.point(COMMIT_DONE);
        let data = codec::event_data(&Event::TaskCreated { steps }).to_string();
        let sql = "INSERT INTO events(ts, task_id, run_id, kind, data) VALUES (?1, ?2, ?3, 'task_created', ?4)";
        self.conn.execute(sql, params![task.at, id, task.run.as_str(), data])?;
        points.point(COMMIT_DONE);
        Ok(())
    }

    /// Runs statements of a bug; the first parameter is the task, the second the run.
    pub(crate) fn run(&self, sql: &str, task: &str, run: &str) -> rusqlite::Result<()> {
        execute(&self.conn, sql, task, run, now())
    }

    /// One number.
    pub(crate) fn number(&self, sql: &str, task: &str) -> rusqlite::Result<i64> {
        self.conn.query_row(sql, [task], |row| row.get(0))
    }

    /// Steps that are marked as running.
    pub(crate) fn running(&self, task: &str) -> rusqlite::Result<Vec<u32>> {
        let mut query = self.conn.prepare("SELECT idx FROM steps WHERE task_id = ?1 AND status = 'running'")?;
        query.query_map([task], |row| row.get(0))?.collect()
    }
}

pub(crate) fn now() -> f64 {
    use store::Clock as _;
    store::SystemClock.now()
}

/// Runs a statement that uses any of: `?1` the task, `?2` the run, `?3` the time.
pub(crate) fn execute(conn: &Connection, sql: &str, task: &str, run: &str, at: f64) -> rusqlite::Result<()> {
    let mut statement = conn.prepare(sql)?;
    let used = statement.parameter_count();
    if used >= 1 {
        statement.raw_bind_parameter(1, task)?;
    }
    if used >= 2 {
        statement.raw_bind_parameter(2, run)?;
    }
    if used >= 3 {
        statement.raw_bind_parameter(3, at)?;
    }
    statement.raw_execute().map(|_| ())
}

fn extras(tx: &Transaction<'_>, unit: &Unit) -> rusqlite::Result<()> {
    unit.extra.iter().try_for_each(|sql| execute(tx, sql, &unit.task, &unit.run, unit.at))
}

fn check_fence(tx: &Transaction<'_>, unit: &Unit) -> Result<(), StoreError> {
    let fence = tx.query_row("SELECT fence FROM tasks WHERE id = ?1", [&unit.task], |row| row.get::<_, i64>(0));
    let fence = fence.map_err(failed)?;
    match unit.fence {
        Some(token) if token != fence => {
            Err(StoreError::new(ErrorKind::Fenced, format!("task `{}` was taken over by a later run", unit.task)))
        }
        _ => Ok(()),
    }
}

fn put(tx: &Transaction<'_>, unit: &Unit, piece: Piece) -> rusqlite::Result<()> {
    match piece {
        Piece::Steps => unit.steps.iter().try_for_each(|change| put_step(tx, &unit.task, *change)),
        Piece::Output => match &unit.output {
            None => Ok(()),
            Some((step, output)) => {
                let sql = "UPDATE steps SET output = ?1 WHERE task_id = ?2 AND idx = ?3";
                tx.execute(sql, params![output, unit.task, step]).map(|_| ())
            }
        },
        Piece::Status => match unit.status {
            None => Ok(()),
            Some(status) => {
                let sql = "UPDATE tasks SET status = ?1, updated_at = ?2 WHERE id = ?3";
                tx.execute(sql, params![status, unit.at, unit.task]).map(|_| ())
            }
        },
        Piece::Journal => put_events(tx, unit, |_| true),
        Piece::Recoveries => put_events(tx, unit, |event| !is_announcement(event)),
        Piece::Announcement => put_events(tx, unit, is_announcement),
    }
}

/// Attempts are counted on from what the row has, since some bugs know nothing of the row.
fn put_step(tx: &Transaction<'_>, task: &str, change: StepChange) -> rusqlite::Result<()> {
    const SQL: &str = "UPDATE steps SET status = ?1, attempts = attempts + ?2, forgiven = ?3,
         output = CASE WHEN ?1 = 'done' THEN output END WHERE task_id = ?4 AND idx = ?5";
    let counted = i64::from(change.to.attempts) - i64::from(change.from.attempts);
    tx.execute(SQL, params![change.to.status.as_str(), counted, change.to.forgiven, task, change.step]).map(|_| ())
}

fn put_events(tx: &Transaction<'_>, unit: &Unit, wanted: impl Fn(&Event) -> bool) -> rusqlite::Result<()> {
    const SQL: &str = "INSERT INTO events(ts, task_id, run_id, kind, step_idx, data) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    for event in unit.events.iter().filter(|event| wanted(event)) {
        let data = codec::event_data(event).to_string();
        tx.execute(SQL, params![unit.at, unit.task, unit.run, event.kind().as_str(), event.step(), data])?;
    }
    Ok(())
}

#[expect(clippy::needless_pass_by_value, reason = "it is what map_err wants")]
pub(crate) fn failed(error: rusqlite::Error) -> StoreError {
    StoreError::new(ErrorKind::Io, format!("the bug does not work: {error}"))
}

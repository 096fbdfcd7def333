//! What one transaction writes: the rows of a commit, each as it must be before, and its events.

use std::path::Path;

use rusqlite::{Connection, Transaction, params};
use serde_json::Value;

use super::columns::Later;
use crate::commit::{Commit, Places, StepChange, TaskChange};
use crate::error::{ErrorKind, StoreError};
use crate::lease::{Fence, FencingToken};
use crate::model::{Event, Origin, PlanSource, TaskId, TaskStatus, Timestamp, codec};

/// Makes an error of SQLite's one of the store's.
pub(super) type Failed<'a> = &'a dyn Fn(rusqlite::Error) -> StoreError;

/// Writes all that the commit says. Whoever began the transaction ends it.
pub(super) fn write(tx: &Transaction<'_>, commit: &Commit, path: &Path, failed: Failed<'_>) -> Result<(), StoreError> {
    let task = &commit.fence().task;
    match commit.created() {
        Some(plan) => insert_task(tx, commit, plan, path, failed)?,
        None => check_fence(tx, commit.fence(), failed)?,
    }
    for change in commit.steps() {
        change_step(tx, task, change, failed)?;
    }
    if let Some(change) = commit.task() {
        change_task(tx, task, change, commit.at(), failed)?;
    }
    if !commit.places().are_unchanged() {
        change_places(tx, task, commit.places(), failed)?;
    }
    commit.events().iter().try_for_each(|event| journal(tx, commit, event, failed))
}

/// Where a task of that id is there already.
pub(super) fn exists(task: &TaskId, path: &Path) -> StoreError {
    StoreError::new(ErrorKind::Exists, format!("there is a task `{task}` already in {}", path.display()))
}

/// The rows of a new task. The steps are taken from the plan one at a time, however many there are.
fn insert_task(
    tx: &Transaction<'_>,
    commit: &Commit,
    plan: &dyn PlanSource,
    path: &Path,
    failed: Failed<'_>,
) -> Result<(), StoreError> {
    const TASK: &str = "INSERT INTO tasks(id, goal, status, created_at, updated_at, fence, first_event, inputs, labels,
         plan_sha256, language, source)
         VALUES (?1, ?2, ?3, ?4, ?4, ?5, (SELECT coalesce(max(seq), 0) + 1 FROM events), ?6, ?7, ?8, ?9, ?10)
         ON CONFLICT DO NOTHING";
    const STEP: &str = "INSERT INTO steps(task_id, idx, tool, input, settings) VALUES (?1, ?2, ?3, ?4, ?5)";
    let (Fence { task, token, .. }, next) = (commit.fence(), commit.next());
    let Origin { inputs, labels, digest, language } = plan.origin();
    let [inputs, labels] = [inputs, labels].map(|map| map.map(|map| Value::Object(map).to_string()));
    let (status, at, digest) =
        (next.status.as_str(), commit.at().as_seconds(), digest.map(|digest| digest.to_string()));
    let columns =
        params![task.as_str(), plan.goal(), status, at, token.0, inputs, labels, digest, language, plan.source()];
    if tx.execute(TASK, columns).map_err(failed)? == 0 {
        return Err(exists(task, path));
    }
    let mut insert = tx.prepare(STEP).map_err(failed)?;
    let mut count = 0;
    for step in plan.steps() {
        let step = step.into_owned();
        let input = Value::Object(step.input).to_string();
        let settings = step.settings.map(|settings| Value::Object(settings).to_string());
        let inserted = insert.execute(params![task.as_str(), count, step.tool, input, settings]).map_err(failed)?;
        expect_one(inserted, || format!("step {count} of task `{task}`"))?;
        count += 1;
    }
    if count == next.steps {
        return Ok(());
    }
    let why = format!("the plan of task `{task}` has {count} steps, it was announced with {}", next.steps);
    Err(StoreError::new(ErrorKind::Conflict, why))
}

/// Refuses a token that is not the last one given out.
pub(super) fn check_fence(conn: &Connection, fence: &Fence, failed: Failed<'_>) -> Result<(), StoreError> {
    let Fence { task, token, .. } = fence;
    let last: i64 = conn
        .prepare_cached("SELECT fence FROM tasks WHERE id = ?1")
        .and_then(|mut query| query.query_row([task.as_str()], |row| row.get(0)))
        .map_err(|error| match error {
            rusqlite::Error::QueryReturnedNoRows => changed_by_others(&format!("task `{task}`")),
            error => failed(error),
        })?;
    if FencingToken(last) == *token {
        return Ok(());
    }
    let why = format!("task `{task}` was taken over by a later run; this run stops");
    Err(StoreError::new(ErrorKind::Fenced, why))
}

fn change_step(tx: &Transaction<'_>, task: &TaskId, change: &StepChange, failed: Failed<'_>) -> Result<(), StoreError> {
    const STEP: &str = "UPDATE steps SET status = ?1, attempts = ?2, forgiven = ?3, wait = ?4, due = ?5,
         input_sha256 = ?6, effect = ?7, unknown = ?8, output = ?9,
         checkpoint = CASE ?1 WHEN 'done' THEN NULL ELSE coalesce(?10, checkpoint) END,
         answer = CASE WHEN ?22 THEN coalesce(?11, answer) END
         WHERE task_id = ?12 AND idx = ?13 AND status = ?14 AND attempts = ?15 AND forgiven = ?16 AND wait IS ?17
         AND due IS ?18 AND input_sha256 IS ?19 AND effect IS ?20 AND unknown IS ?21 AND (answer IS NOT NULL) = ?23";
    const COMPLETION: &str =
        "UPDATE tasks SET completion_status = ?1, completion_attempts = ?2, completion_forgiven = ?3
         WHERE id = ?4 AND completion_status = ?5 AND completion_attempts = ?6 AND completion_forgiven = ?7";
    let StepChange { step, from, to, output, checkpoint, answer } = change;
    let id = task.as_str();
    let (was, is) = ((from.status.as_str(), Later::of(from)), (to.status.as_str(), Later::of(to)));
    let changed = match step {
        Some(step) => tx.prepare_cached(STEP).and_then(|mut row| {
            let (Later { wait, due, input_sha256, effect, unknown, answered }, was_later) = (is.1, was.1);
            row.execute(params![
                is.0,
                to.attempts,
                to.forgiven,
                wait,
                due,
                input_sha256,
                effect,
                unknown,
                output,
                checkpoint,
                answer,
                id,
                step,
                was.0,
                from.attempts,
                from.forgiven,
                was_later.wait,
                was_later.due,
                was_later.input_sha256,
                was_later.effect,
                was_later.unknown,
                answered,
                was_later.answered,
            ])
        }),
        None => tx.prepare_cached(COMPLETION).and_then(|mut row| {
            row.execute(params![is.0, to.attempts, to.forgiven, id, was.0, from.attempts, from.forgiven])
        }),
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
    at: Timestamp,
    failed: Failed<'_>,
) -> Result<(), StoreError> {
    if change.to == TaskStatus::Done {
        // The state holds that settled steps are a prefix. Before that is made final, the rows are asked.
        let open: bool = tx
            .query_row(
                "SELECT EXISTS (SELECT 1 FROM steps WHERE task_id = ?1 AND status NOT IN ('done', 'skipped', 'failed'))",
                [task.as_str()],
                |row| row.get(0),
            )
            .map_err(failed)?;
        expect_one(usize::from(!open), || format!("an open step before the last of task `{task}`"))?;
    }
    let changed = tx
        .prepare_cached("UPDATE tasks SET status = ?1, updated_at = ?2 WHERE id = ?3 AND status = ?4")
        .and_then(|mut update| {
            update.execute(params![change.to.as_str(), at.as_seconds(), task.as_str(), change.from.as_str()])
        })
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

fn journal(tx: &Transaction<'_>, commit: &Commit, event: &Event, failed: Failed<'_>) -> Result<(), StoreError> {
    const SQL: &str = "INSERT INTO events(ts, task_id, run_id, kind, step_idx, data) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    let Fence { task, run, .. } = commit.fence();
    let (at, kind, data) = (commit.at().as_seconds(), event.kind().as_str(), codec::event_data(event).to_string());
    let written = tx
        .prepare_cached(SQL)
        .and_then(|mut row| row.execute(params![at, task.as_str(), run.as_str(), kind, event.step(), data]));
    // A trigger of somebody else's can swallow the row without an error.
    expect_one(written.map_err(failed)?, || format!("the journal of task `{task}`"))
}

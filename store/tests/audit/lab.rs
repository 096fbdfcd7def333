//! A database with everything in it, and what its audit says.

use std::path::PathBuf;
use std::sync::Arc;

use fixtures::Sandbox;
use rusqlite::Connection;
use serde_json::{Map, Value, json};
use store::audit::{Finding, audit};
use store::machine::Budget;
use store::machine::Command;
use store::model::{Failure, Plan, PlannedStep, RunId, TaskId, Terms};
use store::sqlite::{SqliteReader, SqliteStore};
use store::{Crash, SystemClock, TaskSession};

pub(crate) fn id(text: &str) -> TaskId {
    TaskId::new(text).unwrap()
}

pub(crate) fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        other => panic!("no object: {other}"),
    }
}

pub(crate) fn create(store: &mut SqliteStore, name: &str) -> TaskId {
    let step = PlannedStep::new("echo".to_owned(), object(json!({ "value": 1 })));
    let plan = Plan { goal: "echo".to_owned(), steps: vec![step; 4] };
    let task = id(name);
    store::create(store, &SystemClock, &task, Arc::new(plan), None).unwrap();
    task
}

/// Everything that can be in a journal. Rows 1 to 3 create the tasks `t`, `failed` and `other`; then of `t`:
///
/// | rows | |
/// | --- | --- |
/// | 4 | run 1 begins |
/// | 5, 6 | step 0 is started and finished |
/// | 7, 8 | step 1 is started, and its tool fails |
/// | 9 | step 1 is started; the process is killed |
/// | 10, 11 | run 2 recovers step 1 and begins |
/// | 12, 13 | step 1 is started and finished: 3 attempts |
/// | 14 | step 2 is started; it is running |
///
/// Step 3 is pending. The task `failed` fails with a limit of 1 at step 0, is retried, and fails again.
pub(crate) struct Lab {
    sandbox: Sandbox,
}

impl Lab {
    pub(crate) fn new() -> Self {
        let lab = Self { sandbox: Sandbox::new() };
        let mut store = SqliteStore::open_or_create(&lab.path(), Crash::off()).unwrap();
        let [task, failed, _] = ["t", "failed", "other"].map(|name| create(&mut store, name));

        let mut run = session(&mut store, &task);
        run.apply(&Command::Begin(Terms::limit(5))).unwrap();
        run.apply(&start(0, 5)).unwrap();
        run.finish(0, "echo", object(json!({ "value": 0 }))).unwrap();
        run.apply(&start(1, 5)).unwrap();
        run.apply(&Command::Fail { step: 1, failure: Failure::plain("no"), goes_on: false }).unwrap();
        run.apply(&start(1, 5)).unwrap();
        drop(run);
        let mut run = session(&mut store, &task);
        run.apply(&Command::Begin(Terms::limit(5))).unwrap();
        run.apply(&start(1, 5)).unwrap();
        run.finish(1, "echo", object(json!({ "value": 1 }))).unwrap();
        run.apply(&start(2, 5)).unwrap();
        drop(run);

        let mut run = session(&mut store, &failed);
        for round in 0..2 {
            run.apply(&Command::Begin(Terms::limit(1))).unwrap();
            run.apply(&start(0, 1)).unwrap();
            run.apply(&Command::Fail { step: 0, failure: Failure::plain("no"), goes_on: false }).unwrap();
            run.apply(&start(0, 1)).unwrap();
            if round == 0 {
                run.apply(&Command::Retry).unwrap();
            }
        }
        drop(run);
        drop(store);
        lab
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.sandbox.file("state.db")
    }

    pub(crate) fn change(&self, sql: &str) {
        let conn = Connection::open(self.path()).unwrap();
        conn.execute_batch(sql).unwrap();
    }

    pub(crate) fn findings(&self, task: Option<&str>) -> Vec<Finding> {
        audit(&mut SqliteReader::open(&self.path()).unwrap(), task.map(id).as_ref()).unwrap()
    }
}

pub(crate) fn session<'a>(store: &'a mut SqliteStore, task: &TaskId) -> TaskSession<'a> {
    TaskSession::open(store, &SystemClock, task, &RunId::random()).unwrap()
}

pub(crate) fn start(step: u32, max_attempts: u32) -> Command {
    Command::Start { step, tool: "echo".to_owned(), budget: Budget::of(max_attempts), intent: None }
}

//! What the checks share. Nothing in here knows a backend.

use std::cell::Cell;
use std::sync::Arc;

use serde_json::{Map, Value, json};
use store::machine::{Budget, Command, Next, next};
use store::model::{
    Event, Failure, JournalEntry, Plan, PlanSource, PlannedStep, RunId, TaskId, TaskState, Terms, Timestamp,
};
use store::{Clock, Commit, Fence, FencingToken, Reader, SessionError, StepRow, Store, TaskRow, TaskSession};

/// Where stores come from. One value is one storage; every handle on it is as a process of its own would have it.
pub(crate) trait Backend: Sync {
    /// A further handle on the same storage.
    fn connect(&self) -> Box<dyn Store>;
}

/// A clock that moves on by one second whenever it is read.
pub(crate) struct Ticking(Cell<f64>);

impl Ticking {
    pub(crate) fn from(start: f64) -> Self {
        Self(Cell::new(start))
    }
}

impl Clock for Ticking {
    fn now(&self) -> Timestamp {
        self.0.set(self.0.get() + 1.0);
        at(self.0.get())
    }
}

pub(crate) fn id(text: &str) -> TaskId {
    TaskId::new(text).unwrap()
}

pub(crate) fn run(text: &str) -> RunId {
    RunId::from_stored(text)
}

pub(crate) fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        other => panic!("no object: {other}"),
    }
}

pub(crate) fn plan(steps: u32) -> Plan {
    let step = |idx| PlannedStep::new("echo".to_owned(), object(json!({ "value": idx })));
    Plan { goal: format!("echo {steps} values"), steps: (0..steps).map(step).collect() }
}

/// So many seconds after the epoch.
pub(crate) fn at(seconds: f64) -> Timestamp {
    Timestamp::from_seconds(seconds)
}

/// The commit that stores a task which nobody holds.
pub(crate) fn creation(task: &TaskId, plan: impl PlanSource + 'static, by: &str, seconds: f64) -> Commit {
    Commit::create(Fence::unheld(task.clone(), run(by)), at(seconds), Arc::new(plan), None)
}

/// Creates the task `name` with `steps` echo steps at the time 100.
pub(crate) fn create(store: &mut dyn Store, name: &str, steps: u32) -> TaskId {
    let task = id(name);
    store.commit(&creation(&task, plan(steps), "maker", 100.0)).unwrap();
    task
}

pub(crate) fn session<'a>(store: &'a mut dyn Store, clock: &'a Ticking, task: &TaskId, by: &str) -> TaskSession<'a> {
    TaskSession::open(store, clock, task, &run(by)).unwrap()
}

pub(crate) fn begin() -> Command {
    Command::Begin(Terms::limit(3))
}

pub(crate) fn start(step: u32) -> Command {
    Command::Start { step, tool: "echo".to_owned(), budget: Budget::of(3), intent: None }
}

/// Runs `steps` further steps of the session's task, each with the output `{"value": idx}`.
pub(crate) fn run_steps(session: &mut TaskSession<'_>, steps: u32) {
    for _ in 0..steps {
        let Next::Step(step) = next(&session.state(), Timestamp::default()) else { panic!("no step is left") };
        session.apply(&start(step)).unwrap();
        session.finish(step, "echo", object(json!({ "value": step }))).unwrap();
    }
}

/// Runs the task to its end and says what the run recovered.
pub(crate) fn run_to_end(session: &mut TaskSession<'_>) -> Vec<u32> {
    let recovered = session.apply(&begin()).unwrap().iter().filter_map(recovered_step).collect();
    while let Next::Step(_) = next(&session.state(), Timestamp::default()) {
        run_steps(session, 1);
    }
    session.apply(&Command::Complete).unwrap();
    recovered
}

fn recovered_step(event: &Event) -> Option<u32> {
    match event {
        Event::StepRecovered { step } => Some(*step),
        _ => None,
    }
}

/// Makes the task fail at its first step, with one attempt per step.
pub(crate) fn fail_at_once(session: &mut TaskSession<'_>) {
    let start = Command::Start { step: 0, tool: "echo".to_owned(), budget: Budget::of(1), intent: None };
    session.apply(&Command::Begin(Terms::limit(1))).unwrap();
    session.apply(&start).unwrap();
    session.apply(&Command::Fail { step: 0, failure: Failure::plain("no"), goes_on: false }).unwrap();
    session.apply(&start).unwrap();
}

/// The fence of a process that does not know what happened since.
pub(crate) fn stale(task: &TaskId, token: FencingToken) -> Fence {
    Fence { task: task.clone(), run: run("stale"), token }
}

pub(crate) fn journal(reader: &mut dyn Reader, task: Option<&TaskId>) -> Vec<JournalEntry> {
    reader.journal(task, 0, u32::MAX).unwrap()
}

pub(crate) fn kinds(entries: &[JournalEntry]) -> Vec<&str> {
    entries.iter().map(|entry| entry.kind.as_str()).collect()
}

/// All that the trait lets one see: two equal values mean that nothing changed in between.
#[derive(Debug, PartialEq)]
pub(crate) struct Everything {
    tasks: Vec<(TaskRow, Option<TaskState>)>,
    steps: Vec<(StepRow, Option<Map<String, Value>>)>,
    journal: Vec<JournalEntry>,
}

pub(crate) fn everything(reader: &mut dyn Reader) -> Everything {
    let mut all = Everything { tasks: Vec::new(), steps: Vec::new(), journal: journal(reader, None) };
    for row in reader.tasks().unwrap().into_iter().map(Result::unwrap) {
        for step in reader.steps(&row.id, 0, u32::MAX).unwrap() {
            let output = reader.output(&row.id, step.idx).unwrap();
            all.steps.push((step, output));
        }
        let state = reader.load(&row.id).unwrap();
        all.tasks.push((row, state));
    }
    all
}

/// The store's kind of a session's error.
pub(crate) fn store_kind(error: SessionError) -> store::ErrorKind {
    match error {
        SessionError::Store(error) => error.kind(),
        SessionError::Refused(refused) => panic!("refused by the machine: {refused}"),
    }
}

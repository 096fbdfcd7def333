//! The three tables as plain data.

use serde_json::Value;

/// A row of `tasks`.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskRow {
    /// The task's id.
    pub id: String,
    /// Its goal.
    pub goal: String,
    /// `pending`, `running`, `done`, `failed` or what a later version adds.
    pub status: String,
}

/// A row of `steps`.
#[derive(Debug, Clone, PartialEq)]
pub struct StepRow {
    /// The task's id.
    pub task: String,
    /// The step's index, from 0.
    pub idx: usize,
    /// The tool's name.
    pub tool: String,
    /// The input; a JSON string with the raw text where it is not JSON.
    pub input: Value,
    /// The status.
    pub status: String,
    /// The committed output.
    pub output: Option<Value>,
    /// The counter of attempts.
    pub attempts: i64,
}

/// A row of `events`.
#[derive(Debug, Clone, PartialEq)]
pub struct EventRow {
    /// Position in the whole journal.
    pub seq: i64,
    /// Seconds since the epoch.
    pub ts: f64,
    /// The task's id.
    pub task: String,
    /// The run's id.
    pub run: String,
    /// The kind, e.g. `step_started`.
    pub kind: String,
    /// The step that it is about.
    pub step: Option<usize>,
    /// The event's own fields as they are stored.
    pub data: String,
}

impl EventRow {
    /// A field of the event's data, `Null` where there is none.
    #[must_use]
    pub fn field(&self, name: &str) -> Value {
        let data: Result<Value, _> = serde_json::from_str(&self.data);
        data.map_or(Value::Null, |mut data| data[name].take())
    }

    /// `12 step_started:2` for people.
    #[must_use]
    pub fn describe(&self) -> String {
        match self.step {
            Some(step) => format!("{} {}:{step}", self.seq, self.kind),
            None => format!("{} {}", self.seq, self.kind),
        }
    }
}

/// The three tables as they stood at one moment.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Tables {
    /// By id.
    pub tasks: Vec<TaskRow>,
    /// By task and index.
    pub steps: Vec<StepRow>,
    /// By `seq`.
    pub events: Vec<EventRow>,
}

impl Tables {
    /// The row of a task.
    #[must_use]
    pub fn task(&self, id: &str) -> Option<&TaskRow> {
        self.tasks.iter().find(|row| row.id == id)
    }

    /// The steps of a task in order.
    pub fn steps_of<'a>(&'a self, id: &'a str) -> impl Iterator<Item = &'a StepRow> {
        self.steps.iter().filter(move |row| row.task == id)
    }

    /// One step of a task.
    #[must_use]
    pub fn step(&self, id: &str, idx: usize) -> Option<&StepRow> {
        self.steps.iter().find(|row| row.task == id && row.idx == idx)
    }

    /// The journal of a task in order.
    pub fn events_of<'a>(&'a self, id: &'a str) -> impl Iterator<Item = &'a EventRow> {
        self.events.iter().filter(move |row| row.task == id)
    }

    /// Indexes of a task's steps that have this status.
    #[must_use]
    pub fn with_status(&self, id: &str, status: &str) -> Vec<usize> {
        self.steps_of(id).filter(|row| row.status == status).map(|row| row.idx).collect()
    }

    /// Whether a step is committed as done.
    #[must_use]
    pub fn is_done(&self, id: &str, idx: usize) -> bool {
        self.step(id, idx).is_some_and(|row| row.status == "done")
    }

    /// Everything of one task and nothing else.
    #[must_use]
    pub fn only(&self, id: &str) -> Self {
        Self {
            tasks: self.task(id).cloned().into_iter().collect(),
            steps: self.steps_of(id).cloned().collect(),
            events: self.events_of(id).cloned().collect(),
        }
    }
}

//! Which event of the journal becomes which line.

use serde::Serialize;
use serde_json::{Map, Value};
use store::model::{EventKind, JournalEntry, RunId, TaskId};
use store::{Reader, StoreError, limits};

const RESUMED: &str = "task_resumed";

/// What the log calls an event; `None` where it has no line of its own. A recovered step is named by the
/// `task_resumed` that follows it.
pub(super) fn event(entry: &JournalEntry, reader: &mut dyn Reader) -> Result<Option<&'static str>, StoreError> {
    let Some(kind) = EventKind::ALL.into_iter().find(|kind| kind.as_str() == entry.kind) else { return Ok(None) };
    Ok(match kind {
        EventKind::RunStarted => is_resumption(entry, reader)?.then_some(RESUMED),
        EventKind::StepFinished => Some("step_done"),
        // The report is no step, and that it was begun is nothing to ship: its end shows as `task_done`.
        EventKind::StepRecovered | EventKind::CompletionRecovered | EventKind::CompletionStarted => None,
        EventKind::TaskCreated
        | EventKind::StepStarted
        | EventKind::StepError
        | EventKind::TaskFailed
        | EventKind::TaskDone
        | EventKind::TaskRetried
        | EventKind::StepReleased
        | EventKind::CompletionError
        | EventKind::TaskRebound => Some(kind.as_str()),
    })
}

/// Whether a run goes on with what an earlier process began. The journal says so; where an earlier version wrote it, it
/// is inferred:
///
/// Every run does but the first. And the first one does where the process that created the task was to run it too, as
/// `inbox` does, and died in between: only those tasks have a completion, and only then are the two runs different.
fn is_resumption(entry: &JournalEntry, reader: &mut dyn Reader) -> Result<bool, StoreError> {
    if let Some(resumed) = entry.data.get("resumed").and_then(Value::as_bool) {
        return Ok(resumed);
    }
    let head = reader.journal(Some(&entry.task), 0, 2)?;
    match head.as_slice() {
        [created, first] if first.seq == entry.seq => {
            Ok(created.run != entry.run && reader.completion(&entry.task)?.is_some())
        }
        _ => Ok(true),
    }
}

/// One line, without its line break.
#[derive(Serialize)]
struct Line<'a> {
    event: &'a str,
    task: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    idx: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    ts: f64,
    /// The event's own fields, as the journal has them.
    #[serde(flatten)]
    data: &'a Map<String, Value>,
    run: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    seq: Option<i64>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    reconciled: bool,
}

/// The line of a journaled event, with its line break. `ts` is when it happened, also where it is reconciled.
pub(super) fn line(entry: &JournalEntry, event: &str, name: Option<&str>, reconciled: bool) -> Vec<u8> {
    text(&Line {
        event,
        task: entry.task.as_str(),
        idx: entry.step,
        name,
        ts: entry.ts,
        data: &entry.data,
        run: entry.run.as_str(),
        seq: Some(entry.seq),
        reconciled,
    })
}

/// The line that says that a run found nothing to do.
pub(super) fn already_done(task: &TaskId, run: &RunId, at: f64) -> Vec<u8> {
    text(&Line {
        event: "already_done",
        task: task.as_str(),
        idx: None,
        name: None,
        ts: at,
        data: &Map::new(),
        run: run.as_str(),
        seq: None,
        reconciled: false,
    })
}

fn text(line: &Line<'_>) -> Vec<u8> {
    let mut text = serde_json::to_vec(line).unwrap_or_else(|error| unreachable!("a line is plain JSON: {error}"));
    text.push(b'\n');
    text
}

/// What the steps of a task are called; read a page at a time, since they are asked for in order.
pub(super) struct Names {
    task: TaskId,
    first: u32,
    page: Vec<String>,
}

impl Names {
    pub(super) fn new(task: TaskId) -> Self {
        Self { task, first: 0, page: Vec::new() }
    }

    pub(super) fn of(&mut self, step: u32, reader: &mut dyn Reader) -> Result<&str, StoreError> {
        if step.checked_sub(self.first).is_none_or(|at| at as usize >= self.page.len()) {
            let rows = reader.steps(&self.task, step, limits::STEP_PAGE)?;
            self.first = step;
            self.page = rows
                .into_iter()
                .map(|row| tools::find(&row.tool).map_or(row.tool, |tool| tool.label(&row.input)))
                .collect();
        }
        // A journal that names a step which is not there is for `verify` to find.
        Ok(self.page.get((step - self.first) as usize).map_or("", String::as_str))
    }
}

//! Which event of the journal becomes which line.

use serde::Serialize;
use serde_json::{Map, Value};
use store::model::{EventKind, JournalEntry, RunId, TaskId};
use store::{Reader, StoreError, limits};
use tools::Registry;

use crate::fields::OwnFields;

const RESUMED: &str = "task_resumed";

/// What the log calls an event; `None` where it has no line of its own. A recovered step is named by the `task_resumed`
/// that follows it.
pub(super) fn event(entry: &JournalEntry, reader: &mut dyn Reader) -> Result<Option<&'static str>, StoreError> {
    let Ok(kind) = entry.kind.parse::<EventKind>() else { return Ok(None) };
    Ok(match kind {
        EventKind::RunStarted => is_resumption(entry, reader)?.then_some(RESUMED),
        EventKind::StepFinished => Some("step_done"),
        // How far a step is may be told very often, and is of use to its next attempt only.
        EventKind::StepCheckpoint => None,
        // The report is not a step, and that it was begun is nothing to ship: its end shows as `task_done`.
        EventKind::StepRecovered | EventKind::CompletionRecovered | EventKind::CompletionStarted => None,
        EventKind::TaskCreated
        | EventKind::StepStarted
        | EventKind::StepError
        | EventKind::StepFailed
        | EventKind::StepSkipped
        | EventKind::StepWaiting
        | EventKind::AnswerGiven
        | EventKind::StepInDoubt
        | EventKind::DoubtResolved
        | EventKind::TaskCancelled
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
    own: OwnFields<'a>,
    run: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    seq: Option<i64>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    reconciled: bool,
    /// Whether something of the event is left out.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    cut: bool,
}

/// The names that [`Line`] has for every event.
const TAKEN: [&str; 9] = ["event", "task", "idx", "name", "ts", "run", "seq", "reconciled", "cut"];

/// The line of a journaled event, with its line break. `ts` is when it happened, also where it is reconciled.
///
/// It is never longer than what a later run looks at: that run would take the event for one that the log lacks, and
/// write it once more, and so would each after it. Texts of other programs may be of any length; they are cut, or left
/// out where that is not enough. `None` where even then there is no line that a reader would find.
pub(super) fn line(entry: &JournalEntry, event: &str, name: Option<&str>, reconciled: bool) -> Option<Vec<u8>> {
    let line = |data: &Map<String, Value>, name: Option<&str>, cut| {
        let (task, run, own) = (entry.task.as_str(), entry.run.as_str(), OwnFields::of(data, &TAKEN));
        let seq = Some(entry.seq);
        let line = text(&Line {
            event,
            task,
            idx: entry.step,
            name,
            ts: entry.ts.as_seconds(),
            own,
            run,
            seq,
            reconciled,
            cut,
        });
        (line.len() <= limits::LOG_LINE_BYTES).then_some(line)
    };
    line(&entry.data, name, false).or_else(|| {
        let shortened = entry.data.iter().map(|(field, value)| (field.clone(), shortened(value))).collect();
        let name = name.map(first_part);
        line(&shortened, name, true).or_else(|| line(&Map::new(), name, true))
    })
}

fn shortened(value: &Value) -> Value {
    match value {
        Value::String(text) if text.len() > limits::ERROR_TEXT_BYTES => Value::from(first_part(text).to_owned() + "…"),
        other => other.clone(),
    }
}

fn first_part(text: &str) -> &str {
    let end = (0..=limits::ERROR_TEXT_BYTES.min(text.len())).rev().find(|&at| text.is_char_boundary(at));
    &text[..end.unwrap_or_default()]
}

/// The line that says that a run found nothing to do.
pub(super) fn already_done(task: &TaskId, run: &RunId, at: f64) -> Vec<u8> {
    text(&Line {
        event: "already_done",
        task: task.as_str(),
        idx: None,
        name: None,
        ts: at,
        own: OwnFields::of(&Map::new(), &TAKEN),
        run: run.as_str(),
        seq: None,
        reconciled: false,
        cut: false,
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
    tools: Registry,
    first: u32,
    page: Vec<String>,
}

impl Names {
    pub(super) fn new(task: TaskId, tools: Registry) -> Self {
        Self { task, tools, first: 0, page: Vec::new() }
    }

    pub(super) fn of(&mut self, step: u32, reader: &mut dyn Reader) -> Result<&str, StoreError> {
        if step.checked_sub(self.first).is_none_or(|at| at as usize >= self.page.len()) {
            let rows = reader.steps(&self.task, step, limits::STEP_PAGE)?;
            self.first = step;
            self.page = rows
                .into_iter()
                .map(|row| self.tools.find(&row.tool).map_or(row.tool, |tool| tool.label(&row.input)))
                .collect();
        }
        // A journal that names a step which is not there is for `verify` to find.
        Ok(self.page.get((step - self.first) as usize).map_or("", String::as_str))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn entry(run: &str, data: Value) -> JournalEntry {
        let Value::Object(data) = data else { unreachable!() };
        let (task, run) = (TaskId::new("t").unwrap(), RunId::from_stored(run));
        JournalEntry {
            seq: 7,
            ts: store::model::Timestamp::from_seconds(1.5),
            task,
            run,
            kind: "step_error".into(),
            step: Some(1),
            data,
        }
    }

    /// Events of another program had fields that are called like those of every line; the line then had two of a name,
    /// was read as none, and each run wrote it once more.
    #[test]
    fn no_name_is_given_twice_whatever_the_events_own_fields_are_called() {
        let taken: Map<String, Value> = TAKEN.iter().map(|name| ((*name).to_owned(), json!("theirs"))).collect();
        let mut data = taken.clone();
        data.insert("error".to_owned(), json!("no"));
        let entry = entry("r", Value::Object(data));
        let text = String::from_utf8(line(&entry, "step_error", Some("a.txt"), true).unwrap()).unwrap();
        assert_eq!(text.matches("\"seq\":").count(), 2, "its own, and one apart: {text}");
        let read: Value = serde_json::from_str(&text).unwrap();
        let due = json!({"event": "step_error", "task": "t", "idx": 1, "name": "a.txt", "ts": 1.5, "run": "r", "seq": 7,
            "reconciled": true, "error": "no", "data": taken});
        assert_eq!(read, due);
        let none = Map::new();
        let all = Line {
            event: "",
            task: "",
            idx: Some(0),
            name: Some(""),
            ts: 0.0,
            own: OwnFields::of(&none, &TAKEN),
            run: "",
            seq: Some(0),
            reconciled: true,
            cut: true,
        };
        let names = serde_json::to_value(all).unwrap();
        assert_eq!(names.as_object().unwrap().len(), TAKEN.len(), "{names}: each is in the list");
    }

    /// An error of 64 KiB, as other programs journal them, gave a line that no later run looked at.
    #[test]
    fn a_line_is_never_longer_than_what_a_later_run_looks_at() {
        let long = "é\n".repeat(limits::LOG_LINE_BYTES);
        let many: Map<String, Value> = (0..9_000).map(|number| (number.to_string(), json!(number))).collect();
        for (data, kept) in [
            (json!({"error": long, "tool": "x"}), true),
            (json!({"list": [long]}), false),
            (Value::Object(many), false),
        ] {
            let entry = entry("r", data);
            let line = line(&entry, "step_error", Some(&long), false).unwrap();
            assert!(line.len() <= limits::LOG_LINE_BYTES);
            let read: Value = serde_json::from_slice(&line).unwrap();
            assert_eq!((&read["seq"], &read["run"], &read["cut"]), (&json!(7), &json!("r"), &json!(true)));
            let error = read["error"].as_str().unwrap_or_default();
            assert_eq!(error.starts_with("é\né") && error.ends_with('…') && read["tool"] == "x", kept);
        }
        let whole = line(&entry("r", json!({"error": "x".repeat(60_000)})), "step_error", None, false).unwrap();
        assert!(whole.len() > 60_000 && !String::from_utf8(whole).unwrap().contains("cut"));
        assert_eq!(line(&entry(&"r".repeat(70_000), json!({})), "step_error", None, false), None);
    }
}

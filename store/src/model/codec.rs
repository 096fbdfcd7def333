//! The one place where the model meets JSON.

use serde_json::{Value, json};

pub use super::strict::kind_of;
use super::{Event, EventKind, FailReason, JournalEntry, Plan, PlanError, PlanReader, ReadPlanError, Terms, strict};

/// Reads the form of a plan file. Which tools there are and what they take is checked by their crate.
///
/// # Errors
/// Names the step and the field at fault.
pub fn plan_from_json(text: &str) -> Result<Plan, PlanError> {
    let mut reader = PlanReader::new(text.as_bytes());
    let mut steps = Vec::new();
    while let Some(step) = reader.next_step().map_err(|error| match error {
        ReadPlanError::Plan(error) => error,
        ReadPlanError::Io(error) => PlanError::whole(error.to_string()),
    })? {
        steps.push(step);
    }
    Ok(Plan { goal: reader.goal().to_owned(), steps })
}

/// Reads JSON that comes from elsewhere, such as the answer of a server: what cannot be kept as it stands is refused.
///
/// # Errors
/// One line: it is not JSON, it gives one name twice, or a whole number in it does not fit into 64 bits.
pub fn value_from_json(text: &str) -> Result<Value, String> {
    strict::parse(text)
}

/// The `data` column of an event: a JSON object with sorted keys.
#[must_use]
pub fn event_data(event: &Event) -> Value {
    match event {
        Event::TaskCreated { steps, home } => {
            with(json!({ "steps": steps }), [("home", home.clone().map(Value::from))])
        }
        Event::RunStarted { recovered, terms } => with(
            json!({ "recovered": recovered }),
            [
                ("max_attempts", terms.max_attempts.map(Value::from)),
                ("resumed", terms.resumed.map(Value::from)),
                ("artifacts", terms.artifacts.clone().map(Value::from)),
                ("home", terms.home.clone().map(Value::from)),
            ],
        ),
        Event::StepRecovered { .. } | Event::CompletionRecovered | Event::TaskDone => json!({}),
        Event::StepStarted { tool, attempt, .. } => json!({ "attempt": attempt, "tool": tool }),
        Event::StepFinished { tool, .. } => json!({ "tool": tool }),
        Event::StepError { error, .. } | Event::CompletionError { error } => json!({ "error": error }),
        Event::StepReleased { reason, .. } => json!({ "reason": reason }),
        Event::CompletionStarted { attempt } => json!({ "attempt": attempt }),
        Event::TaskFailed { reason, known, .. } => {
            let known = (!known.is_empty()).then(|| json!(known));
            with(json!({ "reason": reason.to_string() }), [("known", known)])
        }
        Event::TaskRetried { forgiven, .. } => json!({ "forgiven": forgiven }),
        Event::TaskRebound { home, completion } => with(
            json!({}),
            [
                ("home", home.clone().map(Value::from)),
                // What is not JSON is kept as it is: a journal must be able to hold whatever happened.
                (
                    "completion",
                    completion
                        .as_ref()
                        .map(|text| serde_json::from_str(text).unwrap_or_else(|_| Value::from(text.as_str()))),
                ),
            ],
        ),
    }
}

/// The object with those of the fields that there are.
fn with<const N: usize>(mut object: Value, fields: [(&str, Option<Value>); N]) -> Value {
    for (name, value) in fields {
        if let Some(value) = value {
            object[name] = value;
        }
    }
    object
}

/// Why a journal row does not decode.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("journal row {seq} ({kind}): {why}")]
pub struct BadEntry {
    seq: i64,
    kind: String,
    why: String,
}

/// Reads a journal row back. `None` for a kind that this version does not know: others may add kinds.
///
/// # Errors
/// The row has a known kind and lacks what that kind must have.
pub fn event_from_entry(entry: &JournalEntry) -> Result<Option<Event>, BadEntry> {
    let Some(kind) = EventKind::ALL.into_iter().find(|kind| kind.as_str() == entry.kind) else {
        return Ok(None);
    };
    let row = Row(entry);
    Ok(Some(match kind {
        EventKind::TaskCreated => {
            Event::TaskCreated { steps: row.count("steps")?, home: row.maybe("home", Row::text)? }
        }
        EventKind::RunStarted => Event::RunStarted {
            recovered: row.list("recovered", as_count)?,
            terms: Terms {
                max_attempts: row.maybe("max_attempts", Row::count)?,
                resumed: row.maybe("resumed", Row::flag)?,
                artifacts: row.maybe("artifacts", Row::text)?,
                home: row.maybe("home", Row::text)?,
            },
        },
        EventKind::StepRecovered => Event::StepRecovered { step: row.step()? },
        EventKind::StepStarted => {
            Event::StepStarted { step: row.step()?, tool: row.text("tool")?, attempt: row.count("attempt")? }
        }
        EventKind::StepFinished => Event::StepFinished { step: row.step()?, tool: row.text("tool")? },
        EventKind::StepError => Event::StepError { step: row.step()?, error: row.text("error")? },
        EventKind::TaskFailed => {
            let reason = match row.text("reason")? {
                reason if reason == FailReason::MaxAttempts.to_string() => FailReason::MaxAttempts,
                reason => FailReason::Other(reason),
            };
            let known = |row: &Row<'_>, field: &str| row.list(field, |text| text.as_str().map(str::to_owned));
            Event::TaskFailed { step: entry.step, reason, known: row.maybe("known", known)?.unwrap_or_default() }
        }
        EventKind::TaskDone => Event::TaskDone,
        EventKind::TaskRetried => Event::TaskRetried { step: entry.step, forgiven: row.count("forgiven")? },
        EventKind::StepReleased => Event::StepReleased { step: row.step()?, reason: row.text("reason")? },
        EventKind::CompletionStarted => Event::CompletionStarted { attempt: row.count("attempt")? },
        EventKind::CompletionRecovered => Event::CompletionRecovered,
        EventKind::CompletionError => Event::CompletionError { error: row.text("error")? },
        EventKind::TaskRebound => Event::TaskRebound {
            home: row.maybe("home", Row::text)?,
            completion: entry.data.get("completion").map(Value::to_string),
        },
    }))
}

/// Field access with errors that name the row.
struct Row<'a>(&'a JournalEntry);

impl Row<'_> {
    fn bad(&self, why: String) -> BadEntry {
        BadEntry { seq: self.0.seq, kind: self.0.kind.clone(), why }
    }

    fn step(&self) -> Result<u32, BadEntry> {
        self.0.step.ok_or_else(|| self.bad("names no step".to_owned()))
    }

    fn count(&self, field: &str) -> Result<u32, BadEntry> {
        let value = self.0.data.get(field).and_then(as_count);
        value.ok_or_else(|| self.bad(format!("has no count `{field}`")))
    }

    fn flag(&self, field: &str) -> Result<bool, BadEntry> {
        let value = self.0.data.get(field).and_then(Value::as_bool);
        value.ok_or_else(|| self.bad(format!("has no `{field}` that is true or false")))
    }

    fn list<T>(&self, field: &str, read: impl Fn(&Value) -> Option<T>) -> Result<Vec<T>, BadEntry> {
        let list = self.0.data.get(field).and_then(Value::as_array);
        let items = list.and_then(|list| list.iter().map(read).collect());
        items.ok_or_else(|| self.bad(format!("has no list `{field}` of the right kind")))
    }

    /// A field that older journals do not have.
    fn maybe<T>(
        &self,
        field: &str,
        read: impl FnOnce(&Self, &str) -> Result<T, BadEntry>,
    ) -> Result<Option<T>, BadEntry> {
        if self.0.data.contains_key(field) { read(self, field).map(Some) } else { Ok(None) }
    }

    fn text(&self, field: &str) -> Result<String, BadEntry> {
        let value = self.0.data.get(field).and_then(Value::as_str).map(str::to_owned);
        value.ok_or_else(|| self.bad(format!("has no text `{field}`")))
    }
}

fn as_count(value: &Value) -> Option<u32> {
    value.as_u64().and_then(|number| u32::try_from(number).ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{RunId, TaskId, Timestamp};
    use rstest::rstest;

    #[rstest]
    #[case("nonsense", "not JSON")]
    #[case("[]", "a plan is a JSON object, this is a list")]
    #[case(r#"{"steps":[]}"#, "field `goal`: missing")]
    #[case(r#"{"goal":7,"steps":[]}"#, "field `goal`: must be text, is a number")]
    #[case(r#"{"goal":"g"}"#, "field `steps`: missing")]
    #[case(r#"{"goal":"g","steps":{}}"#, "field `steps`: must be a list of steps, is an object")]
    #[case(r#"{"goal":"g","steps":[]}"#, "the plan has no steps")]
    #[case(r#"{"goal":"g","steps":[],"step":[]}"#, "field `step`: unknown field")]
    #[case(r#"{"goal":"g","steps":[1]}"#, "step 0: a step is a JSON object")]
    #[case(r#"{"goal":"g","steps":[{"input":{}}]}"#, "step 0: field `tool`: missing")]
    #[case(r#"{"goal":"g","steps":[{"tool":"echo"}]}"#, "step 0 (echo): field `input`: missing")]
    #[case(r#"{"goal":"g","steps":[{"tool":"echo","input":[]}]}"#, "step 0 (echo): field `input`: must be an object")]
    #[case(r#"{"goal":"g","steps":[{"tool":"echo","input":{},"id":1}]}"#, "step 0 (echo): field `id`: unknown")]
    fn a_bad_plan_is_refused_with_its_place(#[case] text: &str, #[case] says: &str) {
        let error = plan_from_json(text).expect_err("must be refused").to_string();
        assert!(error.contains(says), "{error}");
    }

    fn events() -> Vec<Event> {
        let tool = "echo".to_owned();
        vec![
            Event::TaskCreated { steps: 3, home: None },
            Event::TaskCreated { steps: 3, home: Some("../work".into()) },
            Event::RunStarted { recovered: vec![0, 2], terms: Terms::limit(3) },
            Event::RunStarted {
                recovered: vec![],
                terms: Terms {
                    resumed: Some(true),
                    artifacts: Some("a".into()),
                    home: Some(".".into()),
                    ..Terms::default()
                },
            },
            Event::RunStarted { recovered: vec![], terms: Terms::default() },
            Event::StepRecovered { step: 1 },
            Event::StepStarted { step: 1, tool: tool.clone(), attempt: 2 },
            Event::StepFinished { step: 1, tool },
            Event::StepError { step: 1, error: "no\u{e9}".into() },
            Event::StepReleased { step: 1, reason: "SIGTERM".into() },
            Event::CompletionStarted { attempt: 1 },
            Event::CompletionRecovered,
            Event::CompletionError { error: "no such folder".into() },
            Event::TaskFailed { step: Some(1), reason: FailReason::MaxAttempts, known: vec!["it died".into()] },
            Event::TaskFailed { step: None, reason: FailReason::MaxAttempts, known: vec![] },
            Event::TaskFailed { step: Some(1), reason: FailReason::Other("asteroid".into()), known: vec![] },
            Event::TaskDone,
            Event::TaskRetried { step: Some(1), forgiven: 3 },
            Event::TaskRetried { step: None, forgiven: 3 },
            Event::TaskRebound { home: Some("/srv".into()), completion: Some(r#"{"report":{"out":"x"}}"#.into()) },
        ]
    }

    fn entry(kind: &str, step: Option<u32>, data: Value) -> JournalEntry {
        let Value::Object(data) = data else { panic!("data is an object") };
        JournalEntry {
            seq: 9,
            ts: Timestamp::from_seconds(1.5),
            task: TaskId::new("t").unwrap(),
            run: RunId::from_stored("r"),
            kind: kind.to_owned(),
            step,
            data,
        }
    }

    #[test]
    fn every_event_survives_the_journal_with_sorted_keys() {
        for event in events() {
            let data = event_data(&event);
            let keys: Vec<_> = data.as_object().unwrap().keys().cloned().collect();
            assert!(keys.is_sorted(), "{keys:?}");
            let row = entry(event.kind().as_str(), event.step(), data);
            assert_eq!(event_from_entry(&row), Ok(Some(event)));
        }
    }

    #[test]
    fn a_kind_of_a_later_version_is_no_error_and_a_maimed_row_is_one() {
        assert_eq!(event_from_entry(&entry("step_danced", None, json!({}))), Ok(None));
        for (kind, step, data) in [
            ("step_started", None, json!({"tool": "echo", "attempt": 1})),
            ("step_started", Some(0), json!({"tool": "echo"})),
            ("step_started", Some(0), json!({"tool": "echo", "attempt": -1})),
            ("run_started", None, json!({"recovered": ["x"]})),
        ] {
            assert!(event_from_entry(&entry(kind, step, data)).is_err());
        }
    }
}

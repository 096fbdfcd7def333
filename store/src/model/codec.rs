//! The one place where the model meets JSON.

use serde_json::{Map, Value, json};

use super::{Event, EventKind, FailReason, JournalEntry, Plan, PlanError, PlannedStep, strict};
use crate::limits;

/// Reads the form of a plan file. Which tools there are and what they take is checked by their crate.
///
/// # Errors
/// Names the step and the field at fault.
pub fn plan_from_json(text: &str) -> Result<Plan, PlanError> {
    let value = strict::parse(text).map_err(|error| {
        // What is JSON and is refused all the same is no syntax error.
        let why = if error.is_data() { error.to_string() } else { format!("not JSON: {error}") };
        PlanError::whole(why)
    })?;
    let Value::Object(mut plan) = value else {
        return Err(PlanError::whole(format!("a plan is a JSON object, this is {}", kind_of(&value))));
    };
    let goal = take(&mut plan, "goal", "text", |value| match value {
        Value::String(text) => Ok(text),
        other => Err(other),
    })?;
    let steps = take(&mut plan, "steps", "a list of steps", |value| match value {
        Value::Array(list) => Ok(list),
        other => Err(other),
    })?;
    refuse_rest(&plan)?;
    if steps.is_empty() {
        return Err(PlanError::field("steps", "the plan has no steps"));
    }
    if steps.len() > limits::PLAN_STEPS {
        return Err(PlanError::field(
            "steps",
            format!("{} steps, at most {} are allowed", steps.len(), limits::PLAN_STEPS),
        ));
    }
    let steps = (0..).zip(steps).map(|(index, step)| planned_step(index, step)).collect::<Result<_, _>>()?;
    Ok(Plan { goal, steps })
}

fn planned_step(index: u32, value: Value) -> Result<PlannedStep, PlanError> {
    let Value::Object(mut step) = value else {
        let why = format!("a step is a JSON object with `tool` and `input`, this is {}", kind_of(&value));
        return Err(PlanError::whole(why).in_step(index, ""));
    };
    let tool = take(&mut step, "tool", "text", |value| match value {
        Value::String(text) => Ok(text),
        other => Err(other),
    })
    .map_err(|error| error.in_step(index, ""))?;
    let here = |error: PlanError| error.in_step(index, &tool);
    let input = take(&mut step, "input", "an object", |value| match value {
        Value::Object(map) => Ok(map),
        other => Err(other),
    })
    .map_err(here)?;
    refuse_rest(&step).map_err(here)?;
    Ok(PlannedStep { tool, input })
}

fn take<T>(
    object: &mut Map<String, Value>,
    field: &str,
    expected: &str,
    read: impl FnOnce(Value) -> Result<T, Value>,
) -> Result<T, PlanError> {
    let value = object.remove(field).ok_or_else(|| PlanError::field(field, "missing"))?;
    read(value).map_err(|other| PlanError::field(field, format!("must be {expected}, is {}", kind_of(&other))))
}

/// A field that nothing reads is most likely a slip in the name of one that something would read.
fn refuse_rest(object: &Map<String, Value>) -> Result<(), PlanError> {
    match object.keys().next() {
        Some(field) => Err(PlanError::field(field, "unknown field")),
        None => Ok(()),
    }
}

/// What a JSON value is, in words, for messages.
#[must_use]
pub fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// The `data` column of an event: a JSON object with sorted keys.
#[must_use]
pub fn event_data(event: &Event) -> Value {
    match event {
        Event::TaskCreated { steps } => json!({ "steps": steps }),
        Event::RunStarted { recovered, max_attempts: None } => json!({ "recovered": recovered }),
        Event::RunStarted { recovered, max_attempts: Some(limit) } => {
            json!({ "max_attempts": limit, "recovered": recovered })
        }
        Event::StepRecovered { .. } | Event::TaskDone => json!({}),
        Event::StepStarted { tool, attempt, .. } => json!({ "attempt": attempt, "tool": tool }),
        Event::StepFinished { tool, .. } => json!({ "tool": tool }),
        Event::StepError { error, .. } => json!({ "error": error }),
        Event::TaskFailed { reason, .. } => json!({ "reason": reason.to_string() }),
        Event::TaskRetried { forgiven, .. } => json!({ "forgiven": forgiven }),
    }
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
        EventKind::TaskCreated => Event::TaskCreated { steps: row.count("steps")? },
        EventKind::RunStarted => Event::RunStarted {
            recovered: row.counts("recovered")?,
            max_attempts: entry.data.contains_key("max_attempts").then(|| row.count("max_attempts")).transpose()?,
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
            Event::TaskFailed { step: row.step()?, reason }
        }
        EventKind::TaskDone => Event::TaskDone,
        EventKind::TaskRetried => Event::TaskRetried { step: row.step()?, forgiven: row.count("forgiven")? },
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

    fn counts(&self, field: &str) -> Result<Vec<u32>, BadEntry> {
        let list = self.0.data.get(field).and_then(Value::as_array);
        let counts = list.and_then(|list| list.iter().map(as_count).collect());
        counts.ok_or_else(|| self.bad(format!("has no list of counts `{field}`")))
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
    use crate::model::{RunId, TaskId};
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
            Event::TaskCreated { steps: 3 },
            Event::RunStarted { recovered: vec![0, 2], max_attempts: Some(3) },
            Event::RunStarted { recovered: vec![], max_attempts: None },
            Event::StepRecovered { step: 1 },
            Event::StepStarted { step: 1, tool: tool.clone(), attempt: 2 },
            Event::StepFinished { step: 1, tool },
            Event::StepError { step: 1, error: "no\u{e9}".into() },
            Event::TaskFailed { step: 1, reason: FailReason::MaxAttempts },
            Event::TaskFailed { step: 1, reason: FailReason::Other("asteroid".into()) },
            Event::TaskDone,
            Event::TaskRetried { step: 1, forgiven: 3 },
        ]
    }

    fn entry(kind: &str, step: Option<u32>, data: Value) -> JournalEntry {
        let Value::Object(data) = data else { panic!("data is an object") };
        JournalEntry {
            seq: 9,
            ts: 1.5,
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

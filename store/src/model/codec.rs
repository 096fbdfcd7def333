//! The one place where the model meets JSON.

use serde_json::{Value, json};

pub use super::row::BadEntry;
use super::row::Row;
pub use super::strict::kind_of;
use super::{
    Event, EventKind, FailReason, Failure, Intent, JournalEntry, Plan, PlanError, PlanReader, ReadPlanError, Terms,
    Timestamp, Wait, strict,
};

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
                ("engine", terms.engine.clone().map(Value::from)),
                ("model", terms.model.clone().map(Value::from)),
            ],
        ),
        Event::StepRecovered { .. } | Event::StepSkipped { .. } | Event::CompletionRecovered | Event::TaskDone => {
            json!({})
        }
        Event::StepStarted { tool, attempt, intent, .. } => with(
            json!({ "attempt": attempt, "tool": tool }),
            [
                ("input_sha256", intent.map(|intent| json!(intent.digest.to_string()))),
                ("effect", intent.map(|intent| json!(intent.effect.as_str()))),
            ],
        ),
        Event::StepFinished { tool, adopted, .. } => with(json!({ "tool": tool }), [flag("adopted", *adopted)]),
        Event::StepError { failure: Failure { error, permanent, unknown, absent, retry_at }, .. } => with(
            json!({ "error": error, "permanent": permanent }),
            [flag("unknown", *unknown), flag("absent", *absent), time("retry_at", *retry_at)],
        ),
        Event::StepFailed { reason, unknown, .. } => {
            with(json!({ "reason": reason.to_string() }), [flag("unknown", *unknown)])
        }
        Event::StepWaiting { wait, shown, .. } => {
            let shown = ("input_sha256", shown.map(|shown| json!(shown.to_string())));
            match *wait {
                Wait::Until(until) => with(json!({ "for": "time" }), [time("until", Some(until)), shown]),
                Wait::Approval { expires } => with(json!({ "for": "approval" }), [time("expires", expires), shown]),
            }
        }
        Event::AnswerGiven { answer, rejected, by, why, shown, .. } => with(
            json!({ "answer": as_value(answer), "by": by, "why": why }),
            [flag("rejected", *rejected), ("input_sha256", shown.map(|shown| json!(shown.to_string())))],
        ),
        Event::StepInDoubt { known, .. } => json!({ "known": known }),
        Event::DoubtResolved { word, by, why, .. } => json!({ "by": by, "why": why, "word": word.as_str() }),
        Event::StepCheckpoint { checkpoint, .. } => json!({ "checkpoint": as_value(checkpoint) }),
        Event::TaskCancelled { by, why } => json!({ "by": by, "why": why }),
        Event::CompletionError { error } => json!({ "error": error }),
        Event::StepReleased { reason, .. } => json!({ "reason": reason }),
        Event::CompletionStarted { attempt } => json!({ "attempt": attempt }),
        Event::TaskFailed { reason, known, unknown, .. } => {
            let known = (!known.is_empty()).then(|| json!(known));
            with(json!({ "reason": reason.to_string() }), [("known", known), flag("unknown", *unknown)])
        }
        Event::TaskRetried { forgiven, .. } => json!({ "forgiven": forgiven }),
        Event::TaskRebound { home, completion } => with(
            json!({}),
            [("home", home.clone().map(Value::from)), ("completion", completion.as_deref().map(as_value))],
        ),
    }
}

/// A person's answer with who gave it, as the text of JSON: what a step that asked has for its output.
#[must_use]
pub fn answer(answer: &str, by: &str, why: Option<&str>) -> String {
    json!({ "answer": as_value(answer), "by": by, "why": why }).to_string()
}

/// What is kept as the text of JSON. What is not JSON is kept as it is: a journal must be able to hold whatever
/// happened.
fn as_value(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| Value::from(text))
}

/// A field that is there where it is true.
fn flag(name: &str, holds: bool) -> (&str, Option<Value>) {
    (name, holds.then_some(Value::Bool(true)))
}

/// A time, as databases and JSON have it.
fn time(name: &str, at: Option<Timestamp>) -> (&str, Option<Value>) {
    (name, at.map(|at| Value::from(at.as_seconds())))
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

/// Reads a journal row back. `None` for a kind that this version does not know: others may add kinds.
///
/// # Errors
/// The row has a known kind and lacks what that kind must have.
pub fn event_from_entry(entry: &JournalEntry) -> Result<Option<Event>, BadEntry> {
    let Ok(kind) = entry.kind.parse::<EventKind>() else { return Ok(None) };
    let row = Row(entry);
    Ok(Some(match kind {
        EventKind::TaskCreated => {
            Event::TaskCreated { steps: row.count("steps")?, home: row.maybe("home", Row::text)? }
        }
        EventKind::RunStarted => Event::RunStarted {
            recovered: row.list("recovered", Row::as_count)?,
            terms: Terms {
                max_attempts: row.maybe("max_attempts", Row::count)?,
                resumed: row.maybe("resumed", Row::flag)?,
                artifacts: row.maybe("artifacts", Row::text)?,
                home: row.maybe("home", Row::text)?,
                engine: row.maybe("engine", Row::text)?,
                model: row.maybe("model", Row::text)?,
            },
        },
        EventKind::CompletionStarted => Event::CompletionStarted { attempt: row.count("attempt")? },
        EventKind::CompletionRecovered => Event::CompletionRecovered,
        EventKind::CompletionError => Event::CompletionError { error: row.text("error")? },
        EventKind::TaskFailed => {
            let known = |row: &Row<'_>, field: &str| row.list(field, |text| text.as_str().map(str::to_owned));
            Event::TaskFailed {
                step: entry.step,
                reason: FailReason::from_stored(row.text("reason")?),
                known: row.maybe("known", known)?.unwrap_or_default(),
                unknown: row.holds("unknown")?,
            }
        }
        EventKind::TaskDone => Event::TaskDone,
        EventKind::TaskCancelled => Event::TaskCancelled { by: row.text("by")?, why: row.maybe("why", Row::text)? },
        EventKind::TaskRetried => Event::TaskRetried { step: entry.step, forgiven: row.count("forgiven")? },
        EventKind::TaskRebound => Event::TaskRebound {
            home: row.maybe("home", Row::text)?,
            completion: entry.data.get("completion").map(Value::to_string),
        },
        of_a_step => step_event(of_a_step, row.step()?, &row)?,
    }))
}

/// Reads back what is about one step.
fn step_event(kind: EventKind, step: u32, row: &Row<'_>) -> Result<Event, BadEntry> {
    Ok(match kind {
        EventKind::StepRecovered => Event::StepRecovered { step },
        EventKind::StepStarted => {
            let (digest, effect) = (row.maybe("input_sha256", Row::parsed)?, row.maybe("effect", Row::parsed)?);
            let intent = digest.zip(effect).map(|(digest, effect)| Intent { digest, effect });
            Event::StepStarted { step, tool: row.text("tool")?, attempt: row.count("attempt")?, intent }
        }
        EventKind::StepFinished => {
            Event::StepFinished { step, tool: row.text("tool")?, adopted: row.holds("adopted")? }
        }
        EventKind::StepError => {
            let failure = Failure {
                error: row.text("error")?,
                permanent: row.holds("permanent")?,
                unknown: row.holds("unknown")?,
                absent: row.holds("absent")?,
                retry_at: row.maybe("retry_at", Row::time)?,
            };
            Event::StepError { step, failure }
        }
        EventKind::StepFailed => {
            let reason = FailReason::from_stored(row.text("reason")?);
            Event::StepFailed { step, reason, unknown: row.holds("unknown")? }
        }
        EventKind::StepReleased => Event::StepReleased { step, reason: row.text("reason")? },
        EventKind::StepSkipped => Event::StepSkipped { step },
        EventKind::StepWaiting => {
            let wait = match row.text("for")?.as_str() {
                "time" => Wait::Until(row.time("until")?),
                "approval" => Wait::Approval { expires: row.maybe("expires", Row::time)? },
                other => return Err(row.bad(format!("waits for `{other}`, which this version does not know"))),
            };
            Event::StepWaiting { step, wait, shown: row.maybe("input_sha256", Row::parsed)? }
        }
        EventKind::AnswerGiven => Event::AnswerGiven {
            step,
            answer: row.json("answer")?,
            rejected: row.holds("rejected")?,
            by: row.text("by")?,
            why: row.maybe("why", Row::text)?,
            shown: row.maybe("input_sha256", Row::parsed)?,
        },
        EventKind::StepInDoubt => Event::StepInDoubt { step, known: row.text("known")? },
        EventKind::DoubtResolved => Event::DoubtResolved {
            step,
            word: row.parsed("word")?,
            by: row.text("by")?,
            why: row.maybe("why", Row::text)?,
        },
        EventKind::StepCheckpoint => Event::StepCheckpoint { step, checkpoint: row.json("checkpoint")? },
        other => unreachable!("{other} is not about one step"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Digest, Effect, RunId, TaskId, Word};
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
    #[case(r#"{"goal":"g","steps":[{"tool":"echo","input":{},"ids":1}]}"#, "step 0 (echo): field `ids`: unknown")]
    fn a_bad_plan_is_refused_with_its_place(#[case] text: &str, #[case] says: &str) {
        let error = plan_from_json(text).expect_err("must be refused").to_string();
        assert!(error.contains(says), "{error}");
    }

    fn events() -> Vec<Event> {
        let tool = "echo".to_owned();
        let intent = Intent { digest: Digest([7; 32]), effect: Effect::Once };
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
                    engine: Some("ollama".into()),
                    model: Some("llama3.2".into()),
                    ..Terms::default()
                },
            },
            Event::RunStarted { recovered: vec![], terms: Terms::default() },
            Event::StepRecovered { step: 1 },
            Event::StepStarted { step: 1, tool: tool.clone(), attempt: 2, intent: None },
            Event::StepStarted { step: 1, tool: tool.clone(), attempt: 2, intent: Some(intent) },
            Event::StepFinished { step: 1, tool: tool.clone(), adopted: false },
            Event::StepFinished { step: 1, tool, adopted: true },
            Event::StepError { step: 1, failure: Failure::plain("no\u{e9}") },
            Event::StepReleased { step: 1, reason: "SIGTERM".into() },
            Event::CompletionStarted { attempt: 1 },
            Event::CompletionRecovered,
            Event::CompletionError { error: "no such folder".into() },
            Event::TaskFailed {
                step: Some(1),
                reason: FailReason::MaxAttempts,
                known: vec!["it died".into()],
                unknown: true,
            },
            Event::TaskFailed { step: None, reason: FailReason::MaxAttempts, known: vec![], unknown: false },
            Event::TaskFailed {
                step: Some(1),
                reason: FailReason::Other("asteroid".into()),
                known: vec![],
                unknown: false,
            },
            Event::TaskDone,
            Event::TaskRetried { step: Some(1), forgiven: 3 },
            Event::TaskRetried { step: None, forgiven: 3 },
            Event::TaskRebound { home: Some("/srv".into()), completion: Some(r#"{"report":{"out":"x"}}"#.into()) },
        ]
    }

    /// What came with waits, doubts and people.
    fn later_events() -> Vec<Event> {
        let at = Some(Timestamp::from_micros(1_790_000_000_123_457));
        let shown = Some(Digest([7; 32]));
        let answer = |answer: &str, rejected, why: Option<&str>| {
            let why = why.map(str::to_owned);
            Event::AnswerGiven { step: 1, answer: answer.into(), rejected, by: "ada".into(), why, shown }
        };
        vec![
            Event::StepError {
                step: 1,
                failure: Failure { permanent: true, unknown: true, absent: true, retry_at: at, ..Failure::plain("no") },
            },
            Event::StepFailed { step: 1, reason: FailReason::Permanent, unknown: false },
            Event::StepFailed { step: 1, reason: FailReason::MaxAttempts, unknown: true },
            Event::StepSkipped { step: 1 },
            Event::StepWaiting { step: 1, wait: Wait::Until(Timestamp::from_micros(7)), shown: None },
            Event::StepWaiting { step: 1, wait: Wait::Approval { expires: None }, shown },
            Event::StepWaiting { step: 1, wait: Wait::Approval { expires: at }, shown },
            answer("true", false, None),
            answer(r#"{"a":[1]}"#, false, Some("why")),
            answer("false", true, Some("no")),
            Event::StepInDoubt { step: 1, known: "it died".into() },
            Event::DoubtResolved { step: 1, word: Word::Happened, by: "ada".into(), why: Some("seen".into()) },
            Event::DoubtResolved { step: 1, word: Word::Absent, by: "ada".into(), why: None },
            Event::DoubtResolved { step: 1, word: Word::Abandon, by: "ada".into(), why: None },
            Event::StepCheckpoint { step: 1, checkpoint: r#"{"page":3}"#.into() },
            Event::TaskCancelled { by: "ada".into(), why: Some("no".into()) },
            Event::TaskCancelled { by: "ada".into(), why: None },
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
        for event in events().into_iter().chain(later_events()) {
            let data = event_data(&event);
            let keys: Vec<_> = data.as_object().unwrap().keys().cloned().collect();
            assert!(keys.is_sorted(), "{keys:?}");
            let row = entry(event.kind().as_str(), event.step(), data);
            assert_eq!(event_from_entry(&row), Ok(Some(event)));
        }
    }

    /// The spellings and fields of the contract, which other programs read.
    #[test]
    fn the_fields_of_an_event_are_those_of_the_contract() {
        let intent = Some(Intent { digest: Digest([0xab; 32]), effect: Effect::Keyed });
        let sha = "ab".repeat(32);
        let at = Some(Timestamp::from_seconds(12.5));
        for (event, data) in [
            (
                Event::StepStarted { step: 0, tool: "t".into(), attempt: 1, intent },
                json!({"tool": "t", "attempt": 1, "input_sha256": sha, "effect": "keyed"}),
            ),
            (
                Event::StepError { step: 0, failure: Failure { retry_at: at, ..Failure::plain("no") } },
                json!({"error": "no", "permanent": false, "retry_at": 12.5}),
            ),
            (
                Event::StepWaiting { step: 0, wait: Wait::Until(Timestamp::from_seconds(3.0)), shown: None },
                json!({"for": "time", "until": 3.0}),
            ),
            (
                Event::AnswerGiven {
                    step: 0,
                    answer: "[1]".into(),
                    rejected: false,
                    by: "ada".into(),
                    why: None,
                    shown: None,
                },
                json!({"answer": [1], "by": "ada", "why": null}),
            ),
            (
                Event::DoubtResolved { step: 0, word: Word::Absent, by: "ada".into(), why: Some("seen".into()) },
                json!({"word": "absent", "by": "ada", "why": "seen"}),
            ),
            (Event::TaskCancelled { by: "ada".into(), why: None }, json!({"by": "ada", "why": null})),
        ] {
            assert_eq!(event_data(&event), data);
        }
    }

    #[test]
    fn a_kind_of_a_later_version_is_no_error_and_a_maimed_row_is_one() {
        assert_eq!(event_from_entry(&entry("step_danced", None, json!({}))), Ok(None));
        for (kind, step, data) in [
            ("step_started", None, json!({"tool": "echo", "attempt": 1})),
            ("step_started", Some(0), json!({"tool": "echo"})),
            ("step_started", Some(0), json!({"tool": "echo", "attempt": -1})),
            ("step_started", Some(0), json!({"tool": "echo", "attempt": 1, "input_sha256": "ab", "effect": "pure"})),
            ("step_started", Some(0), json!({"tool": "echo", "attempt": 1, "effect": "often"})),
            ("step_error", Some(0), json!({"error": "no", "permanent": 1})),
            ("step_waiting", Some(0), json!({"for": "time"})),
            ("step_waiting", Some(0), json!({"for": "godot"})),
            ("answer_given", Some(0), json!({"by": "ada"})),
            ("doubt_resolved", Some(0), json!({"word": "perhaps", "by": "ada"})),
            ("run_started", None, json!({"recovered": ["x"]})),
        ] {
            assert!(event_from_entry(&entry(kind, step, data)).is_err());
        }
    }
}

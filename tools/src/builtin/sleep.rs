//! Waits for a time. The wait is the machine's: it is committed, and nothing is in memory meanwhile.

use std::sync::LazyLock;

use serde_json::{Map, Value};
use store::model::PlanError;

use crate::attempt::{Due, Pause};
use crate::error::ToolError;
use crate::length::{TIME, parse_due, parse_length, parse_time};
use crate::schema::{Field, Form, Kind, is_template};
use crate::tool::{Effect, Example, Input, Spec, Tool, ToolContext};

pub(super) struct Sleep;

static SPEC: LazyLock<Spec> = LazyLock::new(|| Spec {
    name: "sleep".into(),
    about: "Waits for a time, which survives restarts; a time that has gone by meanwhile is over at once.".into(),
    effect: Effect::Pure,
    input: vec![
        Field::optional("for", Kind::Length, "how long, from when the step's turn comes"),
        Field::optional("until", Kind::Text, "until when"),
    ],
    output: vec![],
    open: false,
    crash_points: vec![],
    retry: None,
    example: Example {
        plan: r#"{"goal": "Take a breath", "steps": [{"tool": "sleep", "input": {"for": "20ms"}}]}"#.into(),
        files: vec![],
        needs: None,
    },
});

impl Tool for Sleep {
    fn spec(&self) -> &Spec {
        &SPEC
    }

    fn check(&self, input: &Map<String, Value>, form: Form) -> Result<(), PlanError> {
        if input.contains_key("for") == input.contains_key("until") {
            return Err(PlanError::field("for", "either this or `until` must be there"));
        }
        let until = input.get("until").and_then(Value::as_str);
        match until.filter(|until| form == Form::Literal || !is_template(until)) {
            Some(until) if parse_time(until).is_none() => {
                Err(PlanError::field("until", format!("must be {TIME}, is `{until}`")))
            }
            _ => Ok(()),
        }
    }

    fn wait(&self, input: Input<'_>) -> Result<Option<Pause>, ToolError> {
        let text = |field: &str| input.0.get(field).and_then(Value::as_str);
        let due = match (text("for"), text("until")) {
            (Some(length), _) => parse_length(length).map(Due::After),
            (None, Some(time)) => parse_due(time),
            (None, None) => None,
        };
        let due = due.ok_or_else(|| ToolError::permanent(format!("it says no time: `until` must be {TIME}")))?;
        Ok(Some(Pause::Until(due)))
    }

    /// The wait is over.
    fn call(&self, _ctx: &ToolContext<'_>, input: Input<'_>) -> Result<Map<String, Value>, ToolError> {
        self.wait(input).map(|_| Map::new())
    }
}

//! Asks a person. The wait is the machine's: it is committed, and the answer is for what was shown and nothing else.

use std::sync::LazyLock;

use serde_json::{Map, Value};
use store::model::PlanError;

use crate::attempt::Pause;
use crate::error::ToolError;
use crate::length::{LENGTH, TIME, parse_due};
use crate::schema::{Field, Form, Kind, is_template};
use crate::tool::{Effect, Example, Input, Spec, Tool, ToolContext};

pub(super) struct Approval;

static SPEC: LazyLock<Spec> = LazyLock::new(|| Spec {
    name: "approval".into(),
    about: "Waits until a person answers: `agent approve` or `agent reject`.".into(),
    effect: Effect::Pure,
    input: vec![
        Field::new("show", Kind::Any, "what the person is shown; the answer is for this"),
        Field::optional("expires", Kind::Text, "when the question is withdrawn: a length of time, or a time"),
        Field::optional("schema", Kind::Any, "what the answer must be, as a JSON Schema"),
    ],
    output: vec![
        Field::new("answer", Kind::Any, "the answer; true if the person has said nothing more"),
        Field::new("by", Kind::Text, "who has answered"),
        Field::new("why", Kind::Either(vec![Kind::Text, Kind::Null]), "why, if that was said"),
    ],
    open: false,
    crash_points: vec![],
    retry: None,
    example: Example {
        plan: r#"{"goal": "Ask before it is sent", "steps": [
            {"tool": "approval", "input": {"show": "Send the letter to all members?", "expires": "7d"}}]}"#
            .into(),
        files: vec![],
        needs: Some("a person who answers"),
    },
});

impl Tool for Approval {
    fn spec(&self) -> &Spec {
        &SPEC
    }

    fn check(&self, input: &Map<String, Value>, form: Form) -> Result<(), PlanError> {
        let expires = input.get("expires").and_then(Value::as_str);
        match expires.filter(|expires| form == Form::Literal || !is_template(expires)) {
            Some(expires) if parse_due(expires).is_none() => {
                Err(PlanError::field("expires", format!("must be {LENGTH}, or {TIME}, is `{expires}`")))
            }
            _ => Ok(()),
        }
    }

    fn wait(&self, input: Input<'_>) -> Result<Option<Pause>, ToolError> {
        let expires =
            match input.0.get("expires").and_then(Value::as_str) {
                None => None,
                Some(text) => Some(parse_due(text).ok_or_else(|| {
                    ToolError::permanent(format!("`expires` must be {LENGTH}, or {TIME}, is `{text}`"))
                })?),
            };
        Ok(Some(Pause::Approval { show: input.any("show")?.clone(), expires, schema: input.0.get("schema").cloned() }))
    }

    /// A person has answered.
    fn call(&self, ctx: &ToolContext<'_>, _input: Input<'_>) -> Result<Map<String, Value>, ToolError> {
        ctx.attempt.answer.cloned().ok_or_else(|| ToolError::permanent("nobody has answered what is shown"))
    }
}

//! Fails, and says why: for plans that find that they must not go on.

use std::sync::LazyLock;

use serde_json::{Map, Value};

use crate::error::ToolError;
use crate::schema::{Field, Kind};
use crate::tool::{Effect, Example, Input, Spec, Tool, ToolContext};

pub(super) struct Fail;

static SPEC: LazyLock<Spec> = LazyLock::new(|| Spec {
    name: "fail".into(),
    about: "Fails for good, with a message.".into(),
    effect: Effect::Pure,
    input: vec![Field::new("message", Kind::Text, "why")],
    output: vec![],
    open: false,
    crash_points: vec![],
    retry: None,
    example: Example {
        plan: r#"{"goal": "Give up", "steps": [
            {"tool": "fail", "input": {"message": "there is nothing to do it with"}}]}"#
            .into(),
        files: vec![],
        needs: Some("a task that is meant to fail"),
    },
});

impl Tool for Fail {
    fn spec(&self) -> &Spec {
        &SPEC
    }

    fn call(&self, _ctx: &ToolContext<'_>, input: Input<'_>) -> Result<Map<String, Value>, ToolError> {
        Err(ToolError::permanent(input.text("message")?))
    }
}

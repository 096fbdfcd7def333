//! Returns what it is given: for trials and benchmarks.

use std::sync::LazyLock;

use serde_json::{Map, Value};

use crate::error::ToolError;
use crate::schema::{Field, Kind};
use crate::tool::{Effect, Example, Input, Spec, Tool, ToolContext};

pub(super) struct Echo;

static SPEC: LazyLock<Spec> = LazyLock::new(|| Spec {
    name: "echo".into(),
    about: "Returns its input value.".into(),
    effect: Effect::Pure,
    input: vec![Field::new("value", Kind::Any, "what to return")],
    output: vec![Field::new("value", Kind::Any, "the input value")],
    open: false,
    crash_points: vec![],
    retry: None,
    example: Example {
        plan: r#"{"goal": "Say one thing twice", "steps": [
            {"tool": "echo", "input": {"value": 1}},
            {"tool": "echo", "input": {"value": {"two": [2, "zwei", "二"]}}}]}"#
            .into(),
        files: vec![],
        needs: None,
    },
});

impl Tool for Echo {
    fn spec(&self) -> &Spec {
        &SPEC
    }

    fn call(&self, _ctx: &ToolContext<'_>, input: Input<'_>) -> Result<Map<String, Value>, ToolError> {
        Ok(Map::from_iter([("value".to_owned(), input.any("value")?.clone())]))
    }
}

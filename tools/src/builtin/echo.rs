//! Returns what it is given: for trials and benchmarks.

use serde_json::{Map, Value};

use crate::schema::{Field, Kind};
use crate::tool::{Effect, Example, Input, Spec, Tool, ToolContext, ToolError};

pub(super) struct Echo;

const SPEC: Spec = Spec {
    name: "echo",
    about: "Returns its input value.",
    effect: Effect::Pure,
    input: &[Field { name: "value", kind: Kind::Any, about: "what to return" }],
    output: &[Field { name: "value", kind: Kind::Any, about: "the input value" }],
    crash_points: &[],
    example: Example {
        plan: r#"{"goal": "Say one thing twice", "steps": [
            {"tool": "echo", "input": {"value": 1}},
            {"tool": "echo", "input": {"value": {"two": [2, "zwei", "二"]}}}]}"#,
        files: &[],
    },
};

impl Tool for Echo {
    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn call(&self, _ctx: &ToolContext<'_>, input: Input<'_>) -> Result<Map<String, Value>, ToolError> {
        Ok(Map::from_iter([("value".to_owned(), input.any("value")?.clone())]))
    }
}

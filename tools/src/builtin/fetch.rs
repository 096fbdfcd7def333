//! Reads a text file.

use std::path::Path;

use serde_json::{Map, Value};

use crate::publish::digest;
use crate::schema::{Field, Kind};
use crate::text_file::read_text;
use crate::tool::{Effect, Example, Input, Spec, Tool, ToolContext, ToolError};

pub(super) struct Fetch;

const SPEC: Spec = Spec {
    name: "fetch",
    about: "Reads a text file, which must be UTF-8.",
    effect: Effect::Pure,
    input: &[Field { name: "path", kind: Kind::Text, about: "the file, relative to the task's home" }],
    output: &[
        Field { name: "chars", kind: Kind::Count, about: "length in Unicode scalar values" },
        Field { name: "sha256", kind: Kind::Text, about: "SHA-256 of the file in hex, as sha256sum prints it" },
        Field { name: "text", kind: Kind::Text, about: "the text, byte for byte" },
    ],
    crash_points: &[],
    example: Example {
        plan: r#"{"goal": "Read the notes", "steps": [{"tool": "fetch", "input": {"path": "input/notes.txt"}}]}"#,
        files: &[("input/notes.txt", "Grüße aus 東京 🗼\nsecond line\n")],
    },
};

impl Tool for Fetch {
    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn call(&self, ctx: &ToolContext<'_>, input: Input<'_>) -> Result<Map<String, Value>, ToolError> {
        let text = read_text(&ctx.world.input(Path::new(input.text("path")?)))?;
        Ok(Map::from_iter([
            ("chars".to_owned(), Value::from(text.chars().count())),
            ("sha256".to_owned(), Value::from(digest(text.as_bytes()))),
            ("text".to_owned(), Value::from(text)),
        ]))
    }
}

//! Reads a text file.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use serde_json::{Map, Value};

use crate::error::ToolError;
use crate::publish::digest;
use crate::schema::{Field, Kind};
use crate::text_file::read_text;
use crate::tool::{Effect, Example, Input, Spec, Tool, ToolContext};
use crate::world::World;

pub(super) struct Fetch;

static SPEC: LazyLock<Spec> = LazyLock::new(|| Spec {
    name: "fetch".into(),
    about: "Reads a text file, which must be UTF-8.".into(),
    effect: Effect::Pure,
    input: vec![Field::new("path", Kind::Text, "the file, relative to the task's home")],
    output: vec![
        Field::new("chars", Kind::Count, "length in Unicode scalar values"),
        Field::new("sha256", Kind::Text, "SHA-256 of the file in hex, as sha256sum prints it"),
        Field::new("text", Kind::Text, "the text, byte for byte"),
    ],
    open: false,
    crash_points: vec![],
    retry: None,
    example: Example {
        plan: r#"{"goal": "Read the notes", "steps": [{"tool": "fetch", "input": {"path": "input/notes.txt"}}]}"#
            .into(),
        files: vec![("input/notes.txt".into(), "Grüße aus 東京 🗼\nsecond line\n".into())],
        needs: None,
    },
});

impl Tool for Fetch {
    fn spec(&self) -> &Spec {
        &SPEC
    }

    fn reads(&self, world: &World, input: &Map<String, Value>) -> Vec<PathBuf> {
        Input(input).text("path").into_iter().map(|path| world.input(Path::new(path))).collect()
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

//! Counts the words of one note.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use serde_json::{Map, Value};

use crate::error::ToolError;
use crate::publish::digest;
use crate::schema::{Field, Kind};
use crate::text_file::read_text;
use crate::tool::{Effect, Example, Input, Spec, Tool, ToolContext};
use crate::world::World;

pub(super) struct CountWords;

static SPEC: LazyLock<Spec> = LazyLock::new(|| Spec {
    name: "count_words".into(),
    about: "Counts the words of a text file, which must be UTF-8.".into(),
    effect: Effect::Pure,
    input: vec![Field::new("path", Kind::Text, "the file, relative to the task's home")],
    output: vec![
        Field::new("file", Kind::Text, "the file's name without its folder"),
        Field::new("sha256", Kind::Text, "the first 12 hex digits of the text's SHA-256"),
        Field::new("words", Kind::Count, "how many words there are, as white space separates them"),
    ],
    open: false,
    crash_points: vec![],
    retry: None,
    example: Example {
        plan: r#"{"goal": "Count the words of two notes", "steps": [
            {"tool": "count_words", "input": {"path": "inbox/a.txt"}},
            {"tool": "count_words", "input": {"path": "inbox/über.txt"}}]}"#
            .into(),
        files: vec![
            ("inbox/a.txt".into(), "two words\n".into()),
            ("inbox/über.txt".into(), "Grüße aus 東京 🗼\n".into()),
        ],
        needs: None,
    },
});

/// How much of the digest a result carries: enough to tell that a note has changed.
const DIGEST_DIGITS: usize = 12;

impl Tool for CountWords {
    fn spec(&self) -> &Spec {
        &SPEC
    }

    fn reads(&self, world: &World, input: &Map<String, Value>) -> Vec<PathBuf> {
        Input(input).text("path").into_iter().map(|path| world.input(Path::new(path))).collect()
    }

    fn call(&self, ctx: &ToolContext<'_>, input: Input<'_>) -> Result<Map<String, Value>, ToolError> {
        let path = input.text("path")?;
        Ok(count(name_of(path), &read_text(&ctx.world.input(Path::new(path)))?))
    }

    fn label(&self, input: &Map<String, Value>) -> String {
        input.get("path").and_then(Value::as_str).map_or(SPEC.name.as_str(), name_of).to_owned()
    }
}

fn count(name: &str, text: &str) -> Map<String, Value> {
    let mut sha256 = digest(text.as_bytes());
    sha256.truncate(DIGEST_DIGITS);
    Map::from_iter([
        ("file".to_owned(), Value::from(name)),
        ("sha256".to_owned(), Value::from(sha256)),
        ("words".to_owned(), Value::from(text.split_whitespace().count())),
    ])
}

/// The last part of a path; the whole of one that has no last part, such as `..`.
fn name_of(path: &str) -> &str {
    Path::new(path).file_name().and_then(|name| name.to_str()).unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("", 0)]
    #[case(" \n\t ", 0)]
    #[case("one", 1)]
    #[case("a b\u{a0}c\u{3000}d\r\ne", 5)]
    #[case("\u{feff}mark stays", 2)]
    fn words_are_what_white_space_separates(#[case] text: &str, #[case] words: u64) {
        assert_eq!(count("n", text)["words"], words);
    }

    #[test]
    fn the_digest_is_the_beginning_of_what_sha256sum_prints() {
        assert_eq!(count("n", "")["sha256"], "e3b0c44298fc");
        assert_eq!(count("n", "one")["sha256"], "7692c3ad3540");
    }

    #[rstest]
    #[case("inbox/a.txt", "a.txt")]
    #[case("a.txt", "a.txt")]
    #[case("/x/東.txt", "東.txt")]
    #[case("..", "..")]
    fn a_step_is_called_by_its_file(#[case] path: &str, #[case] name: &str) {
        let input = Map::from_iter([("path".to_owned(), Value::from(path))]);
        assert_eq!(CountWords.label(&input), name);
    }
}

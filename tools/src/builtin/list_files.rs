//! Lists the files of a folder.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use glob::{MatchOptions, Pattern};
use serde_json::{Map, Value, json};
use store::limits;
use store::model::PlanError;

use crate::error::ToolError;
use crate::schema::{Field, Form, Kind, is_template};
use crate::tool::{Effect, Example, Input, Spec, Tool, ToolContext};

pub(super) struct ListFiles;

static SPEC: LazyLock<Spec> = LazyLock::new(|| Spec {
    name: "list_files".into(),
    about: "Lists the files of a folder whose names match a pattern, in order.".into(),
    effect: Effect::Pure,
    input: vec![
        Field::new("folder", Kind::Text, "the folder, relative to the task's home"),
        Field::optional("glob", Kind::Text, "such as *.txt, or **/*.txt for those in folders below; * if not given"),
    ],
    output: vec![Field::new(
        "files",
        Kind::list(Kind::map(Kind::Any)),
        "of each its `path`, `name` and `size` in bytes",
    )],
    open: false,
    crash_points: vec![],
    retry: None,
    example: Example {
        plan: r#"{"goal": "See what there is to read", "steps": [
            {"tool": "list_files", "input": {"folder": "inbox", "glob": "**/*.txt"}}]}"#
            .into(),
        files: vec![
            ("inbox/a.txt".into(), "one\n".into()),
            ("inbox/old/ü.txt".into(), "two\n".into()),
            ("inbox/picture.png".into(), "not listed\n".into()),
        ],
        needs: None,
    },
});

/// A star is within one folder, and what begins with a dot must be asked for.
const OPTIONS: MatchOptions =
    MatchOptions { case_sensitive: true, require_literal_separator: true, require_literal_leading_dot: true };

impl Tool for ListFiles {
    fn spec(&self) -> &Spec {
        &SPEC
    }

    fn check(&self, input: &Map<String, Value>, form: Form) -> Result<(), PlanError> {
        let glob = input.get("glob").and_then(Value::as_str);
        match glob.filter(|glob| form == Form::Literal || !is_template(glob)).map(Pattern::new) {
            Some(Err(error)) => Err(PlanError::field("glob", format!("is not a pattern: {error}"))),
            _ => Ok(()),
        }
    }

    fn call(&self, ctx: &ToolContext<'_>, input: Input<'_>) -> Result<Map<String, Value>, ToolError> {
        let given = Path::new(input.text("folder")?);
        let glob = input.0.get("glob").and_then(Value::as_str).unwrap_or("*");
        let pattern =
            Pattern::new(glob).map_err(|error| ToolError::permanent(format!("the pattern {glob}: {error}")))?;
        let folder = ctx.world.input(given);
        let mut found = Vec::new();
        walk(&folder, Path::new(""), glob.contains('/'), &mut |below, size| {
            if pattern.matches_path_with(below, OPTIONS) {
                found.push((below.to_owned(), size));
            }
            found.len() <= limits::LISTED_FILES
        })?;
        if found.len() > limits::LISTED_FILES {
            let most = limits::LISTED_FILES;
            return Err(ToolError::permanent(format!("{} has more than {most} such files", folder.display())));
        }
        found.sort();
        let file = |(below, size): (PathBuf, u64)| {
            let path = given.join(&below);
            let name = below.file_name().and_then(|name| name.to_str());
            let (Some(path), Some(name)) = (path.to_str(), name) else {
                return Err(ToolError::permanent(format!("the name of {} is not UTF-8", path.display())));
            };
            Ok(json!({ "path": path, "name": name, "size": size }))
        };
        let files: Vec<Value> = found.into_iter().map(file).collect::<Result<_, _>>()?;
        Ok(Map::from_iter([("files".to_owned(), Value::from(files))]))
    }
}

/// Visits the regular files below `folder`, links to files included, until `visit` has seen enough. Links to folders
/// are not followed, since they may lead in a circle.
fn walk(folder: &Path, below: &Path, deep: bool, visit: &mut dyn FnMut(&Path, u64) -> bool) -> Result<bool, ToolError> {
    let here = folder.join(below);
    let failed = |error: io::Error| ToolError::step(format!("cannot list {}: {error}", here.display()));
    for entry in fs::read_dir(&here).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let below = below.join(entry.file_name());
        if entry.file_type().map_err(failed)?.is_dir() {
            if deep && !walk(folder, &below, deep, visit)? {
                return Ok(false);
            }
            continue;
        }
        match fs::metadata(entry.path()) {
            Ok(meta) if meta.is_file() && !visit(&below, meta.len()) => return Ok(false),
            // A file that is gone by now, or a link that leads nowhere, is not one of them.
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
            _ => {}
        }
    }
    Ok(true)
}

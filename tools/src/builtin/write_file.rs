//! Writes a text to a file, whole or not at all.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use serde_json::{Map, Value};
use store::CrashSite;
use store::files::folder_of;
use store::model::PlanError;

use crate::attempt::Audit;
use crate::error::ToolError;
use crate::publish::{Publication, PublishSites, Published, digest, publish};
use crate::replace::{ReplaceSites, replace};
use crate::schema::{Field, Form, Kind};
use crate::temporary::sweep_temporaries;
use crate::tool::{Effect, Example, Input, Spec, Tool, ToolContext};

pub(super) struct WriteFile;

/// The temporary file is written and synced; what stands under the name is what stood there before.
const WRITTEN: CrashSite = CrashSite("write_file.written");
/// The text stands under the name; the folder is not synced.
const NAMED: CrashSite = CrashSite("write_file.named");
/// The text was there before; the folder is not synced.
const DEDUPLICATED: CrashSite = CrashSite("write_file.deduplicated");
/// All is synced; the caller does not know yet.
const PUBLISHED: CrashSite = CrashSite("write_file.published");

static SPEC: LazyLock<Spec> = LazyLock::new(|| Spec {
    name: "write_file".into(),
    about: "Writes a text to a file, whole or not at all, so that it survives a power cut.".into(),
    effect: Effect::Keyed,
    input: vec![
        Field::new("path", Kind::Text, "the file, relative to the task's home; its folder is made where it is missing"),
        Field::new("text", Kind::Text, "what it will hold, and nothing else"),
        Field::optional(
            "exists",
            Kind::OneOf(&["error", "replace"]),
            "what becomes of another content that is there: an error (if not given), or it is replaced",
        ),
    ],
    output: vec![
        Field::new("deduplicated", Kind::Flag, "true where the same content was there already"),
        Field::new("path", Kind::Text, "the file, as it was given"),
        Field::new("sha256", Kind::Text, "SHA-256 of the text in hex"),
    ],
    open: false,
    crash_points: vec![WRITTEN, NAMED, DEDUPLICATED, PUBLISHED],
    retry: None,
    example: Example {
        plan: r#"{"goal": "Leave a word", "steps": [
            {"tool": "write_file", "input": {"path": "artifacts/word.txt", "text": "The mill burns.\n"}}]}"#
            .into(),
        files: vec![],
        needs: None,
    },
});

impl Tool for WriteFile {
    fn spec(&self) -> &Spec {
        &SPEC
    }

    fn check(&self, input: &Map<String, Value>, _form: Form) -> Result<(), PlanError> {
        match input.get("path").and_then(Value::as_str) {
            Some(path) if path.is_empty() || path.ends_with('/') || path.contains('\0') => {
                Err(PlanError::field("path", "is not the name of a file"))
            }
            _ => Ok(()),
        }
    }

    fn label(&self, input: &Map<String, Value>) -> String {
        input.get("path").and_then(Value::as_str).unwrap_or(&SPEC.name).to_owned()
    }

    fn call(&self, ctx: &ToolContext<'_>, input: Input<'_>) -> Result<Map<String, Value>, ToolError> {
        let text = input.text("text")?;
        let given = PathBuf::from(input.text("path")?);
        // Negative control: a key that changes with the attempt protects nothing, which must show.
        let given = if ctx.key.is_of_one_attempt() { given.with_extension(ctx.key.file_stem()) } else { given };
        let path = ctx.world.at(&given);
        if ctx.world.is_of_database(&path) {
            return Err(ToolError::permanent(format!("{} belongs to the database", path.display())));
        }
        let key = ctx.key.file_stem();
        let published = if input.0.get("exists").is_some_and(|exists| exists == "replace") {
            let sites =
                ReplaceSites { written: WRITTEN, renamed: NAMED, unchanged: DEDUPLICATED, published: PUBLISHED };
            replace(&path, &key, &mut |out| out.write_all(text.as_bytes()), sites, ctx.crash)?
        } else {
            let sites =
                PublishSites { written: WRITTEN, linked: NAMED, deduplicated: DEDUPLICATED, published: PUBLISHED };
            let name = path.file_name().and_then(|name| name.to_str());
            let name = name.ok_or_else(|| ToolError::permanent(format!("{} names no file", path.display())))?;
            let content = text.as_bytes();
            let file = Publication { folder: folder_of(&path), name, key: &key, content, older: &[] };
            publish(&file, sites, ctx.crash)?
        };
        Ok(Map::from_iter([
            ("deduplicated".to_owned(), Value::from(published == Published::AlreadyThere)),
            ("path".to_owned(), Value::from(given.to_string_lossy())),
            ("sha256".to_owned(), Value::from(digest(text.as_bytes()))),
        ]))
    }

    fn sweep(&self, ctx: &ToolContext<'_>, input: Input<'_>) -> Result<(), ToolError> {
        let path = ctx.world.at(Path::new(input.text("path")?));
        Ok(sweep_temporaries(folder_of(&path), &ctx.key.file_stem())?)
    }

    /// A file that may be replaced may have been since.
    fn audit(&self, ctx: &ToolContext<'_>, input: Input<'_>, output: &Map<String, Value>) -> Audit {
        let text = |field: &str| output.get(field).and_then(Value::as_str).unwrap_or_default();
        let path = ctx.world.at(Path::new(text("path")));
        let may_change = input.0.get("exists").is_some_and(|exists| exists != "error");
        match fs::read(&path) {
            Ok(found) if digest(&found) == text("sha256") => Audit::Sound,
            Ok(_) if may_change => Audit::NotLookedAt,
            Ok(_) => Audit::Differs(format!("the file {} has other content", path.display())),
            Err(error) => Audit::Differs(format!("the file {}: {error}", path.display())),
        }
    }
}

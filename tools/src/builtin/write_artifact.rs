//! Publishes a summary as a file, once.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::sync::LazyLock;

use serde_json::{Map, Value};
use store::CrashSite;

use crate::attempt::Audit;
use crate::durable::make_folder;
use crate::error::ToolError;
use crate::publish::{Publication, PublishSites, Published, publish};
use crate::schema::{Field, Kind};
use crate::temporary::sweep_temporaries;
use crate::tool::{Effect, Example, Input, Spec, Tool, ToolContext};

pub(super) struct WriteArtifact;

const SITES: PublishSites = PublishSites {
    written: CrashSite("write_artifact.written"),
    linked: CrashSite("write_artifact.linked"),
    deduplicated: CrashSite("write_artifact.deduplicated"),
    published: CrashSite("write_artifact.published"),
};

static SPEC: LazyLock<Spec> = LazyLock::new(|| Spec {
    name: "write_artifact".into(),
    about: "Publishes the summary of an earlier step as <idempotency key>.md in the artifacts folder.".into(),
    effect: Effect::Keyed,
    input: vec![Field::new("from", Kind::From("summary".into()), "the step whose summary is published")],
    output: vec![
        Field::new("deduplicated", Kind::Flag, "true where the file was there already"),
        Field::new("path", Kind::Text, "the file, relative to the task's home"),
    ],
    open: false,
    crash_points: vec![SITES.written, SITES.linked, SITES.deduplicated, SITES.published],
    retry: None,
    example: Example {
        plan: r#"{"goal": "Publish a summary of the notes", "steps": [
            {"tool": "fetch", "input": {"path": "input/notes.txt"}},
            {"tool": "summarize", "input": {"from": 0}},
            {"tool": "write_artifact", "input": {"from": 1}}]}"#
            .into(),
        files: vec![("input/notes.txt".into(), "Restart Lab\nkills agents\nand brings them back\n".into())],
        needs: None,
    },
});

/// Where the negative control appends.
const UNSAFE_LOG: &str = "report.log";

impl Tool for WriteArtifact {
    fn spec(&self) -> &Spec {
        &SPEC
    }

    fn call(&self, ctx: &ToolContext<'_>, input: Input<'_>) -> Result<Map<String, Value>, ToolError> {
        let summary = input.from("from", ctx.outputs, "summary")?;
        let (folder, given) = (&ctx.world.at(&ctx.world.artifacts), &ctx.world.artifacts);
        // The output names the file as text. A folder for which that cannot be done is refused before the effect.
        if given.to_str().is_none() {
            return Err(ToolError::step(format!("the name of the artifacts folder {} is not UTF-8", folder.display())));
        }
        if ctx.world.unsafe_effects {
            append(folder, &folder.join(UNSAFE_LOG), summary)?;
            return Ok(output(&given.join(UNSAFE_LOG), Published::New));
        }
        let key = ctx.key.file_stem();
        let name = format!("{key}.md");
        let older = older(summary);
        let file =
            Publication { folder, name: &name, key: &key, content: summary.as_bytes(), older: &[older.as_bytes()] };
        let published = publish(&file, SITES, ctx.crash)?;
        Ok(output(&given.join(name), published))
    }

    fn sweep(&self, ctx: &ToolContext<'_>, _input: Input<'_>) -> Result<(), ToolError> {
        Ok(sweep_temporaries(&ctx.world.at(&ctx.world.artifacts), &ctx.key.file_stem())?)
    }

    fn audit(&self, ctx: &ToolContext<'_>, input: Input<'_>, output: &Map<String, Value>) -> Audit {
        look(ctx, input, output).into()
    }
}

/// Whether the file is still there, with the summary in it.
fn look(ctx: &ToolContext<'_>, input: Input<'_>, output: &Map<String, Value>) -> Result<(), String> {
    let summary = input.from("from", ctx.outputs, "summary").map_err(|error| error.to_string())?;
    let path = ctx.world.at(Path::new(output.get("path").and_then(Value::as_str).unwrap_or_default()));
    let found = fs::read(&path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => format!("the artifact {} is missing", path.display()),
        _ => format!("the artifact {}: {error}", path.display()),
    })?;
    let shown = path.display();
    if path.file_name().is_some_and(|name| name == UNSAFE_LOG) {
        let block = block(summary);
        let times = String::from_utf8_lossy(&found).matches(&block).count();
        return if times == 1 { Ok(()) } else { Err(format!("the report stands {times} times in {shown}")) };
    }
    if [summary.as_bytes(), older(summary).as_bytes()].contains(&found.as_slice()) {
        Ok(())
    } else {
        Err(format!("the artifact {shown} has other content"))
    }
}

fn output(path: &Path, published: Published) -> Map<String, Value> {
    let deduplicated = published == Published::AlreadyThere;
    let path = path.to_string_lossy().into_owned();
    Map::from_iter([("deduplicated".to_owned(), Value::from(deduplicated)), ("path".to_owned(), Value::from(path))])
}

/// The negative control: an effect that a second attempt repeats.
fn append(folder: &Path, path: &Path, summary: &str) -> Result<(), ToolError> {
    make_folder(folder)?;
    let result = OpenOptions::new().create(true).append(true).open(path).and_then(|mut log| {
        log.write_all(block(summary).as_bytes())?;
        log.sync_all()
    });
    result.map_err(|error| ToolError::step(format!("cannot append to {}: {error}", path.display())))
}

/// What earlier versions published: they added a line break, and their files count as the same.
fn older(summary: &str) -> String {
    format!("{summary}\n")
}

fn block(summary: &str) -> String {
    format!("{summary}\n---\n")
}

//! `write_artifact` with wrong ways of publishing.
//!
//! What these ways have in common with the right one is told by the same crash points, so that a kill can land in the
//! middle of them.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Map, Value, json};
use store::{Crash, CrashScope, CrashSite, ErrorKind, StoreError};
use tools::{Input, Spec, Tool, ToolContext, ToolError, is_temporary};

use crate::plant::{Artifact, Temporary};

const NAME: &str = "write_artifact";

/// Fired twice: in the middle of the content, and at its end.
const WRITTEN: CrashSite = CrashSite("write_artifact.written");
const LINKED: CrashSite = CrashSite("write_artifact.linked");
const DEDUPLICATED: CrashSite = CrashSite("write_artifact.deduplicated");
const PUBLISHED: CrashSite = CrashSite("write_artifact.published");

/// The tool in the place of the real one.
pub(crate) struct PlantedArtifact {
    real: Option<&'static dyn Tool>,
    way: Artifact,
    late: Late,
}

impl PlantedArtifact {
    pub(crate) fn new(way: Artifact, late: Late) -> Self {
        Self { real: tools::find(NAME), way, late }
    }

    pub(crate) fn name(&self) -> &'static str {
        NAME
    }

    fn real(&self) -> &'static dyn Tool {
        self.real.expect("the agent has the tool that is sabotaged")
    }
}

impl Tool for PlantedArtifact {
    fn spec(&self) -> &'static Spec {
        self.real().spec()
    }

    fn call(&self, ctx: &ToolContext<'_>, input: Input<'_>) -> Result<Map<String, Value>, ToolError> {
        let right = matches!(self.way, Artifact::Real | Artifact::Unswept | Artifact::SweptForAll);
        if right || ctx.world.unsafe_effects {
            return self.real().call(ctx, input);
        }
        let mut content = input.from("from", ctx.outputs, "summary")?.to_owned();
        if !content.ends_with('\n') {
            content.push('\n');
        }
        let key = ctx.key.file_stem();
        let effect = Effect { way: self.way, folder: ctx.world.artifacts.clone(), key, content: content.into_bytes() };
        let output = |there: bool| match json!({"deduplicated": there, "path": effect.target()}) {
            Value::Object(output) => output,
            _ => Map::new(),
        };
        if self.way == Artifact::Late {
            let there = effect.target().exists();
            let output = output(there);
            self.late.put(effect);
            return Ok(output);
        }
        effect.happen(ctx.crash).map(output).map_err(|error| ToolError::step(format!("{NAME}: {error}")))
    }

    fn sweep(&self, ctx: &ToolContext<'_>) -> Result<(), ToolError> {
        let sweeps = !matches!(self.way, Artifact::Unswept | Artifact::ByTemporary(Temporary::TakenOver));
        if self.way == Artifact::SweptForAll {
            let failed = |error: io::Error| ToolError::step(format!("{NAME}: {error}"));
            return sweep_all(&ctx.world.artifacts).map_err(failed);
        }
        if sweeps { self.real().sweep(ctx) } else { Ok(()) }
    }

    fn audit(&self, ctx: &ToolContext<'_>, input: Input<'_>, output: &Map<String, Value>) -> Result<(), String> {
        self.real().audit(ctx, input, output)
    }
}

/// An effect that the caller takes for done.
#[derive(Clone, Default)]
pub(crate) struct Late(Arc<Mutex<Option<Effect>>>);

impl Late {
    fn put(&self, effect: Effect) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(effect);
    }

    /// Lets it happen at last.
    pub(crate) fn catch_up(&self) -> Result<(), StoreError> {
        let effect = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        let happened = effect.map(|effect| effect.happen(Crash::off().scope(None)));
        let failed = |error: io::Error| StoreError::new(ErrorKind::Io, format!("the late effect: {error}"));
        happened.transpose().map(|_| ()).map_err(failed)
    }
}

/// A file to be published, and how.
struct Effect {
    way: Artifact,
    folder: PathBuf,
    key: String,
    content: Vec<u8>,
}

impl Effect {
    fn target(&self) -> PathBuf {
        self.folder.join(format!("{}.md", self.key))
    }

    /// Publishes it; whether it was there already.
    fn happen(&self, crash: CrashScope<'_>) -> io::Result<bool> {
        let way = match self.way {
            Artifact::ByTemporary(way) => way,
            _ => Temporary::Uncompared,
        };
        fs::create_dir_all(&self.folder)?;
        if way != Temporary::ParentUnsynced {
            sync_folder(self.folder.parent().unwrap_or(Path::new("")))?;
        }
        let there = match self.way {
            Artifact::InPlace { compared } => self.in_place(compared, crash)?,
            Artifact::Overwritten => self.fill(File::create(self.target())?, crash).map(|()| false)?,
            Artifact::Appended => {
                let file = OpenOptions::new().create(true).append(true).open(self.target())?;
                self.fill(file, crash).map(|()| false)?
            }
            _ => self.by_temporary(way, crash)?,
        };
        if way != Temporary::FolderUnsynced {
            sync_folder(&self.folder)?;
        }
        crash.point(PUBLISHED);
        Ok(there)
    }

    fn in_place(&self, compared: bool, crash: CrashScope<'_>) -> io::Result<bool> {
        match OpenOptions::new().write(true).create_new(true).open(self.target()) {
            Ok(file) => self.fill(file, crash).map(|()| false),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => self.already_there(compared, crash),
            Err(error) => Err(error),
        }
    }

    fn by_temporary(&self, way: Temporary, crash: CrashScope<'_>) -> io::Result<bool> {
        let path = match way {
            Temporary::AppendedTo | Temporary::Shared | Temporary::Renewed => {
                self.folder.join(format!(".{}.tmp", self.key))
            }
            _ => self.folder.join(format!(".{}.{}.tmp", self.key, std::process::id())),
        };
        let taken = if way == Temporary::TakenOver { self.left_behind()? } else { None };
        if let Some(left) = taken {
            fs::rename(left, &path)?;
        } else {
            if way == Temporary::Renewed && path.exists() {
                fs::remove_file(&path)?;
            }
            let append = way == Temporary::AppendedTo;
            let file = OpenOptions::new().create(true).write(true).append(append).truncate(!append).open(&path)?;
            self.fill(file, crash)?;
        }
        let there = match fs::hard_link(&path, self.target()) {
            Ok(()) => {
                crash.point(LINKED);
                false
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                self.already_there(way != Temporary::Uncompared, crash)?
            }
            Err(error) => return Err(error),
        };
        fs::remove_file(&path)?;
        Ok(there)
    }

    fn already_there(&self, compared: bool, crash: CrashScope<'_>) -> io::Result<bool> {
        let mut found = Vec::new();
        File::open(self.target())?.read_to_end(&mut found)?;
        if compared && found != self.content {
            return Err(io::Error::other(format!("{} has other content", self.target().display())));
        }
        crash.point(DEDUPLICATED);
        Ok(true)
    }

    /// Writes the content in two pieces, as any large one is.
    fn fill(&self, mut file: File, crash: CrashScope<'_>) -> io::Result<()> {
        let (head, tail) = self.content.split_at(self.content.len() / 2);
        file.write_all(head)?;
        crash.point(WRITTEN);
        file.write_all(tail)?;
        match self.way {
            Artifact::ByTemporary(Temporary::FileUnsynced) => {}
            Artifact::ByTemporary(Temporary::SyncIgnored) => drop(file.sync_all()),
            _ => file.sync_all()?,
        }
        crash.point(WRITTEN);
        Ok(())
    }

    fn left_behind(&self) -> io::Result<Option<PathBuf>> {
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            if entry.file_name().to_str().is_some_and(|name| is_temporary(name, &self.key)) {
                return Ok(Some(entry.path()));
            }
        }
        Ok(None)
    }
}

fn sweep_all(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "tmp") {
            fs::remove_file(path)?;
        }
    }
    Ok(())
}

fn sync_folder(folder: &Path) -> io::Result<()> {
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    File::open(folder)?.sync_all()
}

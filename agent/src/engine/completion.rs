//! What a run does once every step is done and before the task is: an effect that may be repeated, stored with the
//! task.
//!
//! So far there is one, the report of the inbox: the JSON list of all results in step order. It is written from the
//! committed outputs, one at a time, and so comes out the same however often it is written and whenever. The report's
//! path belongs to the task: whatever other file stands there is replaced, in one step, by the whole report.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::sys::stat::Mode;
use nix::unistd::{AccessFlags, access};
use serde_json::{Map, Value, json};
use store::model::TaskId;
use store::{CrashScope, CrashSite, Reader};
use tools::{Content, PublishError, Published, ReplaceSites, World};

use super::EngineError;

const SITES: ReplaceSites = ReplaceSites {
    written: CrashSite("report.written"),
    renamed: CrashSite("report.renamed"),
    unchanged: CrashSite("report.unchanged"),
    published: CrashSite("report.published"),
};

/// Crash points outside steps, passed where a task has a completion.
pub(crate) const RUN_SITES: &[CrashSite] = &[SITES.written, SITES.renamed, SITES.unchanged, SITES.published];

/// Puts a file into the world; see [`tools::replace`].
pub(crate) type Replace<'a> =
    &'a dyn Fn(&Path, &str, &mut Content<'_>, ReplaceSites, CrashScope<'_>) -> Result<Published, PublishError>;

/// The completion of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Completion {
    /// Publish the results of all steps as one file.
    Report {
        /// The folder that the task was planned from, relative to the task's home.
        inbox: String,
        /// The file, relative to the task's home.
        out: String,
        /// Where the folder is now, if that is elsewhere.
        moved: Option<String>,
    },
}

impl Completion {
    /// What is stored.
    pub(crate) fn to_json(&self) -> Map<String, Value> {
        let Self::Report { inbox, out, moved } = self;
        let mut report = json!({ "inbox": inbox, "out": out });
        if let Some(moved) = moved {
            report["moved"] = json!(moved);
        }
        Map::from_iter([("report".to_owned(), report)])
    }

    fn from_json(stored: &Map<String, Value>) -> Option<Self> {
        let report = stored.get("report")?;
        let text = |field: &str| report.get(field).and_then(Value::as_str).map(str::to_owned);
        Some(Self::Report { inbox: text("inbox")?, out: text("out")?, moved: text("moved") })
    }

    /// The completion of a task; `None` where it has none.
    ///
    /// # Errors
    /// It cannot be read, or it is one that this version does not know.
    pub(crate) fn of(reader: &mut dyn Reader, task: &TaskId) -> Result<Option<Self>, EngineError> {
        let Some(stored) = reader.completion(task)? else { return Ok(None) };
        let unknown = || {
            let why = "it ends with something that this version does not know; use a newer one".to_owned();
            EngineError::Stored { task: task.clone(), step: None, why }
        };
        Self::from_json(&stored).map(Some).ok_or_else(unknown)
    }

    /// Where the report is.
    pub(crate) fn out(&self, world: &World) -> PathBuf {
        let Self::Report { out, .. } = self;
        world.at(Path::new(out))
    }

    /// Where the notes are.
    pub(crate) fn inbox(&self, world: &World) -> PathBuf {
        let Self::Report { inbox, moved, .. } = self;
        world.at(Path::new(moved.as_ref().unwrap_or(inbox)))
    }

    /// The folder that the plan names and that is elsewhere now, and where.
    pub(crate) fn moved(&self) -> Option<(&str, &str)> {
        let Self::Report { inbox, moved, .. } = self;
        moved.as_ref().map(|moved| (inbox.as_str(), moved.as_str()))
    }

    /// Refuses a place at which no report can stand, before anything is done for it: it would be found out when all the
    /// work is done.
    ///
    /// # Errors
    /// Something stands there that is left alone, or the folder can be neither written nor made.
    pub(crate) fn check_place(&self, world: &World) -> Result<(), EngineError> {
        let out = self.out(world);
        tools::check_replaceable(&out).map_err(EngineError::Report)?;
        check_folder(tools::folder_of(&out)).map_err(EngineError::Report)
    }

    /// Removes what a killed run left behind. Under the task's lease, so that no living process needs it.
    ///
    /// # Errors
    /// The folder cannot be listed or a file in it not removed.
    pub(crate) fn sweep(&self, task: &TaskId, world: &World) -> Result<(), EngineError> {
        let out = self.out(world);
        tools::sweep_temporaries(tools::folder_of(&out), &temporary_key(task)).map_err(EngineError::Report)
    }

    /// Does it; a second time it finds the same. What it did is durable when it returns.
    ///
    /// # Errors
    /// The report is not there, or there as a whole; the task is not done yet, and the next run tries again.
    pub(crate) fn carry_out(
        &self,
        reader: &mut dyn Reader,
        task: &TaskId,
        world: &World,
        replace: Replace<'_>,
        crash: CrashScope<'_>,
    ) -> Result<Published, EngineError> {
        let mut source = Source::new(reader, task)?;
        let key = temporary_key(task);
        let result = replace(&self.out(world), &key, &mut |out| source.write(out), SITES, crash);
        match source.failure {
            Some(failure) => Err(failure),
            None => result.map_err(EngineError::Report),
        }
    }

    /// What is wrong with the report, one line; `None` where it is what was published.
    ///
    /// # Errors
    /// The results cannot be read.
    pub(crate) fn audit(
        &self,
        reader: &mut dyn Reader,
        task: &TaskId,
        world: &World,
    ) -> Result<Option<String>, EngineError> {
        let mut source = Source::new(reader, task)?;
        let out = self.out(world);
        let same = tools::has_content(&out, &mut |out| source.write(out));
        if let Some(failure) = source.failure {
            return Err(failure);
        }
        let shown = out.display();
        Ok(match same {
            Ok(true) => None,
            Ok(false) => Some(format!("the report {shown} is missing or has other content")),
            Err(error) => Some(error.to_string()),
        })
    }
}

/// Refuses a folder that can be neither written nor made. A file without a name is the one question that tells for sure
/// and leaves no trace; where file systems know none, the permissions have to do.
fn check_folder(folder: &Path) -> Result<(), PublishError> {
    let failed = |source: io::Error| PublishError::Io { op: "write to the folder", path: folder.to_owned(), source };
    let there = folder.ancestors().find(|part| part.as_os_str().is_empty() || part.symlink_metadata().is_ok());
    let there = there.filter(|part| !part.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let nameless = OFlag::O_TMPFILE | OFlag::O_WRONLY | OFlag::O_CLOEXEC;
    match open(there, nameless, Mode::S_IRUSR | Mode::S_IWUSR) {
        Ok(_) => Ok(()),
        Err(Errno::EOPNOTSUPP | Errno::EISDIR | Errno::EINVAL) => {
            access(there, AccessFlags::W_OK | AccessFlags::X_OK).map_err(|errno| failed(errno.into()))
        }
        Err(errno) => Err(failed(errno.into())),
    }
}

/// Names the report's temporary file: by its task and not by the report, so that no two names can be the same, whatever
/// reports are called. No step's key is like it, they end with a number.
pub(crate) fn temporary_key(task: &TaskId) -> String {
    format!("{}-report", task.file_stem())
}

/// The report, made from the committed outputs.
struct Source<'a> {
    reader: &'a mut dyn Reader,
    task: &'a TaskId,
    steps: u32,
    /// Why the outputs could not be read; it does not fit through the writer.
    failure: Option<EngineError>,
}

impl<'a> Source<'a> {
    fn new(reader: &'a mut dyn Reader, task: &'a TaskId) -> Result<Self, EngineError> {
        let steps = reader.load(task)?.map_or(0, |state| state.steps);
        Ok(Self { reader, task, steps, failure: None })
    }

    /// The JSON list, a result a line.
    fn write(&mut self, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(b"[")?;
        for step in 0..self.steps {
            out.write_all(if step == 0 { b"\n" } else { b",\n" })?;
            let result = self.result(step).map_err(|failure| {
                self.failure = Some(failure);
                io::Error::other("a result cannot be read")
            })?;
            serde_json::to_writer(&mut *out, &result)?;
        }
        out.write_all(if self.steps == 0 { b"]\n" } else { b"\n]\n" })
    }

    fn result(&mut self, step: u32) -> Result<Map<String, Value>, EngineError> {
        let missing = || {
            let why = "it has no output".to_owned();
            EngineError::Stored { task: self.task.clone(), step: Some(step), why }
        };
        self.reader.output(self.task, step)?.ok_or_else(missing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_completion_survives_its_json_and_others_are_not_guessed_at() {
        for moved in [None, Some("elsewhere".to_owned())] {
            let report = Completion::Report { inbox: "in".into(), out: "Übersicht.json".into(), moved };
            assert_eq!(Completion::from_json(&report.to_json()), Some(report));
        }
        for other in [json!({}), json!({"report": {"out": "x"}}), json!({"mail": {"to": "me"}})] {
            let Value::Object(other) = other else { unreachable!() };
            assert_eq!(Completion::from_json(&other), None);
        }
    }
}

//! What tools may know of their surroundings. The agent fills it in from its environment.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use store::files::folder_of;

use crate::address::Address;
use crate::secrets::Secrets;

/// Settings that hold for a whole run.
#[derive(Clone, Debug)]
pub struct World {
    /// The folder that relative paths of the task start from; empty where that is the working directory.
    pub home: PathBuf,
    /// A folder of inputs that is elsewhere now.
    pub moved: Option<Moved>,
    /// Folder for artifacts; relative to the task's home. It is made when the first artifact is.
    pub artifacts: PathBuf,
    /// Negative control only: effects are deliberately not idempotent.
    pub unsafe_effects: bool,
    /// Who summarizes.
    pub engine: Engine,
    /// What is put in at the moment of sending.
    pub secrets: Secrets,
    /// How programs are started.
    pub programs: Programs,
    /// The database; empty where there is none.
    pub database: PathBuf,
}

/// How programs are started.
#[derive(Clone, Debug, Default)]
pub struct Programs {
    /// The command that becomes a keeper, see [`crate::keeper`]; where it is empty, no program can be started.
    pub keeper: Vec<OsString>,
    /// Where it is noted what runs, and where standard error is kept. Made when it is needed.
    pub folder: PathBuf,
    /// The variables that every program gets.
    pub environment: Vec<(OsString, OsString)>,
}

/// A folder that the plan names and that is elsewhere now: plans are frozen, folders are not.
#[derive(Clone, Debug)]
pub struct Moved {
    /// As the plan has it.
    pub from: PathBuf,
    /// Where it is; relative to the task's home, or absolute.
    pub to: PathBuf,
}

impl World {
    /// Where a path of the task leads.
    #[must_use]
    pub fn at(&self, path: &Path) -> PathBuf {
        self.home.join(path)
    }

    /// Whether a path leads to the database, or to what stands beside it under its name.
    #[must_use]
    pub fn is_of_database(&self, path: &Path) -> bool {
        let Some(database) = self.database.file_name() else { return false };
        let folder = |path: &Path| folder_of(path).canonicalize().ok();
        let beside = folder(&self.database);
        let place = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        // What is not there yet is judged by the folder that it would be in, and so is each folder above it.
        place.ancestors().any(|place| {
            let name = place.file_name().unwrap_or_default().as_encoded_bytes();
            name.starts_with(database.as_encoded_bytes()) && folder(place) == beside
        })
    }

    /// Where a path leads from which a step reads.
    #[must_use]
    pub fn input(&self, path: &Path) -> PathBuf {
        match &self.moved {
            Some(Moved { from, to }) if path.starts_with(from) => {
                self.at(&to.join(path.strip_prefix(from).unwrap_or(path)))
            }
            _ => self.at(path),
        }
    }
}

/// Who summarizes.
#[derive(Clone, Debug)]
pub enum Engine {
    /// The first lines of the text: offline, deterministic.
    Stub,
    /// A local model.
    Ollama(Ollama),
}

/// How to reach an Ollama server.
#[derive(Clone, Debug)]
pub struct Ollama {
    /// Where it is.
    pub address: Address,
    /// The model's name.
    pub model: String,
    /// Limit for one whole request.
    pub timeout: Duration,
}

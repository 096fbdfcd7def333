//! What tools may know of their surroundings. The agent fills it in from its environment.

use std::path::PathBuf;
use std::time::Duration;

use crate::address::Address;

/// Settings that hold for a whole run.
#[derive(Clone, Debug)]
pub struct World {
    /// Folder for artifacts; relative to the working directory. It is made when the first artifact is.
    pub artifacts: PathBuf,
    /// Negative control only: effects are deliberately not idempotent.
    pub unsafe_effects: bool,
    /// Who summarizes.
    pub engine: Engine,
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

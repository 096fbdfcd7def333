//! What all scenarios of one run of the lab share.

use std::path::PathBuf;

use crate::agent::target::Target;

/// The lab's equipment: whom it tests, where, and with which luck.
#[derive(Debug, Clone)]
pub struct Lab {
    /// The agent under test.
    pub target: Target,
    /// This program, whose command `become-traced` starts the agent for the tracer.
    pub launcher: PathBuf,
    /// Below which folder the scenarios' folders are made.
    pub root: PathBuf,
    /// Every random choice follows from it.
    pub seed: u64,
    /// How many cases the method `fuzz` plays, where somebody has chosen.
    pub cases: Option<u32>,
    /// Whether nothing is left out: resumes are killed again, kills are true ones too, and no call is passed over.
    pub deep: bool,
    /// What a replay command needs beside the scenario, e.g. ` --agent ./mine`.
    pub replay_options: String,
}

impl Lab {
    /// The whole command that plays `subject` (a scenario's id) again.
    #[must_use]
    pub fn replay_command(&self, subject: &str) -> String {
        format!("chaos replay '{subject}' --seed {}{}", self.seed, self.replay_options)
    }

    /// A seed of its own for everything that is called `name`.
    #[must_use]
    pub fn seed_for(&self, name: &str) -> u64 {
        // FNV-1a: stable across versions of Rust, unlike the standard hasher.
        let start = 0xcbf2_9ce4_8422_2325 ^ self.seed;
        let step = |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        name.bytes().fold(start, step)
    }
}

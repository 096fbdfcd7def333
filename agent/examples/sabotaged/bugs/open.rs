//! Bugs that no method shows. Each says what it would take.

use super::artifacts::artifact;
use super::{BUG, Bug};
use crate::plant::{Artifact, Temporary};

pub(super) static BUGS: &[Bug] = &[Bug {
    name: "temporary_renewed",
    about: "The temporary file is named after the key alone and made anew, whoever may be at work on it.",
    methods: &["points", "race", "pause"],
    open: Some(
        "while the lock holds, no two processes are at the same step, and what a killed one left is made anew: \
         it takes a missing lock as well",
    ),
    plant: artifact(Artifact::ByTemporary(Temporary::Renewed)),
    ..BUG
}];

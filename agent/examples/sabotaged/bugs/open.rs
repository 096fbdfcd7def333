//! Bugs that no method shows yet. Each says what it would take.

use super::artifacts::artifact;
use super::{BUG, Bug};
use crate::plant::{Artifact, HONEST, Lock, Plant, Temporary};

pub(super) static BUGS: &[Bug] = &[
    Bug {
        name: "read_before_lock",
        about: "The state is read first and the lock taken then.",
        methods: &["points", "race"],
        open: Some("the other run must begin and end between two system calls of this one: it takes a pause there"),
        plant: Plant { lock: Lock::AfterLoad, ..HONEST },
        ..BUG
    },
    Bug {
        name: "temporary_renewed",
        about: "The temporary file is named after the key alone and made anew, whoever may be at work on it.",
        methods: &["points", "race"],
        open: Some("while the lock holds, no two processes are at the same step"),
        plant: artifact(Artifact::ByTemporary(Temporary::Renewed)),
        ..BUG
    },
    Bug {
        name: "swept_for_all",
        about: "Recovery sweeps the temporary files of every task, whoever is at work on them.",
        methods: &["points", "neighbours"],
        open: Some("a neighbour must stand between its temporary file and its name: it takes a pause there"),
        plant: artifact(Artifact::SweptForAll),
        ..BUG
    },
    Bug {
        name: "content_not_compared",
        about: "A file that stands under the artifact's name is taken for it, whatever it says.",
        open: Some(
            "its content comes from a committed output, so all attempts have the same: it takes a stranger's file",
        ),
        plant: artifact(Artifact::ByTemporary(Temporary::Uncompared)),
        ..BUG
    },
    Bug {
        name: "sync_error_unheeded",
        about: "A sync that fails is taken for one that did not.",
        open: Some("it takes a disk that fails"),
        plant: artifact(Artifact::ByTemporary(Temporary::SyncUnheeded)),
        ..BUG
    },
];

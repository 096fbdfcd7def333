//! Bugs that no kill can show. They wait for deeper methods, and say what these must do.

use super::artifacts::artifact;
use super::{BUG, Bug, POINTS};
use crate::plant::{Artifact, HONEST, Lock, Plant, Temporary};

const KERNEL: &str = "a kill loses nothing that the kernel has: only a power cut shows it";

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
        name: "file_not_synced",
        about: "The artifact gets its name before its content is on the disk.",
        open: Some(KERNEL),
        plant: artifact(Artifact::ByTemporary(Temporary::FileUnsynced)),
        ..BUG
    },
    Bug {
        name: "folder_not_synced",
        about: "A step is committed before the artifact's name is on the disk.",
        open: Some(KERNEL),
        plant: artifact(Artifact::ByTemporary(Temporary::FolderUnsynced)),
        ..BUG
    },
    Bug {
        name: "parent_not_synced",
        about: "A step is committed before the name of the artifacts folder is on the disk.",
        open: Some(KERNEL),
        plant: artifact(Artifact::ByTemporary(Temporary::ParentUnsynced)),
        ..BUG
    },
    Bug {
        name: "sync_error_unheeded",
        about: "A sync that fails is taken for one that did not.",
        open: Some("it takes a disk that fails"),
        plant: artifact(Artifact::ByTemporary(Temporary::SyncUnheeded)),
        ..BUG
    },
    Bug {
        name: "synchronous_normal",
        about: "Commits are not synced, only checkpoints are.",
        open: Some(KERNEL),
        plant: Plant { synchronous: "NORMAL", ..HONEST },
        ..BUG
    },
    Bug {
        name: "synchronous_off",
        about: "Nothing is synced.",
        methods: POINTS,
        open: Some(KERNEL),
        plant: Plant { synchronous: "OFF", ..HONEST },
        ..BUG
    },
];

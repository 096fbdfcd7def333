//! Bugs that only a power cut shows: a kill loses nothing that the kernel has.

use super::artifacts::artifact;
use super::{BUG, Bug, POWER, PlanKind, QUARTER};
use crate::plant::{Artifact, HONEST, Plant, Temporary};

pub(super) static BUGS: &[Bug] = &[
    Bug {
        name: "file_not_synced",
        about: "The artifact gets its name before its content is on the disk.",
        methods: POWER,
        part: QUARTER,
        caught_by: &["effect_once"],
        plant: artifact(Artifact::ByTemporary(Temporary::FileUnsynced)),
        ..BUG
    },
    Bug {
        name: "folder_not_synced",
        about: "A step is committed before the artifact's name is on the disk.",
        methods: POWER,
        caught_by: &["effect_once"],
        plant: artifact(Artifact::ByTemporary(Temporary::FolderUnsynced)),
        ..BUG
    },
    Bug {
        name: "parent_not_synced",
        about: "A step is committed before the name of the artifacts folder is on the disk.",
        methods: POWER,
        caught_by: &["effect_once"],
        plant: artifact(Artifact::ByTemporary(Temporary::ParentUnsynced)),
        ..BUG
    },
    Bug {
        name: "synchronous_normal",
        about: "Commits are not synced, only checkpoints are.",
        plan: PlanKind::Single,
        methods: POWER,
        caught_by: &["acknowledged_survives"],
        plant: Plant { synchronous: "NORMAL", ..HONEST },
        ..BUG
    },
    Bug {
        name: "synchronous_off",
        about: "Nothing is synced.",
        plan: PlanKind::Single,
        methods: POWER,
        caught_by: &["acknowledged_survives"],
        plant: Plant { synchronous: "OFF", ..HONEST },
        ..BUG
    },
];

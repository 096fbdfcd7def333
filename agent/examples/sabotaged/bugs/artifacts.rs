//! Bugs of the one effect that the report has.

use super::{BUG, Bug, FAULTS, PAUSE};
use crate::plant::{Artifact, HONEST, Plant, Temporary};

pub(super) static BUGS: &[Bug] = &[
    Bug {
        name: "done_before_effect",
        about: "A step is committed as done before its artifact is published.",
        caught_by: &["effect_once"],
        plant: artifact(Artifact::Late),
        ..BUG
    },
    Bug {
        name: "artifact_in_place",
        about: "The artifact is created under its final name and then filled.",
        caught_by: &["effect_once"],
        plant: artifact(Artifact::InPlace { compared: true }),
        ..BUG
    },
    Bug {
        name: "same_key_other_content",
        about: "The artifact is created in place, and whatever stands under its name is taken for it.",
        caught_by: &["effect_once"],
        plant: artifact(Artifact::InPlace { compared: false }),
        ..BUG
    },
    Bug {
        name: "artifact_overwritten",
        about: "Each attempt empties the artifact and fills it again.",
        caught_by: &["effect_once"],
        plant: artifact(Artifact::Overwritten),
        ..BUG
    },
    Bug {
        name: "artifact_appended",
        about: "Each attempt appends to the artifact.",
        caught_by: &["effect_once"],
        plant: artifact(Artifact::Appended),
        ..BUG
    },
    Bug {
        name: "temporary_left",
        about: "The temporary file of a killed attempt stays for ever.",
        caught_by: &["no_stray_files"],
        plant: artifact(Artifact::Unswept),
        ..BUG
    },
    Bug {
        name: "temporary_appended_to",
        about: "The temporary file is named after the key alone and appended to.",
        caught_by: &["effect_once"],
        plant: artifact(Artifact::ByTemporary(Temporary::AppendedTo)),
        ..BUG
    },
    Bug {
        name: "temporary_shared",
        about: "The temporary file is named after the key alone, and after a kill it still is the artifact itself.",
        caught_by: &["effect_once"],
        plant: artifact(Artifact::ByTemporary(Temporary::Shared)),
        ..BUG
    },
    Bug {
        name: "temporary_taken_over",
        about: "The temporary file of a killed attempt is taken for a whole one.",
        caught_by: &["effect_once"],
        plant: artifact(Artifact::ByTemporary(Temporary::TakenOver)),
        ..BUG
    },
    Bug {
        name: "content_not_compared",
        about: "A file that stands under the artifact's name is taken for it, whatever it says.",
        methods: &["drift"],
        caught_by: &["foreign_result"],
        plant: artifact(Artifact::ByTemporary(Temporary::Uncompared)),
        ..BUG
    },
    Bug {
        name: "swept_for_all",
        about: "Recovery sweeps the temporary files of every task, whoever is at work on them.",
        methods: PAUSE,
        caught_by: &["undisturbed"],
        plant: artifact(Artifact::SweptForAll),
        ..BUG
    },
    Bug {
        name: "fsync_error_ignored",
        about: "A sync of the artifact that fails is taken for one that did not.",
        methods: FAULTS,
        caught_by: &["no_false_success"],
        plant: artifact(Artifact::ByTemporary(Temporary::SyncIgnored)),
        ..BUG
    },
];

pub(super) const fn artifact(way: Artifact) -> Plant {
    Plant { artifact: way, ..HONEST }
}

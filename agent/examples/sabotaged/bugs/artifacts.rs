//! Bugs of the one effect that the report has.

use super::{BUG, Bug};
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
];

pub(super) const fn artifact(way: Artifact) -> Plant {
    Plant { artifact: way, ..HONEST }
}

//! Who may depend on whom.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use serde_json::Value;

use crate::util;

/// What each member may name of the others. Tests and examples may also use `fixtures`.
const MAY_USE: &[(&str, &[&str])] = &[
    ("store", &[]),
    ("tools", &["store"]),
    ("agent", &["store", "tools"]),
    ("chaos", &[]),
    ("fixtures", &[]),
    ("sabotaged", &["store", "tools", "agent"]),
    ("xtask", &[]),
];

/// Libraries that only these members may name: the backend's and the terminal's do not leak.
const ONLY: &[(&str, &[&str])] = &[
    ("rusqlite", &["store", "chaos", "sabotaged"]),
    ("clap", &["agent", "chaos", "xtask"]),
    ("anyhow", &["agent", "chaos", "xtask"]),
    ("ureq", &["tools"]),
];

pub(super) fn check() -> Result<Vec<String>> {
    Ok(judge(&dependencies(&util::metadata()?)))
}

/// Ordinary dependencies by member.
fn dependencies(metadata: &Value) -> BTreeMap<String, BTreeSet<String>> {
    let packages = metadata["packages"].as_array().map_or(&[][..], Vec::as_slice);
    let name = |value: &Value| value["name"].as_str().unwrap_or_default().to_owned();
    packages
        .iter()
        .map(|package| {
            let all = package["dependencies"].as_array().map_or(&[][..], Vec::as_slice);
            (name(package), all.iter().filter(|one| one["kind"].is_null()).map(name).collect())
        })
        .collect()
}

fn judge(dependencies: &BTreeMap<String, BTreeSet<String>>) -> Vec<String> {
    let mut broken = Vec::new();
    for (member, uses) in dependencies {
        let Some((_, allowed)) = MAY_USE.iter().find(|(name, _)| name == member) else {
            broken.push(format!("{member} is no member that the rules know"));
            continue;
        };
        for used in uses.iter().filter(|used| MAY_USE.iter().any(|(name, _)| name == *used)) {
            if !allowed.contains(&used.as_str()) {
                broken.push(format!("{member} must not depend on {used}"));
            }
        }
        for (library, users) in ONLY {
            if uses.contains(*library) && !users.contains(&member.as_str()) {
                broken.push(format!("{member} must not depend on {library}"));
            }
        }
    }
    broken
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(member: &str, uses: &str) -> Vec<String> {
        judge(&BTreeMap::from([(member.to_owned(), BTreeSet::from([uses.to_owned()]))]))
    }

    #[test]
    fn arrows_point_one_way() {
        assert!(judged("tools", "store").is_empty());
        assert_eq!(judged("store", "tools"), ["store must not depend on tools"]);
        assert_eq!(judged("chaos", "agent"), ["chaos must not depend on agent"]);
        assert_eq!(judged("tools", "rusqlite"), ["tools must not depend on rusqlite"]);
        assert_eq!(judged("newcomer", "serde").len(), 1);
    }
}

//! Who may depend on whom, and on which libraries.

use std::fs;

use anyhow::{Context as _, Result};
use serde_json::Value;

use crate::util;

/// What a member may name of the others.
struct Member {
    name: &'static str,
    uses: &'static [&'static str],
    /// What its tests and examples may name besides.
    tests_use: &'static [&'static str],
}

const MEMBERS: &[Member] = &[
    Member { name: "store", uses: &[], tests_use: &["fixtures"] },
    Member { name: "tools", uses: &["store"], tests_use: &["fixtures"] },
    Member { name: "agent", uses: &["store", "tools"], tests_use: &["fixtures"] },
    Member { name: "chaos", uses: &[], tests_use: &["fixtures"] },
    Member { name: "fixtures", uses: &[], tests_use: &[] },
    Member { name: "sabotaged", uses: &["store", "tools", "agent"], tests_use: &["fixtures"] },
    Member { name: "xtask", uses: &[], tests_use: &[] },
];

/// Libraries that only these members may name: the backend's and the terminal's do not leak.
const ONLY: &[(&str, &[&str])] = &[
    ("rusqlite", &["store", "chaos", "sabotaged"]),
    ("clap", &["agent", "chaos", "xtask"]),
    ("anyhow", &["agent", "chaos", "xtask"]),
    ("ureq", &["tools"]),
    ("minijinja", &["agent"]),
    ("jsonschema", &["agent"]),
    ("granit-parser", &["agent"]),
];

/// The same for tests and examples: those of the agent look into its database from outside.
const ONLY_IN_TESTS: &[(&str, &[&str])] = &[("rusqlite", &["store", "chaos", "agent"])];

/// Who may have the store with its SQLite backend: what is above the trait builds without it.
const WITH_SQLITE: &[&str] = &["agent", "sabotaged"];

pub(super) fn check() -> Result<Vec<String>> {
    let metadata = util::metadata()?;
    let mut broken = Vec::new();
    for package in metadata["packages"].as_array().context("cargo knows of no packages")? {
        broken.extend(judge(package));
        let manifest = package["manifest_path"].as_str().unwrap_or_default();
        let text = fs::read_to_string(manifest).with_context(|| format!("cannot read {manifest}"))?;
        broken.extend(lints(manifest, &text));
    }
    let text = fs::read_to_string(util::root().join("Cargo.toml")).context("cannot read Cargo.toml")?;
    if !text.contains("\nunsafe_code = \"forbid\"\n") {
        broken.push("Cargo.toml: the lints of the workspace must forbid unsafe code".to_owned());
    }
    Ok(broken)
}

/// What is wrong with the dependencies of a package, as `cargo metadata` tells them.
fn judge(package: &Value) -> Vec<String> {
    let name = package["name"].as_str().unwrap_or_default();
    let Some(member) = MEMBERS.iter().find(|member| member.name == name) else {
        return vec![format!(
            "{name}: the rules do not know this member; say in xtask/src/tidy/depend.rs what it may use"
        )];
    };
    let all = package["dependencies"].as_array().map_or(&[][..], Vec::as_slice);
    all.iter().filter_map(|dependency| judge_one(member, dependency)).collect()
}

fn judge_one(member: &Member, dependency: &Value) -> Option<String> {
    let name = member.name;
    let used = dependency["name"].as_str()?;
    let for_tests = dependency["kind"] == "dev";
    let who = if for_tests { format!("tests and examples of {name}") } else { name.to_owned() };
    let is_member = MEMBERS.iter().any(|member| member.name == used);
    let allowed = member.uses.contains(&used) || for_tests && member.tests_use.contains(&used);
    let only = if for_tests { ONLY_IN_TESTS } else { ONLY };
    let is_reserved = only.iter().any(|(library, users)| *library == used && !users.contains(&name));
    if is_member && !allowed || is_reserved {
        return Some(format!("{who} must not depend on {used}"));
    }
    let features = dependency["features"].as_array().map_or(&[][..], Vec::as_slice);
    let with_sqlite = dependency["uses_default_features"] == true || features.iter().any(|feature| feature == "sqlite");
    (used == "store" && with_sqlite && !WITH_SQLITE.contains(&name))
        .then(|| format!("{who} must do without the SQLite backend of the store"))
}

/// Lints hold only where a member asks for them.
fn lints(path: &str, manifest: &str) -> Option<String> {
    let has = manifest.contains("\n[lints]\nworkspace = true\n");
    (!has).then(|| format!("{path}: `[lints] workspace = true` is missing, and with it the ban on unsafe code"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn judged(member: &str, dependency: &Value) -> Vec<String> {
        judge(&json!({"name": member, "dependencies": [dependency]}))
    }

    fn on(name: &str) -> Value {
        json!({"name": name, "kind": null, "features": [], "uses_default_features": false})
    }

    fn in_tests_on(name: &str) -> Value {
        json!({"name": name, "kind": "dev", "features": [], "uses_default_features": true})
    }

    #[test]
    fn arrows_point_one_way() {
        assert!(judged("tools", &on("store")).is_empty());
        assert_eq!(judged("store", &on("tools")), ["store must not depend on tools"]);
        assert_eq!(judged("chaos", &on("agent")), ["chaos must not depend on agent"]);
        assert_eq!(judged("tools", &on("rusqlite")), ["tools must not depend on rusqlite"]);
        assert_eq!(judged("newcomer", &on("serde")).len(), 1);
    }

    /// Only ordinary dependencies were looked at: the witness could have linked the agent in its tests.
    #[test]
    fn arrows_of_tests_and_examples_point_one_way_too() {
        assert!(judged("chaos", &in_tests_on("fixtures")).is_empty());
        assert_eq!(judged("chaos", &in_tests_on("agent")), ["tests and examples of chaos must not depend on agent"]);
        assert_eq!(judged("chaos", &on("fixtures")), ["chaos must not depend on fixtures"]);
        assert_eq!(
            judged("tools", &in_tests_on("rusqlite")),
            ["tests and examples of tools must not depend on rusqlite"]
        );
    }

    #[test]
    fn tools_do_without_sqlite() {
        let mut store = on("store");
        store["uses_default_features"] = true.into();
        assert_eq!(judged("tools", &store), ["tools must do without the SQLite backend of the store"]);
        store["uses_default_features"] = false.into();
        store["features"] = json!(["sqlite"]);
        assert_eq!(judged("tools", &store).len(), 1);
        assert!(judged("agent", &store).is_empty());
    }

    #[test]
    fn a_member_without_the_lints_is_found() {
        assert!(lints("a/Cargo.toml", "[package]\n\n[lints]\nworkspace = true\n").is_none());
        assert!(lints("a/Cargo.toml", "[package]\n").is_some());
    }
}

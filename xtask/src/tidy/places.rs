//! Files and folders that documents and comments name must be there.

use std::collections::BTreeSet;

/// What a name begins with that leads into the workspace.
const MEMBERS: &[&str] = &["store/", "tools/", "agent/", "chaos/", "fixtures/", "xtask/", "docs/"];

/// Every file, and every folder above one.
pub(super) fn known<'a>(files: impl Iterator<Item = &'a str>) -> BTreeSet<&'a str> {
    let mut known = BTreeSet::new();
    for file in files {
        known.insert(file);
        known.extend(file.match_indices('/').map(|(at, _)| &file[..at]));
    }
    known
}

/// Names in a text that lead to nothing.
pub(super) fn gone(path: &str, line: usize, text: &str, known: &BTreeSet<&str>) -> Vec<String> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "/._-*<".contains(c);
    let words = text.split(|c| !is_part(c)).map(|word| word.trim_end_matches(['.', '/', '-']));
    let names = words.filter(|word| MEMBERS.iter().any(|member| word.starts_with(member)));
    let gone = names.filter(|name| !name.contains(['*', '<']) && !known.contains(name));
    gone.map(|name| format!("{path}:{line}: there is no {name}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_that_is_gone_is_found() {
        let known = known(["store/src/store.rs", "docs/chaos.md"].into_iter());
        let said = |text: &str| gone("a.md", 7, text, &known);
        assert!(said("see `store/src/store.rs`, store/src/ and (docs/chaos.md). And crash.store/x").is_empty());
        assert!(said("any store/src/*.rs, target/debug/agent, https://a.b/store/x").is_empty());
        assert_eq!(said("see `store/src/stare.rs`."), ["a.md:7: there is no store/src/stare.rs"]);
    }
}

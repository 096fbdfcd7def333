//! Tests that documents name must be there.

use std::collections::BTreeSet;

/// The names of functions in a source text.
pub(super) fn functions(text: &str) -> BTreeSet<&str> {
    let names = text.lines().filter_map(|line| line.trim_start().strip_prefix("fn "));
    names.filter_map(|rest| rest.split_once('(').map(|(name, _)| name)).collect()
}

/// Names in code marks that read like a test's, a sentence of four words or more, and are not among the known.
pub(super) fn unknown(path: &str, text: &str, known: &BTreeSet<String>) -> Vec<String> {
    let mut broken = Vec::new();
    for (number, line) in text.lines().enumerate() {
        for name in line.split('`').skip(1).step_by(2).filter(|name| is_sentence(name) && !known.contains(*name)) {
            broken.push(format!("{path}:{}: there is no test `{name}`", number + 1));
        }
    }
    broken
}

fn is_sentence(name: &str) -> bool {
    name.matches('_').count() >= 3
        && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_without_a_test_is_found() {
        let known = BTreeSet::from(["a_test_that_is_there".to_owned()]);
        assert_eq!(functions("    fn a_test_that_is_there() {"), BTreeSet::from(["a_test_that_is_there"]));
        assert!(unknown("d.md", "see `a_test_that_is_there` and `task_done`", &known).is_empty());
        assert_eq!(
            unknown("d.md", "see `a_test_that_is_gone`", &known),
            ["d.md:1: there is no test `a_test_that_is_gone`"]
        );
    }
}

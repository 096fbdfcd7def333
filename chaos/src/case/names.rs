//! Ids of tasks that are easily taken for each other: by LIKE and GLOB, by a
//! prefix, by a comparison that knows no case, and by whoever folds or
//! normalizes letters. Only one that compares bytes keeps them apart.

use crate::case::TASK;

/// Two tasks that stand in one database. Each is in the other's way, so it does
/// not matter which of them is killed.
const PAIRS: [[&str; 2]; 9] = [
    ["t1", "T1"],
    ["t1-2", "t1"],
    ["t_", "t1"],
    ["t%", "t1"],
    ["t*", "t1"],
    ["t?", "t1"],
    // Cyrillic, full width, and one letter against a letter and its accent.
    ["\u{442}1", "t1"],
    ["t1", "\u{ff54}\u{ff11}"],
    ["t\u{e9}", "te\u{301}"],
];

/// Six of them at once.
const SIX: [&str; 6] = ["t_", "t1", "T1", "t%", "t1-2", "\u{442}1"];

/// The `nth` pair; after the last one it begins anew.
#[must_use]
pub fn pair(nth: usize) -> Vec<String> {
    PAIRS[nth % PAIRS.len()].map(str::to_owned).to_vec()
}

/// How many pairs there are.
pub const COUNT: usize = PAIRS.len();

/// The usual task, and one whose id is a prefix of its id, its keys and its files.
#[must_use]
pub fn prefixed() -> Vec<String> {
    [TASK, "t"].map(str::to_owned).to_vec()
}

/// Six tasks; the `nth` time another one is first.
#[must_use]
pub fn six(nth: usize) -> Vec<String> {
    let mut six = SIX.map(str::to_owned);
    six.rotate_left(nth % SIX.len());
    six.to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_names_are_the_same_and_none_is_an_option_or_a_path() {
        for names in (0..COUNT).map(pair).chain((0..6).map(six)) {
            for (at, name) in names.iter().enumerate() {
                assert!(!names[..at].contains(name) && !name.starts_with('-') && !name.contains(['/', '~']), "{name}");
            }
        }
    }
}

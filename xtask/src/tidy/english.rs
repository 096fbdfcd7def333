//! Plain English: what a thing is not is said with `not`. That something "is no file" is a riddle to most readers.

const BE: &[&str] = &["is", "are", "was", "were", "be", "been", "being", "become", "becomes", "remain", "remains"];

/// What may follow all the same: `is no longer`, `is none of them`.
const FINE: &[[&str; 2]] = &[
    ["no", "longer"],
    ["no", "more"],
    ["no", "less"],
    ["no", "better"],
    ["no", "worse"],
    ["no", "one"],
    ["none", "of"],
];

/// So many words back, `there` makes it plain: "there would then be no file".
const BACK: usize = 4;

/// Lines with a riddle in them. Code is looked at like prose: it does not read so.
pub(super) fn check(path: &str, text: &str) -> Vec<String> {
    let words = words(text);
    let mut broken = Vec::new();
    for (at, three) in words.windows(3).enumerate() {
        let [(be, start), (no, end), (next, _)] = *three else { continue };
        let is_meant = BE.contains(&be) && ["no", "none"].contains(&no) && !FINE.contains(&[no, next]);
        let between = &text[start + be.len()..end];
        let is_joined = between.chars().all(|c| c.is_whitespace() || "/!#\\".contains(c));
        let before = &words[at.saturating_sub(BACK)..at];
        let has_there = before.iter().any(|(word, _)| word.eq_ignore_ascii_case("there"));
        if is_meant && is_joined && !has_there {
            let line = text[..start].matches('\n').count() + 1;
            broken.push(format!("{path}:{line}: \"{be} {no} {next}\": plain English says what it is, or `not`"));
        }
    }
    broken
}

/// Each word, and where it begins.
fn words(text: &str) -> Vec<(&str, usize)> {
    let mut words = Vec::new();
    let mut at = 0;
    for part in text.split_inclusive(|c: char| !c.is_alphanumeric()) {
        let word = part.trim_end_matches(|c: char| !c.is_alphanumeric());
        if !word.is_empty() {
            words.push((word, at));
        }
        at += part.len();
    }
    // The last word of a text can be the second of three.
    words.push(("", text.len()));
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_riddle_is_found_wherever_its_line_ends() {
        assert_eq!(check("a.rs", "// It is no\n").len(), 1);
        assert_eq!(check("a.rs", "x;\n/// what is\n/// no file, then\n").len(), 1);
        assert!(check("a.rs", "\n\"{} is no database\"")[0].starts_with("a.rs:2: \"is no database\""));
        assert_eq!(check("a.md", "a name that is none").len(), 1);
    }

    #[test]
    fn plain_english_is_left_alone() {
        for plain in ["there is no file", "there can then be no file", "it is no longer so", "it is none of them"] {
            assert!(check("a.rs", plain).is_empty(), "{plain}");
        }
        assert!(check("a.rs", "what it is. No file").is_empty());
    }
}

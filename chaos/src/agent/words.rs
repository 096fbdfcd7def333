//! A command line in one string, split into words like a shell would do it, so
//! that `--agent 'python3 "my agent.py"'` means what it says. No variables, no
//! globs: what is not understood is not guessed.

use crate::error::LabError;

/// Splits `line` at white space; single quotes keep everything, double quotes
/// keep everything but `\"` and `\\`, a backslash keeps the next character.
///
/// # Errors
/// A quote that is not closed, a backslash at the end, and a line without words.
pub fn split(line: &str) -> Result<Vec<String>, LabError> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = line.chars();
    while let Some(char) = chars.next() {
        match char {
            ' ' | '\t' | '\n' => words.extend(word.take()),
            '\'' | '"' => quoted(char, &mut chars, word.get_or_insert_default(), line)?,
            '\\' => {
                let next = chars.next().ok_or_else(|| bad(line, "it ends in a backslash"))?;
                word.get_or_insert_default().push(next);
            }
            other => word.get_or_insert_default().push(other),
        }
    }
    words.extend(word);
    if words.is_empty() {
        return Err(bad(line, "it has no words"));
    }
    Ok(words)
}

/// One word in a form that [`split`] and a shell read back as it is.
#[must_use]
pub fn quote(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./:=@%+,#".contains(c);
    if !word.is_empty() && word.chars().all(plain) && !word.starts_with('#') {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

fn quoted(quote: char, chars: &mut std::str::Chars<'_>, word: &mut String, line: &str) -> Result<(), LabError> {
    loop {
        match chars.next() {
            None => return Err(bad(line, "a quote is not closed")),
            Some(char) if char == quote => return Ok(()),
            Some('\\') if quote == '"' => match chars.next() {
                Some(next @ ('"' | '\\')) => word.push(next),
                Some(next) => word.extend(['\\', next]),
                None => return Err(bad(line, "a quote is not closed")),
            },
            Some(char) => word.push(char),
        }
    }
}

fn bad(line: &str, why: &str) -> LabError {
    LabError::Usage(format!("cannot split the command `{line}`: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rstest::rstest;

    #[rstest]
    #[case("python3 agent.py", &["python3", "agent.py"])]
    #[case("  a   b ", &["a", "b"])]
    #[case("python3 'my agent.py' --x=\"1 2\"", &["python3", "my agent.py", "--x=1 2"])]
    #[case(r#"a\ b "c\"d" ''"#, &["a b", "c\"d", ""])]
    fn a_line_is_split_like_a_shell_would(#[case] line: &str, #[case] words: &[&str]) {
        assert_eq!(split(line).expect("words"), words);
    }

    #[rstest]
    #[case("")]
    #[case("  ")]
    #[case("a 'b")]
    #[case("a \"b")]
    #[case("a \\")]
    fn what_a_shell_would_not_finish_is_refused(#[case] line: &str) {
        assert!(split(line).is_err());
    }

    proptest! {
        #[test]
        fn quoted_words_come_back_as_they_were(words in prop::collection::vec("\\PC*", 1..4)) {
            let line: Vec<String> = words.iter().map(|w| quote(w)).collect();
            prop_assert_eq!(split(&line.join(" ")).expect("words"), words);
        }
    }
}

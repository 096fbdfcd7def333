//! A source text taken apart: code, comments, string literals. Rules about the one must not trip over the others.

/// A piece of a source text and the line, from 1, on which it begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) line: usize,
    pub(super) text: String,
}

#[derive(Debug, Default)]
pub(super) struct Pieces {
    /// The code line by line as it was; of comments and literals only spaces and quotes are left.
    pub(super) code: String,
    /// A comment line each, with its marks.
    pub(super) comments: Vec<Piece>,
    /// What stands between the quotes, escapes as they are written.
    pub(super) literals: Vec<Piece>,
}

/// Takes a Rust source text apart.
pub(super) fn pieces(text: &str) -> Pieces {
    let mut pieces = Pieces::default();
    let (mut rest, mut line, mut in_word) = (text, 1, false);
    while let Some(first) = rest.chars().next() {
        let (kind, end) = token(rest, in_word);
        let (token, tail) = rest.split_at(end);
        match kind {
            Kind::Code => pieces.code.push_str(token),
            Kind::Comment => {
                let lines = token.lines().enumerate();
                pieces.comments.extend(lines.map(|(n, text)| Piece { line: line + n, text: text.trim().to_owned() }));
                blank(&mut pieces.code, token);
            }
            Kind::Literal => {
                pieces.literals.push(Piece { line, text: token.to_owned() });
                pieces.code.push('"');
                blank(&mut pieces.code, &token[1..token.len().max(2) - 1]);
                pieces.code.push('"');
            }
        }
        line += token.matches('\n').count();
        in_word = first.is_alphanumeric() || first == '_';
        rest = tail;
    }
    pieces
}

enum Kind {
    Code,
    Comment,
    Literal,
}

/// What begins here, and its length in bytes.
fn token(rest: &str, in_word: bool) -> (Kind, usize) {
    let one = rest.chars().next().map_or(0, char::len_utf8);
    if rest.starts_with("//") {
        return (Kind::Comment, rest.find('\n').unwrap_or(rest.len()));
    }
    if rest.starts_with("/*") {
        return (Kind::Comment, block_comment(rest));
    }
    let hashes = rest.strip_prefix('r').map_or(0, |raw| raw.len() - raw.trim_start_matches('#').len());
    if !in_word && rest.starts_with('r') && rest[1 + hashes..].starts_with('"') {
        let close = format!("\"{}", "#".repeat(hashes));
        let start = 1 + hashes + 1;
        return (Kind::Literal, rest[start..].find(&close).map_or(rest.len(), |end| start + end + close.len()));
    }
    match rest.as_bytes() {
        [b'"', ..] => (Kind::Literal, quoted(rest, '"')),
        [b'\'', b'\\', ..] => (Kind::Code, quoted(rest, '\'')),
        // A character, or else a lifetime, which no quote ends.
        [b'\'', ..] if rest.chars().nth(2) == Some('\'') => {
            (Kind::Code, rest.char_indices().nth(3).map_or(rest.len(), |(at, _)| at))
        }
        _ => (Kind::Code, one),
    }
}

/// The length of what a quote opens and the next one that is not escaped ends.
fn quoted(rest: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if c == quote => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

/// Comments of this kind nest.
fn block_comment(rest: &str) -> usize {
    let mut depth = 0;
    for (at, _) in rest.char_indices() {
        if rest[at..].starts_with("/*") {
            depth += 1;
        } else if rest[at..].starts_with("*/") {
            depth -= 1;
            if depth == 0 {
                return at + 2;
            }
        }
    }
    rest.len()
}

/// Keeps lines and columns.
fn blank(code: &mut String, text: &str) {
    code.extend(text.chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(pieces: &[Piece]) -> Vec<&str> {
        pieces.iter().map(|piece| piece.text.as_str()).collect()
    }

    #[test]
    fn code_comments_and_literals_are_told_apart() {
        let found = pieces("let a = \"x // y\"; // z \"no\"\nb /* c\n d */ e");
        assert_eq!(found.code, "let a = \"      \";          \nb     \n      e");
        assert_eq!(texts(&found.literals), ["\"x // y\""]);
        assert_eq!(texts(&found.comments), ["// z \"no\"", "/* c", "d */"]);
        assert_eq!(found.comments[2].line, 3);
    }

    #[test]
    fn quotes_that_open_no_string_are_known() {
        let found = pieces("fn f<'a>(c: &'a str) { g('\"', '\\'', r#\"a \" b\"#, \"c\\\"d\") }");
        assert_eq!(texts(&found.literals), ["r#\"a \" b\"#", "\"c\\\"d\""]);
    }
}

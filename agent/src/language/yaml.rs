//! YAML as JSON values, taken at its word.
//!
//! YAML reads some words as what nobody meant: `no` as false, `012` as 10 or 12, `1_000` as a number or not. Here
//! `true` and `false` are the booleans, every other word is text, and a number that programs read in different ways is
//! refused: who writes it says which one is meant, by quoting it.

use std::collections::HashMap;

use granit_parser::{Event, Marker, Parser, ScalarStyle, ScanError, Span, StructureStyle};
use serde_json::{Map, Number, Value};

/// How deep values may lie within each other, as in JSON.
const DEPTH: usize = 128;

/// How many values a file may hold, with what its aliases repeat.
const VALUES: usize = 1_000_000;

/// Reads a document.
///
/// # Errors
/// One line, with the place and, where the slip is a known one, what to write.
pub(crate) fn parse(text: &str) -> Result<Value, String> {
    let parser = Parser::new_from_str(text.strip_prefix('\u{feff}').unwrap_or(text));
    let mut reader = Reader { text, parser, named: HashMap::new(), values: 0 };
    loop {
        match reader.next()? {
            (Event::StreamStart | Event::DocumentStart(..), _) => {}
            (Event::StreamEnd | Event::DocumentEnd, _) => return Err("there is nothing in it".to_owned()),
            (event, span) => {
                let value = reader.value(event, span, 0)?;
                return reader.end().map(|()| value);
            }
        }
    }
}

struct Reader<'t> {
    text: &'t str,
    parser: Parser<'t, granit_parser::StrInput<'t>>,
    /// What has an anchor.
    named: HashMap<usize, Value>,
    values: usize,
}

impl<'t> Reader<'t> {
    fn next(&mut self) -> Result<(Event<'t>, Span), String> {
        match self.parser.next_event() {
            Some(Ok(event)) => Ok(event),
            Some(Err(error)) => Err(self.not_yaml(&error)),
            None => Ok((Event::StreamEnd, Span::default())),
        }
    }

    fn not_yaml(&self, error: &ScanError) -> String {
        let line = self.text.lines().nth(error.marker().line().saturating_sub(1)).unwrap_or_default();
        let hint = hint(line).map_or(String::new(), |hint| format!("; {hint}"));
        at(*error.marker(), &format!("not YAML: {}{hint}", error.info()))
    }

    fn end(&mut self) -> Result<(), String> {
        loop {
            match self.next()? {
                (Event::DocumentEnd, _) => {}
                (Event::StreamEnd, _) => return Ok(()),
                (_, span) => return Err(at(span.start, "a second document; a plan is one")),
            }
        }
    }

    fn value(&mut self, event: Event<'t>, span: Span, depth: usize) -> Result<Value, String> {
        self.count(1, span)?;
        if depth > DEPTH {
            return Err(at(span.start, &format!("more than {DEPTH} levels within each other")));
        }
        let (anchor, value) = match event {
            Event::Scalar(text, style, anchor, tag) => {
                let is_text = match tag.as_deref() {
                    None => style != ScalarStyle::Plain,
                    Some(tag) if tag.core_suffix() == Some("str") => true,
                    Some(tag) => return Err(foreign(span, &tag.original())),
                };
                let value =
                    if is_text { Value::from(&*text) } else { plain(&text).map_err(|why| at(span.start, &why))? };
                (anchor, value)
            }
            Event::SequenceStart(_, anchor, tag) => {
                refuse_tag(span, tag.as_deref())?;
                (anchor, self.list(depth)?)
            }
            Event::MappingStart(style, anchor, tag) => {
                refuse_tag(span, tag.as_deref())?;
                (anchor, self.map(span, style, depth)?)
            }
            Event::Alias(anchor) => {
                let value = self.named.get(&anchor).cloned();
                let value = value.ok_or_else(|| at(span.start, "an alias of what it is part of itself"))?;
                self.count(size(&value), span)?;
                return Ok(value);
            }
            _ => return Err(at(span.start, "not YAML: expected a value")),
        };
        if anchor > 0 {
            self.named.insert(anchor, value.clone());
        }
        Ok(value)
    }

    fn count(&mut self, more: usize, span: Span) -> Result<(), String> {
        self.values = self.values.saturating_add(more);
        if self.values <= VALUES { Ok(()) } else { Err(at(span.start, &format!("more than {VALUES} values"))) }
    }

    fn list(&mut self, depth: usize) -> Result<Value, String> {
        let mut items = Vec::new();
        loop {
            match self.next()? {
                (Event::SequenceEnd, _) => return Ok(Value::Array(items)),
                (event, span) => items.push(self.value(event, span, depth + 1)?),
            }
        }
    }

    fn map(&mut self, begin: Span, style: StructureStyle, depth: usize) -> Result<Value, String> {
        let mut fields = Map::new();
        loop {
            let name = match self.next()? {
                (Event::MappingEnd, _) => return Ok(Value::Object(fields)),
                (Event::Scalar(name, style, ..), span) => {
                    let is_merge = style == ScalarStyle::Plain && name == "<<";
                    if is_merge {
                        return Err(at(span.start, "`<<` merges nothing here; write the fields out"));
                    }
                    if fields.contains_key(&*name) {
                        return Err(at(span.start, &format!("`{name}` is given twice")));
                    }
                    name.into_owned()
                }
                (Event::MappingStart(StructureStyle::Flow, ..), _) if style == StructureStyle::Flow => {
                    return Err(at(begin.start, BRACES));
                }
                (_, span) => return Err(at(span.start, "the name of a field is text")),
            };
            let (event, span) = self.next()?;
            let value = self.value(event, span, depth + 1)?;
            fields.insert(name, value);
        }
    }
}

const BRACES: &str = "a text that begins with `{{` is quoted in YAML: \"{{ … }}\"";

/// What is meant by a line that is not YAML.
fn hint(line: &str) -> Option<&'static str> {
    let line = line.trim_start().trim_start_matches("- ");
    let (_, value) = line.split_once(':')?;
    let value = value.trim();
    if value.starts_with("{{") || value.starts_with("{%") {
        return Some(BRACES);
    }
    let quote = value.chars().next().filter(|mark| matches!(mark, '\'' | '"'))?;
    let rest = value[1..].split_once(quote)?.1.trim_start();
    let goes_on = !rest.is_empty() && !rest.starts_with(['#', ',', '}', ']']);
    goes_on.then_some("an expression that begins with a quote is quoted as a whole: \"'A' in x\"")
}

fn size(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(size).sum::<usize>(),
        Value::Object(fields) => 1 + fields.values().map(size).sum::<usize>(),
        _ => 1,
    }
}

fn at(place: Marker, why: &str) -> String {
    format!("{why} at line {} column {}", place.line().max(1), place.col() + 1)
}

fn refuse_tag(span: Span, tag: Option<&granit_parser::Tag>) -> Result<(), String> {
    match tag {
        Some(tag) if !matches!(tag.core_suffix(), Some("seq" | "map")) => Err(foreign(span, &tag.original())),
        _ => Ok(()),
    }
}

fn foreign(span: Span, tag: &str) -> String {
    at(span.start, &format!("the tag `{tag}` means nothing here; quote what is text"))
}

/// What a word without quotes is.
fn plain(text: &str) -> Result<Value, String> {
    match text {
        "" | "~" | "null" => return Ok(Value::Null),
        "true" => return Ok(Value::Bool(true)),
        "false" => return Ok(Value::Bool(false)),
        _ => {}
    }
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let refused = |why: &str| Err(format!("`{text}` {why}; quote it where it is text"));
    if matches!(unsigned.to_ascii_lowercase().as_str(), ".inf" | ".nan") {
        return refused("is not a number of JSON");
    }
    // The point may come first; what else does not begin with a digit is text.
    if !unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.')
        || !unsigned.contains(|c: char| c.is_ascii_digit())
    {
        return Ok(Value::from(text));
    }
    if let Some((_, digits)) = unsigned.split_once(['x', 'o', 'b']).filter(|(zero, _)| *zero == "0") {
        let is_number = !digits.is_empty() && digits.chars().all(|c| c.is_ascii_hexdigit() || c == '_');
        return if is_number { refused("is not a decimal number") } else { Ok(Value::from(text)) };
    }
    let bare = unsigned.replace('_', "");
    if !is_decimal(&bare) {
        return Ok(Value::from(text));
    }
    if bare.len() < unsigned.len() {
        return refused("is a number with underscores");
    }
    if unsigned.len() > 1 && unsigned.starts_with('0') && unsigned.as_bytes()[1].is_ascii_digit() {
        return refused("is a number with leading zeros");
    }
    let is_whole = unsigned.bytes().all(|byte| byte.is_ascii_digit());
    let number = match text.strip_prefix('+').unwrap_or(text) {
        whole if is_whole => whole.parse().map(i64::into).or_else(|_| whole.parse().map(u64::into)).ok(),
        float => float.parse().ok().and_then(Number::from_f64),
    };
    match number {
        Some(number) => Ok(Value::Number(number)),
        None if is_whole => refused("is a whole number beyond 64 bits"),
        None => refused("is a number beyond what JSON holds"),
    }
}

/// Digits, perhaps with a point and an exponent.
fn is_decimal(text: &str) -> bool {
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let exponent = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
    digits(whole)
        && digits(fraction)
        && !(whole.is_empty() && fraction.is_empty())
        && digits(exponent)
        && !exponent.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use serde_json::json;

    #[test]
    fn a_plan_comes_out_as_its_json_would() {
        let text = "goal: Open a ticket   # for people\nlabels: { team: ops }\nsteps:\n  - tool: echo\n    input: { value: [1, -2.5, 1e3, true, false, null, ~, 'x y', \"a\\nb\"] }\n  - tool: echo\n    input:\n      value: |\n        two\n        lines\n";
        assert_eq!(
            parse(text).unwrap(),
            json!({ "goal": "Open a ticket", "labels": { "team": "ops" }, "steps": [
                { "tool": "echo", "input": { "value": [1, -2.5, 1000.0, true, false, null, null, "x y", "a\nb"] } },
                { "tool": "echo", "input": { "value": "two\nlines\n" } } ] })
        );
    }

    /// A country was false, and an account number was another one.
    #[test]
    fn words_that_only_look_like_something_are_text() {
        for text in [
            "NO",
            "yes",
            "on",
            "True",
            "FALSE",
            "Null",
            "1:30",
            "2026-12-01",
            "1.2.3",
            "0xyz",
            "-x",
            ".",
            "v1",
            "12a",
            "._",
            "+",
        ] {
            assert_eq!(parse(text), Ok(Value::from(text)), "{text}");
        }
        assert_eq!(parse("'012'"), Ok(json!("012")));
        assert_eq!(parse("!!str 012"), Ok(json!("012")));
    }

    #[rstest]
    #[case("a: 012", "`012` is a number with leading zeros; quote it where it is text at line 1 column 4")]
    #[case("a: -00.5", "leading zeros")]
    #[case("a: 1_000", "underscores")]
    #[case("a: 0x1F", "not a decimal")]
    #[case("a: 0o17", "not a decimal")]
    #[case("a: .inf", "not a number of JSON")]
    #[case("a: -.NaN", "not a number of JSON")]
    #[case("a: 99999999999999999999", "beyond 64 bits")]
    #[case("a: 1e999", "beyond what JSON holds")]
    #[case("a: !date 2026-12-01", "the tag `!date`")]
    #[case("a: !!float 1", "the tag `!!float`")]
    #[case("a: !set {b}", "the tag `!set`")]
    #[case("a: 1\nb: 2\na: 3", "`a` is given twice at line 3 column 1")]
    #[case("<<: {a: 1}", "`<<` merges nothing")]
    #[case("a: 1\n---\nb: 2", "a second document")]
    #[case("", "there is nothing in it")]
    #[case("# nothing\n", "there is nothing in it")]
    #[case("a: {{ b }}", "a text that begins with `{{` is quoted")]
    #[case("a: {{ b }}/c", "a text that begins with `{{` is quoted")]
    #[case("- when: 'A' in x", "is quoted as a whole")]
    #[case("a: {[1]: 2}", "the name of a field is text")]
    #[case("? [1]\n: 2", "the name of a field is text")]
    #[case("a: [1, 2", "not YAML")]
    #[case("a: *b", "not YAML")]
    #[case("a: &b [*b]", "part of itself")]
    fn what_could_be_read_in_two_ways_is_refused_with_a_hint(#[case] text: &str, #[case] says: &str) {
        let error = parse(text).unwrap_err();
        assert!(error.contains(says), "{error}");
    }

    #[test]
    fn an_alias_repeats_what_it_names_and_not_without_end() {
        assert_eq!(parse("a: &x { b: 1 }\nc: *x"), Ok(json!({ "a": { "b": 1 }, "c": { "b": 1 } })));
        let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
        for n in 1..8 {
            bomb += &format!("a{n}: &a{n} [{}]\n", vec![format!("*a{}", n - 1); 10].join(", "));
        }
        assert!(parse(&bomb).unwrap_err().contains("more than 1000000 values"));
        let deep = "[".repeat(200) + &"]".repeat(200);
        assert!(parse(&deep).unwrap_err().contains("levels") || parse(&deep).unwrap_err().contains("not YAML"));
    }
}

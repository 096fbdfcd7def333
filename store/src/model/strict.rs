//! JSON as people write it, taken at its word.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use super::numbers::WholeNumbers;
use super::spot::Spot;

/// Parses a document, and refuses an object that gives one name twice and a whole number beyond 64 bits. A parser would
/// keep the last of the two names and a neighbour of the number without a word, and a plan would be frozen that says
/// something else than its file.
///
/// # Errors
/// One line, with the place.
pub(super) fn parse(text: &str) -> Result<Value, String> {
    parse_at(text, Spot::default())
}

/// The same for a text that is part of another one and begins there.
pub(super) fn parse_at(text: &str, start: Spot) -> Result<Value, String> {
    let Strict(value) = serde_json::from_str(text).map_err(|error| why(&error, start))?;
    let mut numbers = WholeNumbers::from(start);
    numbers.feed(text.as_bytes());
    numbers.finish().map_or(Ok(value), Err)
}

fn why(error: &serde_json::Error, start: Spot) -> String {
    let said = error.to_string();
    let here = format!(" at line {} column {}", error.line(), error.column());
    let column = if error.line() <= 1 { start.column - 1 + error.column() } else { error.column() };
    let spot = Spot { line: start.line - 1 + error.line().max(1), column };
    let said = spot.says(said.strip_suffix(&here).unwrap_or(&said));
    // What is JSON and is refused all the same is not a syntax error.
    if error.is_data() { said } else { format!("not JSON: {said}") }
}

/// What a JSON value is, in words, for messages.
#[must_use]
pub fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

struct Strict(Value);

impl<'de> Deserialize<'de> for Strict {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyValue).map(Strict)
    }
}

struct AnyValue;

impl<'de> Visitor<'de> for AnyValue {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value).map(Value::Number).ok_or_else(|| E::custom("a number that is not finite"))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E: Error>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        while let Some(Strict(value)) = list.next_element()? {
            values.push(value);
        }
        Ok(Value::Array(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some((name, Strict(value))) = entries.next_entry::<String, Strict>()? {
            if map.contains_key(&name) {
                return Err(A::Error::custom(format!("`{name}` is given twice")));
            }
            map.insert(name, value);
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_comes_out_as_any_parser_would_have_it() {
        let text =
            r#"{"a": [1, -2, 1.5, 1e300, 18446744073709551615, null, true, "\ud83d\ude00"], "b": {"a": {}, "": []}}"#;
        assert_eq!(parse(text).unwrap(), serde_json::from_str::<Value>(text).unwrap());
        for bad in ["", "{", "[1,]", "{\"a\": 1} 2", "nan", "1e999"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }

    /// 18446744073709551617 was frozen as 18446744073709552000.
    #[test]
    fn a_whole_number_beyond_64_bits_is_refused_and_not_rounded() {
        let error = parse("{\"a\": [\n18446744073709551617]}").unwrap_err();
        assert!(error.contains("18446744073709551617") && error.contains("64 bits at line 2"), "{error}");
    }

    #[test]
    fn a_name_that_is_given_twice_is_refused_with_its_place() {
        for text in [r#"{"a": 1, "a": 1}"#, r#"[{"b": {"a": 1, "c": 2, "\u0061": 3}}]"#] {
            let error = parse(text).unwrap_err();
            assert!(error.contains("`a` is given twice at line 1 column"), "{error}");
        }
    }
}

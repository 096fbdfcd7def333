//! JSON as templates see it, and what an expression gives as JSON.

use minijinja::value::{Serde, ValueKind};
use minijinja::{Error, Value as Seen};
use serde_json::{Map, Number, Value};

/// A value of JSON, for a template.
pub(super) fn seen(value: &impl serde::Serialize) -> Seen {
    Seen::from(Serde(value))
}

/// The text of an error, without the place in a file that nobody has.
pub(super) fn sentence(error: &Error) -> String {
    error.detail().map_or_else(|| error.kind().to_string(), str::to_owned)
}

/// The value as JSON.
///
/// # Errors
/// There is something in it that JSON has not.
pub(super) fn json(value: &Seen) -> Result<Value, String> {
    Ok(match value.kind() {
        ValueKind::None => Value::Null,
        ValueKind::Bool => Value::Bool(value.is_true()),
        ValueKind::Number => Value::Number(number(value)?),
        ValueKind::String => Value::from(value.as_str().unwrap_or_default()),
        ValueKind::Seq | ValueKind::Iterable => {
            let items = value.try_iter().map_err(|error| sentence(&error))?;
            Value::Array(items.map(|item| json(&item)).collect::<Result<_, _>>()?)
        }
        ValueKind::Map => {
            let names = value.try_iter().map_err(|error| sentence(&error))?;
            let field = |name: Seen| {
                let Some(text) = name.as_str() else { return Err(format!("the name `{name}` of a field is not text")) };
                let field = value.get_item(&name).map_err(|error| sentence(&error))?;
                Ok((text.to_owned(), json(&field)?))
            };
            Value::Object(names.map(field).collect::<Result<Map<_, _>, _>>()?)
        }
        ValueKind::Undefined => return Err("gives nothing".to_owned()),
        ValueKind::Invalid => return Err(value.to_string()),
        kind => return Err(format!("gives {kind}, which is not JSON")),
    })
}

fn number(value: &Seen) -> Result<Number, String> {
    if value.is_integer() {
        let whole = value.as_i64().map(Number::from).or_else(|| u64::try_from(value.clone()).ok().map(Number::from));
        return whole.ok_or_else(|| format!("gives {value}, a whole number beyond 64 bits"));
    }
    let float = f64::try_from(value.clone()).ok().and_then(Number::from_f64);
    float.ok_or_else(|| format!("gives {value}, which is not a number of JSON"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_value_comes_back_as_it_was() {
        let value = json!({ "a": [1, -2, 1.5, 1e300, u64::MAX, i64::MIN, null, true, "x"], "b": { "": [] }, "c": 2.0 });
        let back = json(&seen(&value)).unwrap();
        assert_eq!(back.to_string(), value.to_string(), "2.0 is not 2");
    }

    #[test]
    fn what_json_has_not_is_refused() {
        for (value, says) in [
            (Seen::UNDEFINED, "nothing"),
            (Seen::from(f64::NAN), "not a number of JSON"),
            (Seen::from(u128::MAX), "beyond 64 bits"),
            (Seen::from(vec![Seen::UNDEFINED]), "nothing"),
            (Seen::from_bytes(vec![1]), "bytes"),
            (Seen::from_pairs([(1, 2)]), "is not text"),
        ] {
            let error = json(&value).unwrap_err();
            assert!(error.contains(says), "{error}");
        }
    }
}

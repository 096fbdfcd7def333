//! The own fields of an event beside those that every event has.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::{Map, Value};

/// Where an event's own fields go that are called like one that every event has, so that no name is given twice.
const APART: &str = "data";

/// The own fields of an event, as they are printed: beside the others, or in `data` those whose names are taken.
#[derive(Serialize)]
pub(crate) struct OwnFields<'a> {
    #[serde(flatten)]
    beside: Cow<'a, Map<String, Value>>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    data: Map<String, Value>,
}

impl<'a> OwnFields<'a> {
    /// `taken` are the names that every event has. No event of this program has an own field of such a name; those of
    /// other programs may.
    pub(crate) fn of(data: &'a Map<String, Value>, taken: &[&str]) -> Self {
        let is_taken = |name: &str| name == APART || taken.contains(&name);
        if !data.keys().any(|name| is_taken(name)) {
            return Self { beside: Cow::Borrowed(data), data: Map::new() };
        }
        let (apart, beside) = data.clone().into_iter().partition(|(name, _)| is_taken(name));
        Self { beside: Cow::Owned(beside), data: apart }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn printed(data: Value) -> String {
        let Value::Object(data) = data else { unreachable!() };
        serde_json::to_string(&OwnFields::of(&data, &["seq", "run"])).unwrap()
    }

    #[test]
    fn a_field_whose_name_is_taken_goes_into_data_and_others_stay() {
        assert_eq!(printed(json!({})), "{}");
        assert_eq!(printed(json!({"a": 1})), r#"{"a":1}"#);
        assert_eq!(printed(json!({"a": 1, "run": 2, "seq": 3})), r#"{"a":1,"data":{"run":2,"seq":3}}"#);
        assert_eq!(printed(json!({"data": {"x": 1}})), r#"{"data":{"data":{"x":1}}}"#);
    }
}

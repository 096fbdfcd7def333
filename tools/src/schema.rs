//! What a tool takes and gives, as data: checked before a plan is stored and before an output is.

use serde_json::{Map, Value, json};

/// One field of a tool's input or output. Every field is required.
#[derive(Clone, Debug)]
pub struct Field {
    /// Its name in the JSON object.
    pub name: String,
    /// What it holds.
    pub kind: Kind,
    /// What it means, for people.
    pub about: String,
}

impl Field {
    /// A field.
    #[must_use]
    pub fn new(name: &str, kind: Kind, about: &str) -> Self {
        Self { name: name.to_owned(), kind, about: about.to_owned() }
    }
}

/// What a field holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A string.
    Text,
    /// A whole number from 0.
    Count,
    /// True or false.
    Flag,
    /// Any JSON value.
    Any,
    /// The index of an earlier step whose output has a text field of this name.
    From(String),
}

impl Kind {
    /// Whether `value` has this kind. That a [`Kind::From`] points at a fitting step is a matter of the whole plan.
    #[must_use]
    pub fn admits(&self, value: &Value) -> bool {
        match self {
            Self::Text => value.is_string(),
            Self::Count | Self::From(_) => value.is_u64(),
            Self::Flag => value.is_boolean(),
            Self::Any => true,
        }
    }

    /// The kind in words, for messages.
    #[must_use]
    pub fn words(&self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Count => "a whole number from 0",
            Self::Flag => "true or false",
            Self::Any => "a JSON value",
            Self::From(_) => "the index of an earlier step",
        }
    }

    fn schema(&self) -> Value {
        match self {
            Self::Text => json!({ "type": "string" }),
            Self::Count | Self::From(_) => json!({ "type": "integer", "minimum": 0 }),
            Self::Flag => json!({ "type": "boolean" }),
            Self::Any => json!({}),
        }
    }
}

/// The fields as a JSON Schema.
#[must_use]
pub fn schema_of(fields: &[Field]) -> Value {
    let properties: Map<String, Value> = fields
        .iter()
        .map(|field| {
            let mut schema = field.kind.schema();
            schema["description"] = field.about.as_str().into();
            (field.name.clone(), schema)
        })
        .collect();
    let required: Vec<&str> = fields.iter().map(|field| field.name.as_str()).collect();
    json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
}

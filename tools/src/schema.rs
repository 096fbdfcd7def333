//! What a tool takes and gives, as data: checked before a plan is stored, before a tool is called, and before an output
//! is stored.
//!
//! These few kinds say all that tools need, in words that fit one line, and know what a template is. A validator of
//! JSON Schema would cost thirty crates and say it worse; schemas go out of here, none comes in.

use serde_json::{Map, Value, json};
use store::model::codec;

use crate::length::{LENGTH, parse_length};

/// One field of a tool's input or output.
#[derive(Clone, Debug)]
pub struct Field {
    /// Its name in the JSON object.
    pub name: String,
    /// What it holds.
    pub kind: Kind,
    /// What it means, for people.
    pub about: String,
    /// Whether it must be there.
    pub required: bool,
    /// Whether a secret may be in it: it is sent, and nothing else is done with it.
    pub secret: bool,
}

impl Field {
    /// A field that must be there.
    #[must_use]
    pub fn new(name: &str, kind: Kind, about: &str) -> Self {
        Self { name: name.to_owned(), kind, about: about.to_owned(), required: true, secret: false }
    }

    /// A field that may be left out.
    #[must_use]
    pub fn optional(name: &str, kind: Kind, about: &str) -> Self {
        Self { required: false, ..Self::new(name, kind, about) }
    }

    /// The same, with a place for secrets.
    #[must_use]
    pub fn for_secrets(self) -> Self {
        Self { secret: true, ..self }
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
    /// Null.
    Null,
    /// A length of time, see [`parse_length`].
    Length,
    /// One of these texts.
    OneOf(&'static [&'static str]),
    /// A list of such values.
    List(Box<Kind>),
    /// An object whose fields, whatever their names, hold such values.
    Map(Box<Kind>),
    /// A value of one of these kinds.
    Either(Vec<Kind>),
    /// The index of an earlier step whose output has a text field of this name.
    From(String),
}

/// Whether texts are what they are, or may be templates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Each text stands for itself.
    Literal,
    /// A text that [`is_template`] may become any value, and is not looked at.
    Templated,
}

/// Whether a text of a plan is a template.
#[must_use]
pub fn is_template(text: &str) -> bool {
    text.contains("{{") || text.contains("{%")
}

/// Whether there is a NUL in a value, where databases cut a text.
pub(crate) fn has_nul(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains('\0'),
        Value::Array(items) => items.iter().any(has_nul),
        Value::Object(fields) => fields.iter().any(|(name, value)| name.contains('\0') || has_nul(value)),
        _ => false,
    }
}

/// Where within a value it is not what it must be, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misfit {
    /// The way to it, such as `.accept` or `[2]`; empty where it is the whole.
    pub path: String,
    /// What is wrong.
    pub why: String,
}

impl Kind {
    /// A list of such values.
    #[must_use]
    pub fn list(of: Self) -> Self {
        Self::List(Box::new(of))
    }

    /// An object of such values.
    #[must_use]
    pub fn map(of: Self) -> Self {
        Self::Map(Box::new(of))
    }

    /// The first thing in `value` that is not of this kind. That a [`Kind::From`] points at a fitting step is a matter
    /// of the whole plan.
    #[must_use]
    pub fn misfit(&self, value: &Value, form: Form) -> Option<Misfit> {
        let templated = form == Form::Templated && value.as_str().is_some_and(is_template);
        if templated && !matches!(self, Self::From(_)) {
            return None;
        }
        match (self, value) {
            (Self::List(kind), Value::Array(items)) => items.iter().enumerate().find_map(|(at, item)| {
                kind.misfit(item, form).map(|Misfit { path, why }| Misfit { path: format!("[{at}]{path}"), why })
            }),
            (Self::Map(kind), Value::Object(fields)) => fields.iter().find_map(|(name, field)| {
                kind.misfit(field, form).map(|Misfit { path, why }| Misfit { path: format!(".{name}{path}"), why })
            }),
            (Self::Either(kinds), _) => {
                let misfits = kinds.iter().map(|kind| kind.misfit(value, form)).collect::<Option<Vec<_>>>()?;
                Some(misfits.into_iter().find(|misfit| !misfit.path.is_empty()).unwrap_or_else(|| self.refuses(value)))
            }
            _ => (!self.admits(value)).then(|| self.refuses(value)),
        }
    }

    fn admits(&self, value: &Value) -> bool {
        match self {
            Self::Text => value.is_string(),
            Self::Count | Self::From(_) => value.is_u64(),
            Self::Flag => value.is_boolean(),
            Self::Null => value.is_null(),
            Self::Length => value.as_str().is_some_and(|text| parse_length(text).is_some()),
            Self::OneOf(words) => value.as_str().is_some_and(|text| words.contains(&text)),
            Self::Any => true,
            Self::List(_) | Self::Map(_) | Self::Either(_) => false,
        }
    }

    fn refuses(&self, value: &Value) -> Misfit {
        let shown = match (self, value) {
            (Self::OneOf(_) | Self::Length, Value::String(text)) => format!("`{text}`"),
            _ => shown(value),
        };
        Misfit { path: String::new(), why: format!("must be {}, is {shown}", self.words()) }
    }

    /// The kind in words, for messages.
    #[must_use]
    pub fn words(&self) -> String {
        match self {
            Self::Text => "text".to_owned(),
            Self::Count => "a whole number from 0".to_owned(),
            Self::Flag => "true or false".to_owned(),
            Self::Any => "a JSON value".to_owned(),
            Self::Null => "null".to_owned(),
            Self::Length => LENGTH.to_owned(),
            Self::OneOf([one]) => (*one).to_owned(),
            Self::OneOf(words) => format!("one of {}", words.join(", ")),
            Self::List(kind) => format!("a list of {}", kind.many()),
            Self::Map(kind) => format!("a map of {}", kind.many()),
            Self::Either(kinds) => kinds.iter().map(Self::words).collect::<Vec<_>>().join(" or "),
            Self::From(_) => "the index of an earlier step".to_owned(),
        }
    }

    fn many(&self) -> String {
        match self {
            Self::Text => "texts".to_owned(),
            Self::Count => "whole numbers from 0".to_owned(),
            Self::Any => "JSON values".to_owned(),
            other => other.words(),
        }
    }

    fn schema(&self) -> Value {
        match self {
            Self::Text => json!({ "type": "string" }),
            Self::Count | Self::From(_) => json!({ "type": "integer", "minimum": 0 }),
            Self::Flag => json!({ "type": "boolean" }),
            Self::Any => json!({}),
            Self::Null => json!({ "type": "null" }),
            Self::Length => json!({ "type": "string", "pattern": "^[0-9]+(ms|s|m|h|d)$" }),
            Self::OneOf(words) => json!({ "enum": words }),
            Self::List(kind) => json!({ "type": "array", "items": kind.schema() }),
            Self::Map(kind) => json!({ "type": "object", "additionalProperties": kind.schema() }),
            Self::Either(kinds) => json!({ "anyOf": kinds.iter().map(Self::schema).collect::<Vec<_>>() }),
        }
    }
}

/// A number is shown as it is, since "must be a whole number, is a number" would explain nothing.
fn shown(value: &Value) -> String {
    match value {
        Value::Number(number) => number.to_string(),
        other => codec::kind_of(other).to_owned(),
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
    let required: Vec<&str> = fields.iter().filter(|field| field.required).map(|field| field.name.as_str()).collect();
    json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    fn headers() -> Kind {
        Kind::map(Kind::Text)
    }

    #[rstest]
    #[case(headers(), json!({ "a": "b" }))]
    #[case(headers(), json!({}))]
    #[case(Kind::list(Kind::Count), json!([1, 2]))]
    #[case(Kind::Either(vec![Kind::list(Kind::Text), headers()]), json!({ "a": "b" }))]
    #[case(Kind::Either(vec![Kind::Null, Kind::Text]), json!(null))]
    #[case(Kind::OneOf(&["json", "text"]), json!("text"))]
    #[case(Kind::Length, json!("30s"))]
    fn a_value_of_its_kind_fits(#[case] kind: Kind, #[case] value: Value) {
        assert_eq!(kind.misfit(&value, Form::Literal), None);
    }

    #[rstest]
    #[case(headers(), json!({ "a": "b", "c": 1 }), ".c", "must be text, is 1")]
    #[case(headers(), json!("x"), "", "must be a map of texts, is text")]
    #[case(Kind::list(headers()), json!([{}, { "a": [] }]), "[1].a", "must be text, is a list")]
    #[case(Kind::Either(vec![Kind::list(Kind::Text), headers()]), json!(["a", 2]), "[1]", "must be text, is 2")]
    #[case(Kind::Either(vec![Kind::list(Kind::Text), headers()]), json!(7), "", "a list of texts or a map of texts, is 7")]
    #[case(Kind::OneOf(&["json", "text"]), json!("xml"), "", "must be one of json, text, is `xml`")]
    #[case(Kind::Length, json!("30"), "", "such as 10ms, 30s, 5m, 2h or 7d, is `30`")]
    fn what_does_not_fit_is_named(#[case] kind: Kind, #[case] value: Value, #[case] path: &str, #[case] says: &str) {
        let misfit = kind.misfit(&value, Form::Literal).unwrap();
        assert_eq!(misfit.path, path);
        assert!(misfit.why.contains(says), "{}", misfit.why);
    }

    #[test]
    fn a_template_may_become_anything_but_a_reference() {
        let template = json!("{{ inputs.x }}");
        let kinds = [Kind::Count, headers(), Kind::Length, Kind::OneOf(&["a"]), Kind::list(Kind::Flag)];
        for kind in kinds {
            assert_eq!(kind.misfit(&template, Form::Templated), None, "{kind:?}");
            assert!(kind.misfit(&template, Form::Literal).is_some(), "{kind:?}");
            assert!(kind.misfit(&json!(-0.5), Form::Templated).is_some(), "a literal is looked at: {kind:?}");
        }
        assert!(headers().misfit(&json!({ "a": template, "b": 1 }), Form::Templated).is_some());
        assert!(Kind::From("text".into()).misfit(&template, Form::Templated).is_some());
    }
}

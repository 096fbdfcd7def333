//! The inputs of a plan: what it declares, what it is given, what the task gets.

use serde_json::{Map, Value, json};
use store::model::PlanError;
use store::model::codec::{kind_of, value_from_json};

use super::is_name;

/// What is given to a plan.
#[derive(Clone, Debug, Default)]
pub(crate) struct Given {
    /// Each a name and a text, which is read as the input's type says.
    pub(crate) texts: Vec<(String, String)>,
    /// Values, as a file has them.
    pub(crate) values: Map<String, Value>,
}

/// One input.
#[derive(Debug)]
struct Declared {
    name: String,
    schema: Value,
    default: Option<Value>,
}

/// The inputs that a plan declares.
#[derive(Debug, Default)]
pub(crate) struct Inputs(Vec<Declared>);

impl Inputs {
    /// Reads what a plan declares.
    ///
    /// # Errors
    /// The input at fault.
    pub(crate) fn read(declared: Option<&Map<String, Value>>) -> Result<Self, PlanError> {
        let declared = declared.into_iter().flatten().map(|(name, value)| {
            let bad = |why: String| PlanError::field(&format!("inputs.{name}"), why);
            if !is_name(name) {
                return Err(bad("a name is a letter, then letters, digits and `_`".to_owned()));
            }
            let one = Declared::read(name, value).map_err(bad)?;
            match &one.default {
                Some(default) => one.check(default).map_err(|why| bad(format!("its default {why}")))?,
                None => check_schema(&one.schema).map_err(bad)?,
            }
            Ok(one)
        });
        declared.collect::<Result<_, _>>().map(Self)
    }

    /// Whether there is an input of that name.
    pub(super) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|one| one.name == name)
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|one| one.name.as_str())
    }

    /// The names of those that must be given, with what they are.
    pub(crate) fn wanted(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.0.iter().filter(|one| one.default.is_none()).map(|one| (one.name.as_str(), &one.schema))
    }

    /// The value of each input; none where the plan declares none.
    ///
    /// # Errors
    /// One line: what is missing, or does not fit, or is not an input of the plan.
    pub(crate) fn values(&self, given: &Given) -> Result<Option<Map<String, Value>>, String> {
        let mut values = given.values.clone();
        for (name, text) in &given.texts {
            let one = self.0.iter().find(|one| one.name == *name);
            let value = one.map_or(Ok(Value::Null), |one| one.parse(text));
            values.insert(name.clone(), value.map_err(|why| format!("--input {name}={text}: {why}"))?);
        }
        if let Some(name) = values.keys().find(|name| !self.has(name)) {
            let known: Vec<_> = self.names().collect();
            let known =
                if known.is_empty() { "it has none".to_owned() } else { format!("it has {}", known.join(", ")) };
            return Err(format!("the plan has no input `{name}`; {known}"));
        }
        for one in &self.0 {
            let name = &one.name;
            match (values.get(name), &one.default) {
                (Some(value), _) => one.check(value).map_err(|why| format!("the input `{name}` {why}"))?,
                (None, Some(default)) => drop(values.insert(name.clone(), default.clone())),
                (None, None) => return Err(format!("the input `{name}` must be given: --input {name}=…")),
            }
        }
        Ok((!self.0.is_empty()).then_some(values))
    }
}

impl Declared {
    /// A map is a JSON Schema; a scalar or a list is the default, which gives the type.
    fn read(name: &str, value: &Value) -> Result<Self, String> {
        let (schema, default) = match value {
            Value::Object(schema) => {
                let mut schema = schema.clone();
                let default = schema.remove("default");
                (Value::Object(schema), default)
            }
            Value::Null => return Err("null has no type; a map says which: { type: string }".to_owned()),
            default => (json!({ "type": type_of(default) }), Some(default.clone())),
        };
        Ok(Self { name: name.to_owned(), schema, default })
    }

    fn check(&self, value: &Value) -> Result<(), String> {
        fits(&self.schema, value)
    }

    /// A text as the input's type has it.
    fn parse(&self, text: &str) -> Result<Value, String> {
        match self.schema.get("type").and_then(Value::as_str) {
            Some("string") => Ok(Value::from(text)),
            Some(kind) => value_from_json(text).map_err(|_| format!("it must be of type {kind}, as JSON")),
            // What is not JSON is text.
            None => Ok(value_from_json(text).unwrap_or_else(|_| Value::from(text))),
        }
    }
}

/// Whether this is a JSON Schema.
///
/// # Errors
/// One line.
pub(crate) fn check_schema(schema: &Value) -> Result<(), String> {
    validator(schema).map(drop)
}

fn validator(schema: &Value) -> Result<jsonschema::Validator, String> {
    jsonschema::validator_for(schema).map_err(|error| format!("is not a JSON Schema: {error}"))
}

/// Whether a value fits a schema.
///
/// # Errors
/// The first thing that does not, in one line.
pub(crate) fn fits(schema: &Value, value: &Value) -> Result<(), String> {
    let validator = validator(schema)?;
    let Some(error) = validator.iter_errors(value).next() else { return Ok(()) };
    let place = error.instance_path().to_string();
    let place = if place.is_empty() { String::new() } else { format!("at {place}: ") };
    Err(format!("does not fit: {place}{error}"))
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::Bool(_) => "boolean",
        Value::Array(_) => "array",
        _ => "string",
    }
}

/// The labels of a task: those of its plan, and those that are given, which come first.
///
/// # Errors
/// One line.
pub(crate) fn labels(
    planned: Option<&Map<String, Value>>,
    given: &[(String, String)],
) -> Result<Option<Map<String, Value>>, PlanError> {
    let mut labels = planned.cloned().unwrap_or_default();
    if let Some((name, value)) =
        labels.iter().find(|(_, value)| value.is_array() || value.is_object() || value.is_null())
    {
        return Err(PlanError::field(
            &format!("labels.{name}"),
            format!("must be text, a number or a boolean, is {}", kind_of(value)),
        ));
    }
    labels.extend(given.iter().map(|(name, value)| (name.clone(), Value::from(value.as_str()))));
    Ok((!labels.is_empty()).then_some(labels))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    fn inputs(declared: Value) -> Result<Inputs, String> {
        let Value::Object(declared) = declared else { unreachable!() };
        Inputs::read(Some(&declared)).map_err(|error| error.to_string())
    }

    fn given(texts: &[(&str, &str)], values: Value) -> Given {
        let Value::Object(values) = values else { unreachable!() };
        Given { texts: texts.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect(), values }
    }

    fn plan() -> Inputs {
        inputs(json!({ "folder": "inbox", "n": 3, "half": 0.5, "flag": true, "list": [1],
            "date": { "type": "string", "minLength": 3 }, "any": { "default": null }, "level": { "enum": ["low", "high"], "default": "low" } }))
        .unwrap()
    }

    #[test]
    fn a_default_gives_the_type_by_which_a_text_is_read() {
        let texts = [
            ("date", "012"),
            ("n", "7"),
            ("flag", "false"),
            ("list", "[2,3]"),
            ("half", "1"),
            ("any", "x"),
            ("level", "high"),
        ];
        let values = plan().values(&given(&texts, json!({}))).unwrap().unwrap();
        assert_eq!(
            Value::Object(values),
            json!({ "folder": "inbox", "n": 7, "half": 1, "flag": false, "list": [2, 3], "date": "012", "any": "x", "level": "high" })
        );
        let values = plan().values(&given(&[("date", "now")], json!({ "n": 9, "any": { "a": 1 } }))).unwrap().unwrap();
        assert_eq!((&values["n"], &values["any"], &values["level"]), (&json!(9), &json!({ "a": 1 }), &json!("low")));
        assert_eq!(Inputs::default().values(&Given::default()), Ok(None));
        assert_eq!(plan().wanted().map(|(name, _)| name).collect::<Vec<_>>(), ["date"]);
    }

    #[rstest]
    #[case(&[], json!({}), "the input `date` must be given")]
    #[case(&[("date", "2026"), ("n", "many")], json!({}), "--input n=many: it must be of type integer")]
    #[case(&[("date", "2026"), ("n", "1.5")], json!({}), "the input `n` does not fit: 1.5 is not of type")]
    #[case(&[("date", "1")], json!({}), "the input `date` does not fit")]
    #[case(&[("date", "2026"), ("level", "mid")], json!({}), "the input `level` does not fit")]
    #[case(&[("date", "2026"), ("nn", "1")], json!({}), "no input `nn`; it has any, date")]
    #[case(&[("date", "2026")], json!({ "list": [1], "flag": "yes" }), "the input `flag` does not fit")]
    fn what_does_not_fit_is_named(#[case] texts: &[(&str, &str)], #[case] values: Value, #[case] says: &str) {
        let error = plan().values(&given(texts, values)).unwrap_err();
        assert!(error.contains(says), "{error}");
    }

    #[rstest]
    #[case(json!({ "a b": 1 }), "field `inputs.a b`: a name is")]
    #[case(json!({ "a": null }), "null has no type")]
    #[case(json!({ "a": { "type": "strin" } }), "not a JSON Schema")]
    #[case(json!({ "a": { "type": "string", "default": 1 } }), "its default does not fit")]
    fn a_declaration_that_makes_no_sense_is_refused(#[case] declared: Value, #[case] says: &str) {
        let error = inputs(declared).unwrap_err();
        assert!(error.contains(says), "{error}");
    }

    #[test]
    fn a_label_that_is_given_comes_before_that_of_the_plan() {
        let Value::Object(planned) = json!({ "team": "ops", "n": 1 }) else { unreachable!() };
        let given = [("team".to_owned(), "dev".to_owned())];
        assert_eq!(labels(Some(&planned), &given).unwrap().map(Value::Object), Some(json!({ "team": "dev", "n": 1 })));
        assert_eq!(labels(None, &[]), Ok(None));
        let Value::Object(planned) = json!({ "team": ["ops"] }) else { unreachable!() };
        assert!(labels(Some(&planned), &[]).unwrap_err().to_string().contains("field `labels.team`"));
    }
}

//! What the texts of a step see when it begins: inputs, committed outputs, and nothing that could be another thing at
//! the next attempt.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use minijinja::Value as Seen;
use minijinja::value::{Enumerator, Object};
use serde_json::{Map, Value};
use store::TaskRow;
use store::model::{IdempotencyKey, StepStatus};
use tools::{Secrets, is_template};

use super::template::Template;
use super::value::seen;

/// An earlier step that a step names.
pub(crate) struct Earlier {
    /// Its id, or its index.
    pub(crate) name: String,
    /// How it stands.
    pub(crate) status: StepStatus,
    /// Its output; none where it was skipped, or failed and the task went on.
    pub(crate) output: Option<Map<String, Value>>,
}

/// The names that a step sees.
pub(crate) struct Scope {
    names: Vec<(&'static str, Seen)>,
}

impl Scope {
    pub(crate) fn new(task: &TaskRow, key: &IdempotencyKey, earlier: &[Earlier], secrets: &Secrets) -> Self {
        let created = jiff::Timestamp::from_microsecond(task.created_at.as_micros());
        let about = [
            ("id", Seen::from(task.id.as_str())),
            ("goal", Seen::from(task.goal.as_str())),
            ("created_at", Seen::from(created.map_or_else(|_| String::new(), |time| time.to_string()))),
        ];
        let status = earlier.iter().map(|step| (step.name.clone(), Seen::from(step.status.as_str())));
        let outputs = earlier.iter().map(|step| {
            let output = step.output.as_ref().map_or_else(|| Seen::from(()), seen);
            (step.name.clone(), output)
        });
        let secrets = secrets.clone();
        let names = vec![
            ("inputs", task.origin.inputs.as_ref().map_or_else(|| seen(&Map::new()), seen)),
            ("steps", Seen::from_object(Steps(outputs.collect()))),
            ("status", Seen::from_object(Steps(status.collect()))),
            ("task", Seen::from_pairs(about)),
            ("key", Seen::from(key.to_string())),
            ("null", Seen::from(())),
            ("secret", Seen::from_function(move |name: &str| secrets.mark(name))),
        ];
        Self { names }
    }

    fn seen(&self, output: Option<&Map<String, Value>>) -> Seen {
        let names = self.names.iter().map(|(name, value)| (*name, value.clone()));
        Seen::from_pairs(names.chain(output.map(|output| ("output", seen(output)))))
    }

    /// The input with each of its texts rendered.
    ///
    /// # Errors
    /// The field at fault, one line.
    pub(crate) fn input(&self, input: &Map<String, Value>) -> Result<Map<String, Value>, String> {
        let names = self.seen(None);
        let field = |(name, value): (&String, &Value)| Ok((name.clone(), rendered(value, &names, name)?));
        input.iter().map(field).collect()
    }

    /// Whether a setting of that name holds; `output` is that of a call.
    ///
    /// # Errors
    /// It is neither true nor false; one line.
    pub(crate) fn holds(
        &self,
        name: &str,
        setting: &Value,
        output: Option<&Map<String, Value>>,
    ) -> Result<bool, String> {
        match self.value(name, setting, output)? {
            Value::Bool(holds) => Ok(holds),
            other => Err(format!("`{name}` must give true or false, and gives {other}")),
        }
    }

    /// What a setting of that name gives.
    ///
    /// # Errors
    /// One line.
    pub(crate) fn value(
        &self,
        name: &str,
        setting: &Value,
        output: Option<&Map<String, Value>>,
    ) -> Result<Value, String> {
        let Some(text) = setting.as_str() else { return Ok(setting.clone()) };
        let value = Template::expression(text).and_then(|template| template.render(&self.seen(output)));
        value.map_err(|why| format!("`{name}`: {why}"))
    }
}

fn rendered(value: &Value, names: &Seen, field: &str) -> Result<Value, String> {
    Ok(match value {
        Value::String(text) if is_template(text) => {
            let value = Template::parse(text).and_then(|template| template.render(names));
            value.map_err(|why| format!("field `{field}`: {why}"))?
        }
        Value::Array(items) => {
            let item = |(at, item): (usize, &Value)| rendered(item, names, &format!("{field}[{at}]"));
            items.iter().enumerate().map(item).collect::<Result<_, _>>()?
        }
        Value::Object(fields) => {
            let inner = |(name, value): (&String, &Value)| {
                Ok((name.clone(), rendered(value, names, &format!("{field}.{name}"))?))
            };
            Value::Object(fields.iter().map(inner).collect::<Result<_, String>>()?)
        }
        other => other.clone(),
    })
}

/// Something of earlier steps, by id and by index.
struct Steps(BTreeMap<String, Seen>);

impl Object for Steps {
    fn get_value(self: &Arc<Self>, key: &Seen) -> Option<Seen> {
        match key.as_str() {
            Some(id) => self.0.get(id).cloned(),
            None => self.0.get(&key.to_string()).cloned(),
        }
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::NonEnumerable
    }
}

impl fmt::Debug for Steps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(&self.0).finish()
    }
}

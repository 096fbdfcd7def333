//! How the engine of templates is set up: what every template can do, and how much.

use std::sync::OnceLock;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::ValueKind;
use minijinja::{Environment, Error, ErrorKind, Output, UndefinedBehavior, Value as Seen};

use super::value::json;

/// How much one rendering may do: a bound for its time, and for the memory that it takes (64 bytes a unit).
const FUEL: u64 = 20_000_000;

/// The filter that each lookup goes through.
pub(super) const THERE: &str = "__there";

pub(super) fn syntax() -> SyntaxConfig {
    let built = SyntaxConfig::builder().keep_trailing_newline(true).build();
    built.unwrap_or_else(|_| unreachable!("these are the delimiters that it comes with"))
}

/// Filters of every template, beside those that the engine brings.
pub(super) fn environment() -> &'static Environment<'static> {
    static ENVIRONMENT: OnceLock<Environment<'static>> = OnceLock::new();
    ENVIRONMENT.get_or_init(|| {
        let mut env = Environment::new();
        env.set_undefined_behavior(UndefinedBehavior::Strict);
        env.set_syntax(syntax());
        env.set_fuel(Some(FUEL));
        env.set_formatter(|out, _, value| print(out, value));
        env.add_filter("json", as_json);
        // Its own escapes what HTML gives a meaning, which nobody expects in a message.
        env.add_filter("tojson", as_json);
        env.add_filter(THERE, there);
        env
    })
}

fn as_json(value: &Seen) -> Result<String, Error> {
    json(value).map(|value| value.to_string()).map_err(|why| Error::new(ErrorKind::InvalidOperation, why))
}

fn there(value: Seen, path: &str) -> Result<Seen, Error> {
    if value.is_undefined() {
        return Err(Error::new(ErrorKind::UndefinedError, format!("`{path}` is not there")));
    }
    Ok(value)
}

/// How a value stands in a text: lists and maps as JSON, no value of another language's spelling.
fn print(out: &mut Output<'_>, value: &Seen) -> Result<(), Error> {
    let refused = |why: &str| Err(Error::new(ErrorKind::InvalidOperation, why.to_owned()));
    match value.kind() {
        ValueKind::None => refused("null cannot stand in a text; `| default('…', true)` puts something in its place"),
        ValueKind::Undefined => refused("what is not there cannot stand in a text"),
        ValueKind::String => out.write_str(value.as_str().unwrap_or_default()).map_err(Error::from),
        _ => out.write_str(&as_json(value)?).map_err(Error::from),
    }
}

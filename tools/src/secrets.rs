//! Values that are put in at the moment of sending, and that nothing else ever sees.
//!
//! Where a plan says `secret('NAME')`, a text holds a mark until a tool sends it. The mark has a random part that is
//! new in each process, so that no text that comes from outside can hold one. Every value that was put in is
//! remembered, so that it can be found and hidden where it comes back.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Map, Value};

/// Secrets by name.
#[derive(Clone)]
pub struct Secrets {
    open: Arc<str>,
    lookup: Arc<Lookup>,
    revealed: Arc<Mutex<BTreeMap<String, String>>>,
}

type Lookup = dyn Fn(&str) -> Option<String> + Send + Sync;

/// Ends a mark.
const CLOSE: char = '\u{e001}';

/// Whether a text may hold a mark of anybody's: a place where nothing can be looked up yet.
pub(crate) fn may_be_marked(text: &str) -> bool {
    text.contains(CLOSE)
}

/// Shorter values are not looked for: they would be found everywhere.
const HIDDEN_CHARS: usize = 6;

impl Default for Secrets {
    fn default() -> Self {
        Self::new(|_| None)
    }
}

impl Secrets {
    /// Those that `lookup` finds by name.
    pub fn new(lookup: impl Fn(&str) -> Option<String> + Send + Sync + 'static) -> Self {
        let open = format!("\u{e000}{:032x}:", rand::random::<u128>());
        Self { open: open.into(), lookup: Arc::new(lookup), revealed: Arc::default() }
    }

    /// What stands for the secret of that name until it is sent.
    #[must_use]
    pub fn mark(&self, name: &str) -> String {
        format!("{}{name}{CLOSE}", self.open)
    }

    /// Whether there is a mark in the text.
    #[must_use]
    pub fn is_marked(&self, text: &str) -> bool {
        text.contains(&*self.open)
    }

    /// The value of a secret, which is hidden from now on.
    ///
    /// # Errors
    /// It is not set.
    pub fn value(&self, name: &str) -> Result<String, String> {
        let value = (self.lookup)(name).ok_or_else(|| format!("the secret {name} is not set in the environment"))?;
        self.revealed.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned(), value.clone());
        Ok(value)
    }

    /// The text with the secrets in the places of their marks.
    ///
    /// # Errors
    /// One of them is not set.
    pub fn reveal(&self, text: &str) -> Result<String, String> {
        self.replaced(text, |name| self.value(name))
    }

    /// The same for every text within a value; names of fields are left as they are.
    ///
    /// # Errors
    /// One of them is not set.
    pub fn reveal_in(&self, value: &Value) -> Result<Value, String> {
        Ok(match value {
            Value::String(text) => Value::String(self.reveal(text)?),
            Value::Array(items) => items.iter().map(|item| self.reveal_in(item)).collect::<Result<_, _>>()?,
            Value::Object(fields) => {
                let fields = fields.iter().map(|(name, value)| Ok((name.clone(), self.reveal_in(value)?)));
                Value::Object(fields.collect::<Result<_, String>>()?)
            }
            other => other.clone(),
        })
    }

    /// Whether there is a secret of that name.
    #[must_use]
    pub fn is_set(&self, name: &str) -> bool {
        (self.lookup)(name).is_some()
    }

    /// The value with `***NAME***` in the places of marks, and of nothing else: it is the same in every process,
    /// whatever was put in before.
    #[must_use]
    pub fn named_in(&self, value: &Map<String, Value>) -> Map<String, Value> {
        let mut named = Value::Object(value.clone());
        self.name_marks(&mut named);
        if let Value::Object(named) = named { named } else { unreachable!("it was an object") }
    }

    fn name_marks(&self, value: &mut Value) {
        match value {
            Value::String(text) if self.is_marked(text) => {
                let named = self.replaced(text, |name| Ok(shown(name)));
                *text = named.unwrap_or_else(|_: String| unreachable!("every name can be shown"));
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.name_marks(item)),
            Value::Object(fields) => fields.values_mut().for_each(|field| self.name_marks(field)),
            _ => {}
        }
    }

    /// The text with `***NAME***` in the places of marks, and of every value that was ever put in.
    #[must_use]
    pub fn hide(&self, text: &str) -> String {
        let named = self.replaced(text, |name| Ok(shown(name)));
        let mut hidden = named.unwrap_or_else(|_: String| unreachable!("every name can be shown"));
        let revealed = self.revealed.lock().unwrap_or_else(PoisonError::into_inner);
        // A value that holds another one goes first, or its rest would be left over.
        let mut values: Vec<_> = revealed.iter().filter(|(_, value)| value.chars().count() >= HIDDEN_CHARS).collect();
        values.sort_by_key(|(_, value)| std::cmp::Reverse(value.len()));
        for (name, value) in values {
            if hidden.contains(value.as_str()) {
                hidden = hidden.replace(value.as_str(), &shown(name));
            }
        }
        hidden
    }

    /// The same for every text within a value, names of fields included.
    #[must_use]
    pub fn hide_in(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.hide(text)),
            Value::Array(items) => items.iter().map(|item| self.hide_in(item)).collect(),
            Value::Object(fields) => {
                fields.iter().map(|(name, value)| (self.hide(name), self.hide_in(value))).collect()
            }
            other => other.clone(),
        }
    }

    /// How many bytes the longest of the values has that were put in so far.
    #[must_use]
    pub fn longest(&self) -> usize {
        let revealed = self.revealed.lock().unwrap_or_else(PoisonError::into_inner);
        revealed.values().map(String::len).max().unwrap_or_default()
    }

    fn replaced(&self, text: &str, value: impl Fn(&str) -> Result<String, String>) -> Result<String, String> {
        let (mut made, mut rest) = (String::with_capacity(text.len()), text);
        while let Some((before, marked)) = rest.split_once(&*self.open) {
            let (name, after) = marked.split_once(CLOSE).unwrap_or((marked, ""));
            made.push_str(before);
            made.push_str(&value(name)?);
            rest = after;
        }
        made.push_str(rest);
        Ok(made)
    }
}

fn shown(name: &str) -> String {
    format!("***{name}***")
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secrets").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn secrets() -> Secrets {
        Secrets::new(|name| match name {
            "TOKEN" => Some("abc123".to_owned()),
            "LONG" => Some("xabc123x".to_owned()),
            "PIN" => Some("12345".to_owned()),
            _ => None,
        })
    }

    #[test]
    fn a_mark_gives_its_value_when_it_is_sent_and_its_name_where_it_is_shown() {
        let secrets = secrets();
        let text = format!("Bearer {}, again {}", secrets.mark("TOKEN"), secrets.mark("TOKEN"));
        assert_eq!(secrets.hide(&text), "Bearer ***TOKEN***, again ***TOKEN***");
        assert_eq!(secrets.reveal(&text), Ok("Bearer abc123, again abc123".to_owned()));
        let value = json!({ "a": [secrets.mark("TOKEN"), 1] });
        assert_eq!(secrets.reveal_in(&value), Ok(json!({ "a": ["abc123", 1] })));
        assert!(secrets.reveal(&secrets.mark("NONE")).unwrap_err().contains("NONE"));
        assert!(secrets.is_set("TOKEN") && !secrets.is_set("NONE"));
    }

    /// The digest of an input must be that of its first attempt, which may have been made in another process.
    #[test]
    fn a_name_stands_for_the_mark_and_for_nothing_else_where_the_same_is_to_come_out_everywhere() {
        let secrets = secrets();
        secrets.value("TOKEN").unwrap();
        let Value::Object(input) = json!({ "a": [secrets.mark("TOKEN"), "abc123"] }) else { unreachable!() };
        assert_eq!(Value::Object(secrets.named_in(&input)), json!({ "a": ["***TOKEN***", "abc123"] }));
    }

    /// A note that held the mark of a secret had it sent to whoever the note named.
    #[test]
    fn no_text_from_outside_can_hold_a_mark() {
        let (ours, foreign) = (secrets(), secrets());
        let text = foreign.mark("TOKEN");
        assert!(!ours.is_marked(&text) && ours.is_marked(&ours.mark("TOKEN")));
        assert_eq!(ours.reveal(&text), Ok(text.clone()));
    }

    #[test]
    fn what_was_put_in_is_hidden_where_it_comes_back_and_nothing_else() {
        let secrets = secrets();
        assert_eq!(secrets.hide("abc123"), "abc123", "nothing was put in");
        for name in ["TOKEN", "LONG", "PIN"] {
            secrets.value(name).unwrap();
        }
        assert_eq!(secrets.hide("xabc123x abc123 12345"), "***LONG*** ***TOKEN*** 12345");
        assert_eq!(secrets.hide_in(&json!({ "abc123": ["abc123"] })), json!({ "***TOKEN***": ["***TOKEN***"] }));
        assert_eq!(secrets.longest(), 8);
        assert!(!format!("{secrets:?}").contains("abc123"));
    }
}

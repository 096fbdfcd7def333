//! A journal row, field by field, with errors that name it.

use std::str::FromStr;

use serde_json::Value;

use super::{JournalEntry, Timestamp};

/// Why a journal row does not decode.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("journal row {seq} ({kind}): {why}")]
pub struct BadEntry {
    seq: i64,
    kind: String,
    why: String,
}

/// Field access with errors that name the row.
pub(super) struct Row<'a>(pub(super) &'a JournalEntry);

impl Row<'_> {
    pub(super) fn bad(&self, why: String) -> BadEntry {
        BadEntry { seq: self.0.seq, kind: self.0.kind.clone(), why }
    }

    pub(super) fn step(&self) -> Result<u32, BadEntry> {
        self.0.step.ok_or_else(|| self.bad("names no step".to_owned()))
    }

    pub(super) fn count(&self, field: &str) -> Result<u32, BadEntry> {
        let value = self.0.data.get(field).and_then(Self::as_count);
        value.ok_or_else(|| self.bad(format!("has no count `{field}`")))
    }

    pub(super) fn flag(&self, field: &str) -> Result<bool, BadEntry> {
        let value = self.0.data.get(field).and_then(Value::as_bool);
        value.ok_or_else(|| self.bad(format!("has no `{field}` that is true or false")))
    }

    pub(super) fn list<T>(&self, field: &str, read: impl Fn(&Value) -> Option<T>) -> Result<Vec<T>, BadEntry> {
        let list = self.0.data.get(field).and_then(Value::as_array);
        let items = list.and_then(|list| list.iter().map(read).collect());
        items.ok_or_else(|| self.bad(format!("has no list `{field}` of the right kind")))
    }

    /// A field that older journals do not have, or that is null where nothing was said.
    pub(super) fn maybe<T>(
        &self,
        field: &str,
        read: impl FnOnce(&Self, &str) -> Result<T, BadEntry>,
    ) -> Result<Option<T>, BadEntry> {
        match self.0.data.get(field) {
            None | Some(Value::Null) => Ok(None),
            Some(_) => read(self, field).map(Some),
        }
    }

    pub(super) fn text(&self, field: &str) -> Result<String, BadEntry> {
        let value = self.0.data.get(field).and_then(Value::as_str).map(str::to_owned);
        value.ok_or_else(|| self.bad(format!("has no text `{field}`")))
    }

    /// A field that is there where it is true; older journals do not have it.
    pub(super) fn holds(&self, field: &str) -> Result<bool, BadEntry> {
        Ok(self.maybe(field, Self::flag)?.unwrap_or_default())
    }

    pub(super) fn time(&self, field: &str) -> Result<Timestamp, BadEntry> {
        let value = self.0.data.get(field).and_then(Value::as_f64).map(Timestamp::from_seconds);
        value.ok_or_else(|| self.bad(format!("has no time `{field}`")))
    }

    /// One of the words of a table.
    pub(super) fn parsed<T: FromStr<Err: ToString>>(&self, field: &str) -> Result<T, BadEntry> {
        self.text(field)?.parse().map_err(|error: T::Err| self.bad(format!("`{field}`: {}", error.to_string())))
    }

    /// Any value, as the text of JSON.
    pub(super) fn json(&self, field: &str) -> Result<String, BadEntry> {
        let value = self.0.data.get(field).map(Value::to_string);
        value.ok_or_else(|| self.bad(format!("has no `{field}`")))
    }

    pub(super) fn as_count(value: &Value) -> Option<u32> {
        value.as_u64().and_then(|number| u32::try_from(number).ok())
    }
}

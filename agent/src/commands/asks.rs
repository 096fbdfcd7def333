//! What waits for a person, in words, each with the command that goes on.

use serde::Serialize;
use serde_json::Value;
use store::model::{StepStatus, TaskId, Timestamp, Wait};
use store::{Reader, StepRow, StoreError, limits};
use tools::{Input, Pause, Registry, Secrets};

use crate::engine::{EngineError, Prepared, said};
use crate::exit::{Exit, Failure};
use crate::narrate::utc;

/// One thing that waits for a person.
#[derive(Serialize)]
pub(super) struct Asks {
    pub(super) task: String,
    pub(super) step: u32,
    pub(super) tool: String,
    /// `doubt` or `approval`.
    pub(super) kind: &'static str,
    /// What is known of the doubt, or what is shown for the approval.
    pub(super) what: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) expires: Option<f64>,
    pub(super) command: String,
}

impl Asks {
    /// Of a step that is in doubt, or that asks.
    pub(super) fn of(
        reader: &mut dyn Reader,
        tools: &Registry,
        task: &TaskId,
        row: &StepRow,
    ) -> Result<Self, StoreError> {
        let (step, name) = (row.idx, shell_word(task.as_str()));
        let id = row.id();
        let named = id.map_or_else(|| step.to_string(), str::to_owned);
        let (kind, what, command) = if row.state.status == StepStatus::InDoubt {
            let known = said(reader, task, step)?.doubt.unwrap_or_default();
            let command = format!("agent resolve {name} {named} (--happened [JSON] | --absent | --abandon) --why TEXT");
            ("doubt", Value::from(known), command)
        } else {
            let shown = match shown(reader, tools, task, row)? {
                Some(Pause::Approval { show, .. }) => show,
                _ => Value::Object(row.input.clone()),
            };
            ("approval", shown, format!("agent approve {name} {named}"))
        };
        let expires = match row.state.wait {
            Some(Wait::Approval { expires }) => expires.map(Timestamp::as_seconds),
            _ => None,
        };
        Ok(Self { task: task.to_string(), step, tool: row.tool.clone(), kind, what, expires, command })
    }

    /// A sentence for people.
    pub(super) fn sentence(&self) -> String {
        let Self { task, step, tool, kind, what, expires, command } = self;
        let what = text_of(what);
        if *kind == "doubt" {
            return format!(
                "task `{task}` is in doubt at step {step} ({tool}): {what}; find out whether its effect has happened, \
                 then say so: `{command}`"
            );
        }
        let until = expires.map_or(String::new(), |end| format!(", until {}", utc(Timestamp::from_seconds(end))));
        format!(
            "task `{task}` asks at step {step} ({tool}){until}: {what}; answer with `{command}`, or refuse with \
             `{} --why TEXT`",
            command.replacen("approve", "reject", 1)
        )
    }
}

/// What a person is asked, as the step has it.
pub(super) fn shown(
    reader: &mut dyn Reader,
    tools: &Registry,
    task: &TaskId,
    row: &StepRow,
) -> Result<Option<Pause>, StoreError> {
    match Prepared::read(reader, task, row.clone(), tools, None, &Secrets::default()) {
        Ok(Prepared { tool, input, .. }) => Ok(tool.wait(Input(&input)).ok().flatten()),
        Err(EngineError::Store(error)) => Err(error),
        Err(_) => Ok(None),
    }
}

/// Text as it is, all else as JSON.
pub(super) fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// A word that a shell takes as it stands.
fn shell_word(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@".contains(c);
    if text.chars().all(plain) { text.to_owned() } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

/// The step that a person means, by its id or its index.
pub(super) fn step_named(reader: &mut dyn Reader, task: &TaskId, named: &str) -> Result<StepRow, Failure> {
    let none = || Failure::new(Exit::Usage, format!("task `{task}` has no step `{named}`"));
    if let Ok(index) = named.parse() {
        return reader.steps(task, index, 1)?.pop().filter(|row| row.idx == index).ok_or_else(none);
    }
    let mut from = 0;
    loop {
        let page = reader.steps(task, from, limits::STEP_PAGE)?;
        let Some(last) = page.last() else { return Err(none()) };
        from = last.idx + 1;
        let has_id = |row: &StepRow| row.id() == Some(named);
        if let Some(row) = page.into_iter().find(has_id) {
            return Ok(row);
        }
    }
}

/// What the task waits for from a person at this step.
pub(super) fn asks_at(reader: &mut dyn Reader, tools: &Registry, task: &TaskId, step: u32) -> Result<Asks, Failure> {
    let row = step_named(reader, task, &step.to_string())?;
    Ok(Asks::of(reader, tools, task, &row)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_can_be_pasted_whatever_the_task_is_called() {
        assert_eq!(shell_word("a-b_1.c"), "a-b_1.c");
        assert_eq!(shell_word("it's $HOME"), r"'it'\''s $HOME'");
    }
}

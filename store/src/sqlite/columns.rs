//! The state of a step, as its row has it.

use std::str::FromStr;

use rusqlite::Row;

use crate::model::{Digest, Effect, Intent, StepState, Timestamp, UnknownWord, Wait};

/// The columns of a [`StepState`] that came with schema version 4.
pub(super) const LATER: &str = "wait, due, input_sha256, effect, unknown, answer IS NOT NULL";
/// What stands for them in older ones.
pub(super) const BEFORE: &str = "NULL, NULL, NULL, NULL, NULL, 0";

/// What is written there, by the names of the columns.
#[derive(Clone, Debug, PartialEq)]
pub struct Later {
    /// What the step waits for, or has waited for.
    pub wait: Option<&'static str>,
    /// The time of that, in seconds since the epoch.
    pub due: Option<f64>,
    /// The digest of the input, in hex.
    pub input_sha256: Option<String>,
    /// The class in force.
    pub effect: Option<&'static str>,
    /// True where an earlier attempt may have had its effect; else nothing.
    pub unknown: Option<bool>,
    /// Whether there is a person's answer.
    pub answered: bool,
}

impl Later {
    /// Of a step in this state.
    #[must_use]
    pub fn of(state: &StepState) -> Self {
        let (wait, due) = match state.wait {
            None => (None, None),
            Some(Wait::Until(due)) => (Some("time"), Some(due)),
            Some(Wait::Approval { expires }) => (Some("approval"), expires),
        };
        Self {
            wait,
            due: due.map(Timestamp::as_seconds),
            input_sha256: state.intent.map(|intent| intent.digest.to_string()),
            effect: state.intent.map(|intent| intent.effect.as_str()),
            unknown: state.unknown.then_some(true),
            answered: state.answered,
        }
    }
}

/// The status and the counts, which every version and the completion too have, from column `first` on.
pub(super) fn counted(row: &Row<'_>, first: usize) -> Result<StepState, String> {
    Ok(StepState {
        status: parsed(text(row, first)?)?.ok_or("has no status")?,
        attempts: row.get(first + 1).map_err(why)?,
        forgiven: row.get(first + 2).map_err(why)?,
        ..StepState::default()
    })
}

/// All of it, [`LATER`] behind the counts.
pub(super) fn state(row: &Row<'_>, first: usize) -> Result<StepState, String> {
    let due = row.get::<_, Option<f64>>(first + 4).map_err(why)?.map(Timestamp::from_seconds);
    let wait = match (text(row, first + 3)?.as_deref(), due) {
        (None, None) => None,
        (Some("time"), Some(due)) => Some(Wait::Until(due)),
        (Some("approval"), expires) => Some(Wait::Approval { expires }),
        (wait, _) => {
            let wait = wait.unwrap_or("none");
            return Err(format!("its wait `{wait}` and its time do not go together"));
        }
    };
    let (digest, effect) = (parsed::<Digest>(text(row, first + 5)?)?, parsed::<Effect>(text(row, first + 6)?)?);
    if digest.is_some() != effect.is_some() {
        return Err("has a class without a digest of its input, or a digest without a class".to_owned());
    }
    let intent = digest.zip(effect).map(|(digest, effect)| Intent { digest, effect });
    let unknown = row.get::<_, Option<bool>>(first + 7).map_err(why)?.unwrap_or_default();
    let answered = row.get(first + 8).map_err(why)?;
    Ok(StepState { wait, intent, unknown, answered, ..counted(row, first)? })
}

#[expect(clippy::needless_pass_by_value, reason = "it is what map_err wants")]
fn why(error: rusqlite::Error) -> String {
    error.to_string()
}

fn text(row: &Row<'_>, column: usize) -> Result<Option<String>, String> {
    row.get(column).map_err(why)
}

fn parsed<T: FromStr<Err = UnknownWord>>(text: Option<String>) -> Result<Option<T>, String> {
    text.map(|text| text.parse().map_err(|error: UnknownWord| error.to_string())).transpose()
}

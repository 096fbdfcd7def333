//! `sabotaged --list`

use std::io::Write as _;

use agent::Exit;
use serde_json::{Value, json};

use crate::bugs;

/// Prints the table of bugs as one JSON document.
pub(crate) fn print() -> Exit {
    let bugs: Vec<Value> = bugs::all()
        .map(|bug| {
            json!({
                "name": bug.name,
                "about": bug.about,
                "plan": bug.plan.as_str(),
                "methods": bug.methods,
                "part": bug.part,
                "caught_by": bug.caught_by,
                "open": bug.open,
            })
        })
        .collect();
    let text = format!("{:#}\n", json!({"schema": 1, "bugs": bugs}));
    match std::io::stdout().lock().write_all(text.as_bytes()) {
        Ok(()) => Exit::Done,
        Err(_) => Exit::Io,
    }
}

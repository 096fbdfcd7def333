//! What the agent tells of itself, where it does.

use std::path::Path;

use crate::agent::process::{Ended, Launch};
use crate::agent::target::{Inventory, Target, ToolFacts};
use crate::case::plan::{PlanCase, stays_inside};
use crate::contract::INBOX_OPTIONS;
use crate::error::LabError;

/// Asks the agent for its inventory, once. An agent that refuses the command has none.
///
/// # Errors
/// An agent that cannot be started, and an inventory that cannot be read: half an inventory would leave crash points
/// untested without a word.
pub fn ask_inventory(target: &mut Target, dir: &Path) -> Result<(), LabError> {
    let outcome = Launch::new(target, ["tools", "--json"], dir, &dir.join("tools")).start()?.finish()?;
    // One that takes any word and says nothing has no inventory either.
    if outcome.ended != Ended::Exited(0) || outcome.stdout.trim().is_empty() {
        return Ok(());
    }
    let bad = |why: String| LabError::Inventory(why);
    let inventory: Inventory = serde_json::from_str(&outcome.stdout).map_err(|e| bad(e.to_string()))?;
    if inventory.schema != 1 {
        return Err(bad(format!("schema {} is unknown", inventory.schema)));
    }
    let played = inventory.tools.iter().filter(|tool| tool.example.needs.is_none());
    target.examples = played.map(example).collect::<Result<_, _>>()?;
    target.inventory = Some(inventory);
    Ok(())
}

/// Asks whether the agent has the command `inbox`, by its help: one that has it names its options there.
///
/// # Errors
/// An agent that cannot be started.
pub fn ask_inbox(target: &mut Target, dir: &Path) -> Result<(), LabError> {
    let outcome = Launch::new(target, ["inbox", "--help"], dir, &dir.join("inbox")).start()?.finish()?;
    let named = INBOX_OPTIONS.iter().all(|option| outcome.stdout.contains(option));
    target.has_inbox = outcome.ended == Ended::Exited(0) && named;
    Ok(())
}

fn example(tool: &ToolFacts) -> Result<PlanCase, LabError> {
    let text = tool.example.plan.to_string();
    let mut case = PlanCase::parse(&tool.name, &text).map_err(|e| LabError::Inventory(format!("example: {e}")))?;
    for (name, content) in &tool.example.files {
        if !stays_inside(Path::new(name)) {
            let why = format!("the example of `{}` names the file `{name}`", tool.name);
            return Err(LabError::Inventory(why));
        }
        case.files.insert(name.clone(), content.clone().into_bytes());
    }
    case.example_of = Some(tool.name.clone());
    Ok(case)
}

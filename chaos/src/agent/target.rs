//! The agent under test: a command, and what it says it can do.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

use crate::agent::process::{Ended, Launch};
use crate::agent::words;
use crate::case::plan::{PlanCase, stays_inside};
use crate::error::LabError;

/// How long a process may take if nobody chooses.
pub const DEADLINE: Duration = Duration::from_secs(30);

/// The tools of the contract that change nothing outside the database.
const CONTRACT_PURE: [&str; 2] = ["fetch", "summarize"];

/// The options of the contract's inbox agent.
const INBOX_OPTIONS: [&str; 4] = ["--task", "--inbox", "--log", "--out"];

/// The tools that every agent of the contract has.
const CONTRACT_TOOLS: [&str; 3] = ["fetch", "summarize", "write_artifact"];

/// Whether every agent has a tool of this name.
#[must_use]
pub fn is_of_contract(tool: &str) -> bool {
    CONTRACT_TOOLS.contains(&tool)
}

/// The program that the lab starts again and again.
#[derive(Debug, Clone)]
pub struct Target {
    /// The command as it was given, for people and for replay commands.
    pub given: String,
    /// The command in words, relative script paths made absolute.
    pub words: Vec<String>,
    /// Names of variables that are taken out of the agent's environment.
    pub scrub: Vec<OsString>,
    /// How long one process may take before it counts as hung.
    pub deadline: Duration,
    /// What `tools --json` says; `None` where the agent has no such command and
    /// hence only what the contract promises.
    pub inventory: Option<Inventory>,
    /// Whether it has the command `inbox`.
    pub has_inbox: bool,
}

/// The document that `agent tools --json` prints.
#[derive(Debug, Clone, Deserialize)]
pub struct Inventory {
    /// The version of the document; 1 is understood.
    pub schema: u32,
    /// Points that the agent's loop and its store fire.
    pub crash_points: Vec<Site>,
    /// Points that only a run with an action log or a completion passes.
    #[serde(default)]
    pub further_crash_points: Vec<Site>,
    /// The tools.
    pub tools: Vec<ToolFacts>,
}

/// A crash site outside the tools.
#[derive(Debug, Clone, Deserialize)]
pub struct Site {
    /// Dotted name.
    pub site: String,
    /// `step` or `run`.
    pub scope: String,
}

/// One tool of the inventory.
#[derive(Debug, Clone, Deserialize)]
pub struct ToolFacts {
    /// The name in plans.
    pub name: String,
    /// The effect class; `pure` is the only one without an effect.
    pub effect: String,
    /// Sites that the tool fires itself.
    #[serde(default)]
    pub crash_points: Vec<String>,
    /// A whole plan whose last step is this tool.
    pub example: Example,
}

/// A plan with its input files.
#[derive(Debug, Clone, Deserialize)]
pub struct Example {
    /// The plan document.
    pub plan: Value,
    /// Relative path -> text.
    #[serde(default)]
    pub files: std::collections::BTreeMap<String, String>,
}

impl Target {
    /// Reads the command. Words that name existing files are made absolute,
    /// because scenarios run in folders of their own; the first word only where
    /// it has a `/`, as a shell would look it up otherwise.
    ///
    /// # Errors
    /// A command that cannot be split into words.
    pub fn new(given: &str, here: &Path, scrub: Vec<OsString>) -> Result<Self, LabError> {
        let absolute = |(i, word): (usize, String)| {
            let file = here.join(&word);
            let meant = i > 0 || word.contains('/');
            if meant && Path::new(&word).is_relative() && file.is_file() {
                file.to_string_lossy().into_owned()
            } else {
                word
            }
        };
        let words = words::split(given)?;
        Ok(Self {
            given: given.to_owned(),
            words: words.into_iter().enumerate().map(absolute).collect(),
            scrub,
            deadline: DEADLINE,
            inventory: None,
            has_inbox: false,
        })
    }

    /// Asks the agent for its inventory, once. An agent that refuses the
    /// command has none.
    ///
    /// # Errors
    /// An agent that cannot be started, and an inventory that cannot be read:
    /// half an inventory would leave crash points untested without a word.
    pub fn ask_inventory(&mut self, dir: &Path) -> Result<(), LabError> {
        let outcome = Launch::new(self, &["tools", "--json"], dir, &dir.join("tools")).start()?.finish()?;
        if outcome.ended != Ended::Exited(0) {
            return Ok(());
        }
        let bad = |why: String| LabError::Inventory(why);
        let inventory: Inventory = serde_json::from_str(&outcome.stdout).map_err(|e| bad(e.to_string()))?;
        if inventory.schema != 1 {
            return Err(bad(format!("schema {} is unknown", inventory.schema)));
        }
        self.inventory = Some(inventory);
        Ok(())
    }

    /// Asks whether the agent has the command `inbox`, by its help: one that has
    /// it names its options there.
    ///
    /// # Errors
    /// An agent that cannot be started.
    pub fn ask_inbox(&mut self, dir: &Path) -> Result<(), LabError> {
        let outcome = Launch::new(self, &["inbox", "--help"], dir, &dir.join("inbox")).start()?.finish()?;
        let named = INBOX_OPTIONS.iter().all(|option| outcome.stdout.contains(option));
        self.has_inbox = outcome.ended == Ended::Exited(0) && named;
        Ok(())
    }

    /// Whether the tool changes something outside the database. What is not
    /// declared is taken to have an effect.
    #[must_use]
    pub fn has_effect(&self, tool: &str) -> bool {
        match self.tool(tool) {
            Some(facts) => facts.effect != "pure",
            None => !CONTRACT_PURE.contains(&tool),
        }
    }

    /// The inventory's entry for a tool.
    #[must_use]
    pub fn tool(&self, name: &str) -> Option<&ToolFacts> {
        self.inventory.as_ref()?.tools.iter().find(|t| t.name == name)
    }

    /// The plan of each tool's own example.
    ///
    /// # Errors
    /// An example that is no plan or whose files leave the working folder.
    pub fn examples(&self) -> Result<Vec<PlanCase>, LabError> {
        let tools = self.inventory.iter().flat_map(|i| &i.tools);
        tools.map(example).collect()
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_name_files_become_absolute_and_others_stay() {
        let dir = tempfile::tempdir().expect("dir");
        for name in ["agent.py", "python3"] {
            std::fs::write(dir.path().join(name), "").expect("write");
        }
        std::fs::create_dir(dir.path().join("run")).expect("dir");
        let target = Target::new("python3 agent.py run nothing.py", dir.path(), Vec::new()).expect("words");
        let script = dir.path().join("agent.py").to_string_lossy().into_owned();
        assert_eq!(target.words, ["python3", &script, "run", "nothing.py"]);
        let target = Target::new("./agent.py", dir.path(), Vec::new()).expect("words");
        assert!(Path::new(&target.words[0]).is_absolute());
    }

    #[test]
    fn an_undeclared_tool_is_taken_to_have_an_effect() {
        let target = Target::new("agent", Path::new("."), Vec::new()).expect("words");
        assert!(!target.has_effect("fetch"));
        assert!(target.has_effect("write_artifact"));
        assert!(target.has_effect("launch_rocket"));
    }
}

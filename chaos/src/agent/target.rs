//! The agent under test: a command, and what it says it can do.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

use crate::case::plan::PlanCase;
use crate::contract::is_pure;
use crate::error::LabError;

/// How long a process may take if nobody chooses.
pub const DEADLINE: Duration = Duration::from_secs(30);

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
    /// What `tools --json` says; `None` where the agent has no such command and hence only what the contract promises.
    pub inventory: Option<Inventory>,
    /// The plan of each tool's own example.
    pub examples: Vec<PlanCase>,
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
    /// What must be there beside the files; such a plan is not played.
    #[serde(default)]
    pub needs: Option<String>,
}

impl Target {
    /// Reads the command. Words that name existing files are made absolute, because scenarios run in folders of their
    /// own; the first word only where it has a `/`, as a shell would look it up otherwise.
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
        let bad = |why: &str| LabError::Usage(format!("cannot split the command `{given}`: {why}"));
        let words = shell_words::split(given).map_err(|e| bad(&e.to_string()))?;
        if words.is_empty() {
            return Err(bad("it has no words"));
        }
        Ok(Self {
            given: given.to_owned(),
            words: words.into_iter().enumerate().map(absolute).collect(),
            scrub,
            deadline: DEADLINE,
            inventory: None,
            examples: Vec::new(),
            has_inbox: false,
        })
    }

    /// Whether the tool changes something outside the database. What is not declared is taken to have an effect.
    #[must_use]
    pub fn has_effect(&self, tool: &str) -> bool {
        match self.tool(tool) {
            Some(facts) => facts.effect != "pure",
            None => !is_pure(tool).unwrap_or(false),
        }
    }

    /// The inventory's entry for a tool.
    #[must_use]
    pub fn tool(&self, name: &str) -> Option<&ToolFacts> {
        self.inventory.as_ref()?.tools.iter().find(|t| t.name == name)
    }
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

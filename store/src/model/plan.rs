//! The frozen plan of a task.

use std::borrow::Cow;
use std::fmt;

use serde_json::{Map, Value};

use super::Digest;

/// What a task will do: decided once, before the first step runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// What the task is for, in words.
    pub goal: String,
    /// The steps in order; never empty.
    pub steps: Vec<PlannedStep>,
}

/// One tool call with its input.
#[derive(Clone, Debug, PartialEq)]
pub struct PlannedStep {
    /// The tool's name.
    pub tool: String,
    /// The tool's input.
    pub input: Map<String, Value>,
    /// What the plan says of the step beside that, such as its id, `when` or `retry`; none where it says nothing more.
    pub settings: Option<Map<String, Value>>,
}

impl PlannedStep {
    /// A step of which the plan says nothing more.
    pub fn new(tool: impl Into<String>, input: Map<String, Value>) -> Self {
        Self { tool: tool.into(), input, settings: None }
    }

    /// What the plan says of it under this name.
    #[must_use]
    pub fn setting(&self, name: &str) -> Option<&Value> {
        self.settings.as_ref()?.get(name)
    }

    /// What the plan calls it.
    #[must_use]
    pub fn id(&self) -> Option<&str> {
        self.setting("id")?.as_str()
    }
}

/// What a task keeps of its plan file, beside goal and steps. Plans that are taken literally have nothing of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Origin {
    /// The values of the plan's inputs.
    pub inputs: Option<Map<String, Value>>,
    /// The labels of the task.
    pub labels: Option<Map<String, Value>>,
    /// The SHA-256 of the plan file.
    pub digest: Option<Digest>,
    /// The version of the plan language in which the steps are written; none where they are taken literally.
    pub language: Option<u32>,
}

/// Where the steps of a new task come from: a [`Plan`] in memory, or a planner that makes each step when it is asked
/// for, so that a long plan never lies in memory as a whole.
///
/// A commit owns it and may be written by another thread.
pub trait PlanSource: fmt::Debug + Send + Sync {
    /// What the task is for, in words.
    fn goal(&self) -> &str;

    /// How many steps there are; at most [`crate::limits::PLAN_STEPS`].
    fn count(&self) -> u32;

    /// The steps, in order; each call gives the same.
    fn steps(&self) -> Box<dyn Iterator<Item = Cow<'_, PlannedStep>> + '_>;

    /// What a run does once every step is done and before the task is; a backend stores it and does not look inside.
    fn completion(&self) -> Option<&Map<String, Value>> {
        None
    }

    /// What the task keeps of the plan file.
    fn origin(&self) -> Origin {
        Origin::default()
    }

    /// The plan file, as it was given.
    fn source(&self) -> Option<&str> {
        None
    }
}

impl PlanSource for Plan {
    fn goal(&self) -> &str {
        &self.goal
    }

    fn count(&self) -> u32 {
        u32::try_from(self.steps.len()).unwrap_or(u32::MAX)
    }

    fn steps(&self) -> Box<dyn Iterator<Item = Cow<'_, PlannedStep>> + '_> {
        Box::new(self.steps.iter().map(Cow::Borrowed))
    }
}

/// Why a plan is refused: where, and what is wrong there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanError {
    /// The step's index and tool, where the fault lies in one step.
    pub step: Option<(u32, String)>,
    /// The field, where the fault lies in one field.
    pub field: Option<String>,
    /// What is wrong.
    pub why: String,
}

impl PlanError {
    /// A fault of the plan as a whole.
    pub fn whole(why: impl Into<String>) -> Self {
        Self { step: None, field: None, why: why.into() }
    }

    /// A fault of one field of the plan itself.
    pub fn field(field: &str, why: impl Into<String>) -> Self {
        Self { step: None, field: Some(field.to_owned()), why: why.into() }
    }

    /// The same fault, found in the step `index` that calls `tool`.
    #[must_use]
    pub fn in_step(self, index: u32, tool: &str) -> Self {
        Self { step: Some((index, tool.to_owned())), ..self }
    }
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.step {
            Some((index, tool)) if tool.is_empty() => write!(f, "step {index}: ")?,
            Some((index, tool)) => write!(f, "step {index} ({tool}): ")?,
            None => {}
        }
        if let Some(field) = &self.field {
            write!(f, "field `{field}`: ")?;
        }
        f.write_str(&self.why)
    }
}

impl std::error::Error for PlanError {}

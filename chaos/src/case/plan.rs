//! A plan under test, with the input files that it needs.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use serde_json::Value;

use crate::case::effects::Effects;
use crate::case::promise::Promise;
use crate::contract::PLAN_FILE;
use crate::error::LabError;
use crate::schedule::CrashPoint;

/// Input folders larger than this are refused: every scenario gets its own copy.
pub const MAX_INPUT_BYTES: u64 = 64 << 20;

const REPORT_PLAN: &str = r#"{"goal": "Summarize notes into a report",
 "steps": [{"tool": "fetch", "input": {"path": "input/notes.txt"}},
           {"tool": "summarize", "input": {"from": 0}},
           {"tool": "write_artifact", "input": {"from": 1}}]}"#;

const REPORT_NOTES: &str = "Grüße aus dem Protokoll\n\n  The pump failed at 04:12.\n\
    Two valves were closed by hand.\nThe line in the summary that must not appear.\n";

/// One step as the plan file has it.
#[derive(Debug, Clone, PartialEq)]
pub struct StepSpec {
    /// The tool's name.
    pub tool: String,
    /// The tool's input.
    pub input: Value,
    /// All that the plan says of it.
    pub said: Value,
}

impl StepSpec {
    /// A step of which nothing is said but its call.
    #[must_use]
    pub fn new(tool: &str, input: Value) -> Self {
        Self { tool: tool.to_owned(), input, said: Value::Null }
    }

    /// The attempts that the plan allows it, where it says so.
    #[must_use]
    pub fn max_attempts(&self) -> Option<u64> {
        self.said["retry"]["max_attempts"].as_u64()
    }

    /// Whether the task goes on where it fails.
    #[must_use]
    pub fn goes_on(&self) -> bool {
        self.said["on_error"] == "continue"
    }

    /// Whether it can end with this status, as far as the plan tells.
    #[must_use]
    pub fn can_end(&self, status: &str) -> bool {
        match status {
            "done" => true,
            "skipped" => !self.said["when"].is_null(),
            "failed" => self.goes_on(),
            _ => false,
        }
    }
}

/// How a case is played, beyond its plan.
pub trait Kind: std::fmt::Debug + Send + Sync {
    /// The words that start or resume a task.
    fn words(&self, task: &str) -> Vec<String>;

    /// Whether `create` stores a task before its first run; else that run does.
    fn is_created(&self) -> bool;

    /// The action log in the working folder.
    fn log(&self) -> Option<&'static str> {
        None
    }

    /// Where a task's report goes; each task has its own.
    fn report(&self, _task: &str) -> Option<String> {
        None
    }

    /// Whether a file in the working folder is a report, or on its way to be one.
    fn is_report(&self, _name: &str) -> bool {
        false
    }

    /// Input files that the lab may add later.
    fn late(&self) -> &'static [&'static str] {
        &[]
    }

    /// What is promised of a step's effect in the world, where the lab counts that.
    fn promise(&self, _step: usize) -> Option<Promise> {
        None
    }

    /// Whether its effects are in a server of the lab.
    fn is_served(&self) -> bool {
        false
    }

    /// Whether the lab is the person who is asked, and looks at the world before it answers.
    fn has_person(&self) -> bool {
        false
    }
}

/// A plan file: `create` once, then `run` again and again.
#[derive(Debug)]
struct Planned;

impl Kind for Planned {
    fn words(&self, task: &str) -> Vec<String> {
        vec!["run".to_owned(), task.to_owned()]
    }

    fn is_created(&self) -> bool {
        true
    }
}

/// A plan and the world that it starts in.
#[derive(Debug, Clone)]
pub struct PlanCase {
    /// Name in scenario ids; no `/` in it.
    pub name: String,
    /// The goal of the plan file.
    pub goal: String,
    /// The steps of the plan file.
    pub steps: Vec<StepSpec>,
    /// The plan file's bytes; there is none where the agent makes the plan itself.
    pub text: String,
    /// How it is played.
    pub kind: &'static dyn Kind,
    /// Relative path -> content of every input file.
    pub files: BTreeMap<String, Vec<u8>>,
    /// The tool whose own example this is.
    pub example_of: Option<String>,
    /// Which files are judged.
    pub effects: Effects,
    /// The methods that play it, where not all do.
    pub methods: Option<&'static [&'static str]>,
    /// The steps that a run without a crash does not do: their condition is false, or they fail and the task goes on.
    pub idle: Vec<usize>,
}

impl PlanCase {
    /// The report plan of the contract: fetch, summarize, write.
    #[must_use]
    pub fn report() -> Self {
        let mut case = Self::parse("report", REPORT_PLAN).expect("the built-in plan is a plan");
        case.files.insert("input/notes.txt".to_owned(), REPORT_NOTES.as_bytes().to_vec());
        case
    }

    /// Whether each step may be killed so often without failing for it, where the environment allows it.
    #[must_use]
    pub fn stands(&self, kills: u64) -> bool {
        self.steps.iter().all(|step| step.max_attempts().is_none_or(|limit| limit > kills))
    }

    /// Whether every step is done, as far as the plan tells.
    #[must_use]
    pub fn is_straight(&self) -> bool {
        self.steps.iter().all(|step| !step.can_end("skipped") && !step.can_end("failed"))
    }

    /// The steps that a run without a crash does.
    pub fn done_steps(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.steps.len()).filter(|step| !self.idle.contains(step))
    }

    /// The contract's points that such a run passes.
    #[must_use]
    pub fn points(&self) -> Vec<CrashPoint> {
        let mut points = CrashPoint::of_contract(self.steps.len());
        points.retain(|point| self.passes(point));
        points
    }

    /// Whether a point can be killed at: nobody waits for a step that is not done.
    #[must_use]
    pub fn passes(&self, point: &CrashPoint) -> bool {
        point.step.is_none_or(|step| !self.idle.contains(&step))
    }

    /// A plan from the text of a plan file. Only what the lab needs is checked; the agent judges the rest.
    ///
    /// # Errors
    /// Text that is not a JSON object with `goal` and a list of `steps`.
    pub fn parse(name: &str, text: &str) -> Result<Self, LabError> {
        let bad = |why: &str| LabError::Usage(format!("the plan `{name}` {why}"));
        let value: Value = serde_json::from_str(text).map_err(|e| bad(&format!("is not JSON: {e}")))?;
        let goal = value["goal"].as_str().ok_or_else(|| bad("has no `goal`"))?;
        let steps = value["steps"].as_array().ok_or_else(|| bad("has no `steps`"))?;
        let spec = |step: &Value| {
            let (tool, input) = (step["tool"].as_str()?.to_owned(), step["input"].clone());
            Some(StepSpec { tool, input, said: step.clone() })
        };
        let steps: Option<Vec<_>> = steps.iter().map(spec).collect();
        let steps = steps.ok_or_else(|| bad("has a step without `tool`"))?;
        if steps.is_empty() {
            return Err(bad("has no steps"));
        }
        Ok(Self {
            name: name.to_owned(),
            goal: goal.to_owned(),
            steps,
            text: text.to_owned(),
            kind: &Planned,
            files: BTreeMap::new(),
            example_of: None,
            effects: Effects::default(),
            methods: None,
            idle: Vec::new(),
        })
    }

    /// A plan file with its input files: the content of `inputs` where given, else every file that a step's input names
    /// and that stands beside the plan.
    ///
    /// # Errors
    /// Files that cannot be read, and what is not a plan.
    pub fn load(file: &Path, inputs: Option<&Path>) -> Result<Self, LabError> {
        let text = std::fs::read_to_string(file)
            .map_err(|e| LabError::Usage(format!("cannot read the plan {}: {e}", file.display())))?;
        let stem = file.file_stem().unwrap_or_default().to_string_lossy();
        let mut case = Self::parse(&stem.replace(['/', '\''], "_"), &text)?;
        match inputs {
            Some(dir) => {
                let mut left = MAX_INPUT_BYTES;
                read_tree(dir, Path::new(""), &mut case.files, &mut left)?;
            }
            None => case.pick_up_files(file.parent().unwrap_or(Path::new("")))?,
        }
        Ok(case)
    }

    fn pick_up_files(&mut self, beside: &Path) -> Result<(), LabError> {
        let mut names = Vec::new();
        for step in &self.steps {
            strings(&step.input, &mut names);
        }
        for name in names {
            let file = beside.join(&name);
            if stays_inside(Path::new(&name)) && file.is_file() {
                let bytes = std::fs::read(&file).map_err(LabError::io("read", &file))?;
                self.files.insert(name, bytes);
            }
        }
        Ok(())
    }

    /// Whether it is the report plan that the lab has built in.
    #[must_use]
    pub fn is_built_in(&self) -> bool {
        self.text == REPORT_PLAN
    }

    /// Whether all methods are for it, and for each of its steps.
    #[must_use]
    pub fn is_played_whole(&self) -> bool {
        self.example_of.is_none() && self.methods.is_none()
    }

    /// Whether a file in the working folder is there for the agent to read, and none of its doing.
    #[must_use]
    pub fn is_input(&self, name: &str) -> bool {
        name == PLAN_FILE || self.kind.late().contains(&name) || self.files.contains_key(name)
    }

    /// Whether a file in the working folder is an effect, or a draft of one.
    #[must_use]
    pub fn is_effect(&self, name: &str) -> bool {
        self.kind.is_report(name) || self.effects.has(name)
    }

    /// The steps whose committed output step `idx` reads, by the field `from`.
    #[must_use]
    pub fn reads(&self, idx: usize) -> Vec<usize> {
        let from = &self.steps[idx].input["from"];
        let one = |v: &Value| v.as_u64().and_then(|n| usize::try_from(n).ok());
        match from {
            Value::Array(list) => list.iter().filter_map(one).collect(),
            other => one(other).into_iter().collect(),
        }
    }
}

/// Every text in a document.
pub fn strings(value: &Value, into: &mut Vec<String>) {
    match value {
        Value::String(text) => into.push(text.clone()),
        Value::Array(list) => list.iter().for_each(|v| strings(v, into)),
        Value::Object(map) => map.values().for_each(|v| strings(v, into)),
        _ => {}
    }
}

/// Whether a relative path cannot leave the folder that it is joined to.
#[must_use]
pub fn stays_inside(path: &Path) -> bool {
    !path.as_os_str().is_empty() && path.components().all(|c| matches!(c, Component::Normal(_) | Component::CurDir))
}

fn read_tree(root: &Path, below: &Path, into: &mut BTreeMap<String, Vec<u8>>, left: &mut u64) -> Result<(), LabError> {
    let dir = root.join(below);
    let unreadable = |e| LabError::Usage(format!("cannot read the inputs {}: {e}", dir.display()));
    for entry in std::fs::read_dir(&dir).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        let relative: PathBuf = below.join(entry.file_name());
        let meta = std::fs::metadata(entry.path()).map_err(unreadable)?;
        if meta.is_dir() {
            read_tree(root, &relative, into, left)?;
            continue;
        }
        *left = left
            .checked_sub(meta.len())
            .ok_or_else(|| LabError::Usage(format!("the inputs are larger than {MAX_INPUT_BYTES} bytes")))?;
        let bytes = std::fs::read(entry.path()).map_err(unreadable)?;
        into.insert(relative.to_string_lossy().into_owned(), bytes);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_plan_reads_what_the_contract_says() {
        let case = PlanCase::report();
        assert_eq!(case.steps.len(), 3);
        assert_eq!(case.reads(0), Vec::<usize>::new());
        assert_eq!(case.reads(2), [1]);
    }

    #[test]
    fn a_plan_file_brings_the_files_that_it_names_and_no_other() {
        let dir = tempfile::tempdir().expect("dir");
        std::fs::create_dir(dir.path().join("input")).expect("dir");
        std::fs::write(dir.path().join("input/a.txt"), "a").expect("write");
        std::fs::write(dir.path().join("other.txt"), "b").expect("write");
        let plan = dir.path().join("mine.json");
        let text = r#"{"goal":"g","steps":[{"tool":"fetch","input":{"path":"input/a.txt"}},
            {"tool":"fetch","input":{"path":"../outside"}}]}"#;
        std::fs::write(&plan, text).expect("write");
        let case = PlanCase::load(&plan, None).expect("plan");
        assert_eq!(case.name, "mine");
        assert_eq!(case.files.keys().collect::<Vec<_>>(), ["input/a.txt"]);
        let all = PlanCase::load(&plan, Some(dir.path())).expect("plan");
        assert_eq!(all.files.len(), 3);
    }

    #[test]
    fn what_is_no_plan_is_refused_with_its_name() {
        for text in ["", "[]", r#"{"goal":"g"}"#, r#"{"goal":"g","steps":[]}"#] {
            let error = PlanCase::parse("mine", text).expect_err(text);
            assert!(error.to_string().contains("`mine`"), "{error}");
        }
    }

    #[test]
    fn a_path_that_leaves_its_folder_is_seen() {
        assert!(stays_inside(Path::new("input/./a.txt")));
        for path in ["../a", "/a", "", "a/../../b"] {
            assert!(!stays_inside(Path::new(path)), "{path}");
        }
    }
}

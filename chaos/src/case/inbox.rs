//! The inbox agent as the contract has it: one command that creates its task where it is new and resumes it where it is
//! not, one step for each note of a folder, a report at the end, and an action log. All of it is restated here; nothing
//! is taken from the agent but the words in which it stores its plan.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::case::TASK;
use crate::case::effects::Effects;
use crate::case::plan::{Kind, PlanCase, StepSpec};

/// The name of the case.
pub const NAME: &str = "inbox";

/// The action log in the working folder.
pub const LOG: &str = "actions.jsonl";

/// The folder of the notes.
const FOLDER: &str = "inbox";

/// What a note's name ends with.
const NOTE: &str = ".txt";

/// What lies in the folder. Two notes have a name that is not ASCII, so that a line of the log about them can be torn
/// inside a character; one is empty; the last file is not a note.
const FILES: [(&str, &str); 4] = [
    ("inbox/abend.txt", "Pump two is\tleaking again.\n\nCall  the plumber\n"),
    ("inbox/größe.txt", ""),
    ("inbox/Übergabe.txt", "Grüße aus 東京, alles läuft\u{3000}wieder"),
    ("inbox/zettel.md", "This is not a note.\n"),
];

/// Notes that the lab adds later, one before all others and one behind them.
const LATE: [&str; 2] = ["inbox/000-late.txt", "inbox/ÿ-late.txt"];

/// Their content.
pub const LATE_TEXT: &str = "a note that came too late\n";

/// `inbox` again and again; the first one creates the task.
#[derive(Debug)]
struct Inbox;

impl Kind for Inbox {
    fn words(&self, task: &str) -> Vec<String> {
        let report = report_of(task);
        let words = ["inbox", "--task", task, "--inbox", FOLDER, "--log", LOG, "--out", &report];
        words.map(str::to_owned).to_vec()
    }

    fn is_created(&self) -> bool {
        false
    }

    fn log(&self) -> Option<&'static str> {
        Some(LOG)
    }

    fn report(&self, task: &str) -> Option<String> {
        Some(report_of(task))
    }

    fn is_report(&self, name: &str) -> bool {
        !name.contains('/') && name.contains("report")
    }

    fn late(&self) -> &'static [&'static str] {
        &LATE
    }
}

/// The built-in case. How the agent words its plan is learned from its first run.
#[must_use]
pub fn case() -> PlanCase {
    let files: BTreeMap<_, _> =
        FILES.iter().map(|(name, text)| ((*name).to_owned(), text.as_bytes().to_vec())).collect();
    let steps = notes(&files).map(|(path, _)| StepSpec::new("", json!({ "path": path })));
    PlanCase {
        name: NAME.to_owned(),
        goal: String::new(),
        steps: steps.collect(),
        text: String::new(),
        kind: &Inbox,
        files,
        example_of: None,
        effects: Effects::default(),
        methods: None,
        idle: Vec::new(),
    }
}

fn report_of(task: &str) -> String {
    match task {
        TASK => "report.json".to_owned(),
        other => format!("report-{other}.json"),
    }
}

/// The notes among the files, by name in the order of their bytes: one a step.
pub fn notes(files: &BTreeMap<String, Vec<u8>>) -> impl Iterator<Item = (&str, &[u8])> {
    let notes = files.iter().filter(|(name, _)| name.starts_with(FOLDER) && name.ends_with(NOTE));
    notes.map(|(name, text)| (name.as_str(), text.as_slice()))
}

/// The note's name, as log and report have it, of the step `idx`.
#[must_use]
pub fn note_of(case: &PlanCase, idx: usize) -> Option<String> {
    let (path, _) = notes(&case.files).nth(idx)?;
    Some(base(path))
}

/// The results that the contract asks for, in step order.
#[must_use]
pub fn results(files: &BTreeMap<String, Vec<u8>>) -> Value {
    let result = |(path, text): (&str, &[u8])| {
        let words = String::from_utf8_lossy(text).split_whitespace().count();
        let hash: String = Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect();
        json!({ "file": base(path), "words": words, "sha256": &hash[..12] })
    };
    Value::Array(notes(files).map(result).collect())
}

fn base(path: &str) -> String {
    Path::new(path).file_name().unwrap_or_default().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_results_are_those_of_the_notes_in_the_order_of_their_bytes() {
        let results = results(&case().files);
        let names: Vec<_> = (0..3).map(|i| results[i]["file"].as_str().expect("a name").to_owned()).collect();
        assert_eq!(names, ["abend.txt", "größe.txt", "Übergabe.txt"]);
        assert_eq!([0, 1, 2].map(|i| results[i]["words"].as_u64()), [Some(8), Some(0), Some(6)]);
        assert_eq!(results[1]["sha256"], "e3b0c44298fc", "of nothing");
        assert_eq!(note_of(&case(), 1).as_deref(), Some("größe.txt"));
        assert_eq!(note_of(&case(), 3), None);
    }

    #[test]
    fn each_task_has_a_report_of_its_own_and_all_have_one_log() {
        let words = |task| case().kind.words(task);
        assert_eq!(words("t1").join(" "), "inbox --task t1 --inbox inbox --log actions.jsonl --out report.json");
        assert_eq!(words("t2")[8], "report-t2.json");
        assert_eq!(words("t2")[6], words("t1")[6]);
    }
}

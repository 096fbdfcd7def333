//! What a run without any crash must come to, by the contract alone and by nobody's
//! first run: all other judges compare with that run, so that an agent which does
//! everything twice even without a crash would pass before them.
//!
//! It is known for plans whose steps are all of tools that the contract or the
//! inbox has, and of `echo`; of any other plan only its user knows.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::case::TASK;
use crate::case::plan::{PlanCase, StepSpec};
use crate::contract::PUBLISHER;
use crate::judge::verdict::Verdict;
use crate::look::evidence::Evidence;
use crate::look::tables::{StepRow, Tables};

/// How many lines of a text the stub takes for its summary.
const SUMMARY_LINES: usize = 3;

/// Events of a task that are there once without a crash, and those of each step.
const ONCE: [&str; 3] = ["task_created", "run_started", "task_done"];
const ONCE_A_STEP: [&str; 2] = ["step_started", "step_finished"];

/// Events that tell of trouble.
const TROUBLE: [&str; 4] = ["step_error", "step_recovered", "step_released", "task_failed"];

/// Judges a clean run of [`TASK`]; what is not known holds.
#[must_use]
pub fn clean_outcome(evidence: &Evidence) -> Verdict {
    let (case, last) = (&evidence.case, evidence.last());
    if !case.steps.iter().all(|step| is_known(case, step)) {
        return Verdict::Holds;
    }
    let mut complaints = Vec::new();
    let mut files: BTreeSet<String> = case.kind.report(TASK).into_iter().collect();
    for row in last.tables.steps_of(TASK) {
        let due = output(case, &last.tables, row.idx);
        let said = row.output.clone().unwrap_or_default();
        for (field, due) in due.as_object().into_iter().flatten().filter(|(field, due)| said[*field] != **due) {
            complaints.push(format!("step {} has `{field}` {}, must be {due}", row.idx, said[field]));
        }
        if row.attempts != 1 {
            complaints.push(format!("step {} has {} attempts without a crash", row.idx, row.attempts));
        }
        if row.tool == PUBLISHER {
            files.extend(published(evidence, row, &mut complaints));
        }
    }
    let strange = last.world.keys().filter(|name| !files.contains(*name));
    complaints.extend(strange.map(|name| format!("`{name}` is not a step's result")));
    events(&last.tables, &mut complaints);
    Verdict::of(&complaints)
}

fn is_known(case: &PlanCase, step: &StepSpec) -> bool {
    match step.tool.as_str() {
        "fetch" | "count_words" => text(case, &step.input).is_some(),
        "summarize" | PUBLISHER | "echo" => true,
        _ => false,
    }
}

fn text<'a>(case: &'a PlanCase, input: &Value) -> Option<&'a str> {
    std::str::from_utf8(case.files.get(input["path"].as_str()?)?).ok()
}

/// The fields that a step's output must have.
fn output(case: &PlanCase, tables: &Tables, idx: usize) -> Value {
    let Some(step) = case.steps.get(idx) else { return Value::Null };
    let of_earlier = |field: &str| {
        let from = tables.step(TASK, case.reads(idx).first().copied()?)?;
        from.output.as_ref()?[field].as_str()
    };
    match step.tool.as_str() {
        "fetch" => text(case, &step.input)
            .map_or(Value::Null, |text| json!({ "text": text, "chars": text.chars().count(), "sha256": sha256(text) })),
        "count_words" => text(case, &step.input).map_or(
            Value::Null,
            |text| json!({ "words": text.split_whitespace().count(), "sha256": &sha256(text)[..12] }),
        ),
        "summarize" => of_earlier("text").map_or(Value::Null, |text| json!({ "summary": summary(text) })),
        "echo" => json!({ "value": step.input["value"] }),
        _ => json!({ "deduplicated": false }),
    }
}

fn sha256(text: &str) -> String {
    Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The first non-empty lines, trimmed.
fn summary(text: &str) -> String {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.take(SUMMARY_LINES).collect::<Vec<_>>().join("\n")
}

/// The file that a step had to publish, under its key and with the summary.
fn published(evidence: &Evidence, row: &StepRow, complaints: &mut Vec<String>) -> Option<String> {
    let (last, idx) = (evidence.last(), row.idx);
    let name = row.output.as_ref()?["path"].as_str()?.to_owned();
    if !name.ends_with(&format!("/{TASK}-{idx}.md")) {
        complaints.push(format!("step {idx} has published `{name}`, which is not its key"));
    }
    let from = evidence.case.reads(idx).first().and_then(|from| last.tables.step(TASK, *from));
    let summary = from.and_then(|row| row.output.as_ref()).and_then(|output| output["summary"].as_str());
    if last.world.get(&name).map(Vec::as_slice) != summary.map(str::as_bytes) {
        complaints.push(format!("`{name}` is not the summary, byte for byte"));
    }
    Some(name)
}

fn events(tables: &Tables, complaints: &mut Vec<String>) {
    let count = |kind: &str, step: Option<usize>| {
        tables.events_of(TASK).filter(|event| event.kind == kind && event.step == step).count()
    };
    let steps = tables.steps_of(TASK).flat_map(|row| ONCE_A_STEP.map(|kind| (kind, Some(row.idx))));
    for (kind, step) in ONCE.map(|kind| (kind, None)).into_iter().chain(steps) {
        let found = count(kind, step);
        if found != 1 {
            let about = step.map_or_else(String::new, |step| format!(" of step {step}"));
            complaints.push(format!("the journal has {found} {kind}{about}, must have one"));
        }
    }
    let trouble = tables.events_of(TASK).filter(|event| TROUBLE.contains(&event.kind.as_str()));
    complaints.extend(trouble.map(|event| format!("{} although nothing was done to it", event.describe())));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{ARTIFACT, Story};

    /// The story of a clean run, told as the contract has it.
    fn clean() -> Story {
        let mut story = Story::clean();
        let case = std::sync::Arc::clone(&story.evidence.case);
        for idx in 0..2 {
            let due = output(&case, &story.last().tables, idx);
            story.last().tables.steps[idx].output = Some(due);
        }
        let text = story.last().tables.steps[1].output.as_ref().expect("output")["summary"].clone();
        let text = text.as_str().expect("text").as_bytes().to_vec();
        story.last().world.insert(ARTIFACT.to_owned(), text);
        story
    }

    fn breaks(story: &Story, why: &str) {
        match clean_outcome(&story.evidence) {
            Verdict::Violated(text) if text.contains(why) => {}
            other => panic!("must complain about `{why}`, says {other:?}"),
        }
    }

    #[test]
    fn a_run_as_the_contract_has_it_is_accepted() {
        assert_eq!(clean_outcome(&clean().evidence), Verdict::Holds);
        let mut inbox = Story::inbox();
        for row in &mut inbox.last().tables.steps {
            row.tool = "count_words".to_owned();
        }
        assert_eq!(clean_outcome(&inbox.evidence), Verdict::Holds);
    }

    /// An agent that did everything twice, crash or no crash, looked the same each
    /// time: every judge compared it with its own first run.
    #[test]
    fn what_is_done_twice_without_a_crash_is_rejected() {
        let mut story = clean();
        story.last().world.insert("artifacts/t1-2-again.md".to_owned(), Vec::new());
        breaks(&story, "is not a step's result");
        let mut story = clean();
        story.last().tables.steps[1].attempts = 2;
        breaks(&story, "has 2 attempts");
        let mut story = clean();
        story.insert_event("step_error", Some(1), "step_finished", 1);
        breaks(&story, "although nothing was done to it");
        let mut story = clean();
        story.insert_event("run_started", None, "task_done", 0);
        breaks(&story, "2 run_started");
    }

    #[test]
    fn another_text_summary_or_file_is_rejected() {
        for (idx, field) in [(0, "text"), (0, "chars"), (0, "sha256"), (1, "summary"), (2, "deduplicated")] {
            let mut story = clean();
            story.last().tables.steps[idx].output.as_mut().expect("output")[field] = json!(7);
            breaks(&story, &format!("step {idx} has `{field}` 7"));
        }
        let mut story = clean();
        story.last().world.insert(ARTIFACT.to_owned(), b"longer".to_vec());
        breaks(&story, "is not the summary");
        assert_eq!(summary(" a \n\n b\nc\r\nd\n"), "a\nb\nc");
    }
}

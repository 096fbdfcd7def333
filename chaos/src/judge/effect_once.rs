//! A step may run twice, its external result appears once, equal to that of a run without a crash. Counted from
//! outside: by the files in the folder.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::contract::{PUBLISHER, UNSAFE_LOG};
use crate::judge::no_stray_files::looks_temporary;
use crate::judge::verdict::Verdict;
use crate::look::evidence::{Baseline, Evidence, TaskEnd};
use crate::look::tables::StepRow;

/// The line that ends one entry of an appended effect.
const ENTRY_END: &[u8] = b"---\n";

type World = BTreeMap<String, Vec<u8>>;

pub(super) fn check(evidence: &Evidence, baseline: &Baseline) -> Verdict {
    let mut complaints = Vec::new();
    let (is, must) = (&evidence.last().world, &baseline.last().world);
    for (name, content) in is {
        match must.get(name) {
            None if looks_temporary(name) => {}
            None => complaints.push(format!("`{name}` is not there in a run without a crash")),
            Some(clean) if clean != content => complaints.push(differ(name, clean, content)),
            Some(_) => {}
        }
    }
    if evidence.end == TaskEnd::Done {
        let missing = must.keys().filter(|name| !is.contains_key(*name));
        complaints.extend(missing.map(|name| format!("`{name}` is missing")));
        outputs_equal(evidence, baseline, &mut complaints);
    }
    never_half(evidence, must, &baseline.between, &mut complaints);
    published_once(evidence, &mut complaints);
    each_its_own(evidence, &mut complaints);
    published_exactly(evidence, &mut complaints);
    Verdict::of(&complaints)
}

/// How often a file's effect is in the world: entries for a log of entries, one for any other file.
#[must_use]
fn entries(content: &[u8]) -> usize {
    let ends = content.windows(ENTRY_END.len()).filter(|w| *w == ENTRY_END);
    ends.count().max(1)
}

fn differ(name: &str, clean: &[u8], content: &[u8]) -> String {
    let (must, is) = (entries(clean), entries(content));
    if must != is {
        return format!("`{name}` has {is} entries, {must} without a crash");
    }
    let (must, is) = (clean.len(), content.len());
    format!("`{name}` has other content than without a crash ({is} bytes, {must} without)")
}

/// A name that is a result holds a whole result, at every moment.
fn never_half(
    evidence: &Evidence,
    must: &World,
    between: &BTreeMap<String, Vec<Vec<u8>>>,
    complaints: &mut Vec<String>,
) {
    for (when, snapshot) in evidence.snapshots() {
        for (name, content) in &snapshot.world {
            let whole =
                must.get(name) == Some(content) || between.get(name).is_some_and(|known| known.contains(content));
            if must.contains_key(name) && !whole {
                let bytes = content.len();
                complaints.push(format!("{when}: `{name}` is not a whole result ({bytes} bytes)"));
            }
        }
    }
}

/// The contract's tool publishes a result under its key and finds it there the next time: it is not written again, and
/// `deduplicated` says so.
fn published_once(evidence: &Evidence, complaints: &mut Vec<String>) {
    for (i, run) in evidence.runs.iter().enumerate() {
        let Some(after) = &run.after else { continue };
        let before = evidence.before(i);
        for step in after.tables.steps_of(&run.task).filter(|step| step.tool == PUBLISHER) {
            let Some(name) = result_of(step) else { continue };
            let (label, was) = (evidence.label(i), before.written.get(name));
            let Some(now) = after.written.get(name) else { continue };
            if was.is_some_and(|was| was != now) {
                complaints.push(format!("{label}: `{name}` was there already and was written again"));
            }
            let said = step.output.as_ref().and_then(|output| output["deduplicated"].as_bool());
            let attempts = before.tables.step(&step.task, step.idx).map_or(0, |row| row.attempts);
            // A second attempt within one run rightly finds what the first one published.
            let new = !before.tables.is_done(&step.task, step.idx) && step.attempts == attempts + 1;
            if new && said.is_some_and(|said| said != was.is_some()) {
                let there = if was.is_some() { "there already" } else { "not there before" };
                complaints.push(format!("{label}: `{name}` was {there}, the output says otherwise"));
            }
        }
    }
}

/// No two steps have one result, neither of one task nor of two whose ids are
/// nearly the same: the second effect would have been taken for the first.
fn each_its_own(evidence: &Evidence, complaints: &mut Vec<String>) {
    let mut owners = BTreeMap::new();
    for step in evidence.last().tables.steps.iter().filter(|step| step.tool == PUBLISHER) {
        let Some(name) = result_of(step).filter(|name| !name.ends_with(UNSAFE_LOG)) else { continue };
        if let Some((task, idx)) = owners.insert(name, (&step.task, step.idx)) {
            complaints.push(format!("`{name}` is the result of {task}:{idx} and of {}:{}", step.task, step.idx));
        }
    }
}

/// What the contract's tool publishes is the summary, byte for byte.
fn published_exactly(evidence: &Evidence, complaints: &mut Vec<String>) {
    let last = evidence.last();
    for step in last.tables.steps.iter().filter(|step| step.tool == PUBLISHER) {
        let from = evidence.case.reads(step.idx).first().and_then(|from| last.tables.step(&step.task, *from));
        let summary = from.and_then(|row| row.output.as_ref()).and_then(|output| output["summary"].as_str());
        let (Some(summary), Some(name)) = (summary, result_of(step)) else { continue };
        let Some(content) = last.world.get(name) else { continue };
        let entry = format!("{summary}\n---\n").into_bytes();
        let exact = match name.ends_with(UNSAFE_LOG) {
            // How often it stands there is a question of its own.
            true => content.chunks(entry.len()).all(|chunk| chunk == entry),
            // A file of an earlier version, which ended with a line break, counts as the same.
            false => {
                let older = evidence.created.world.get(name) == Some(content);
                let same = content.strip_suffix(b"\n").filter(|_| older);
                content == summary.as_bytes() || same == Some(summary.as_bytes())
            }
        };
        if !exact {
            complaints.push(format!("`{name}` is not the summary of step {}, byte for byte", step.idx));
        }
    }
}

/// The file that a finished step says to have published.
fn result_of(step: &StepRow) -> Option<&str> {
    let output = step.output.as_ref().filter(|_| step.status == "done")?;
    output["path"].as_str()
}

fn outputs_equal(evidence: &Evidence, baseline: &Baseline, complaints: &mut Vec<String>) {
    let (is, must) = (&evidence.last().tables, &baseline.last().tables);
    for step in is.steps.iter().filter(|step| baseline.comparable[step.idx]) {
        let clean = must.step(&step.task, step.idx).and_then(|row| row.output.clone());
        if known(step.output.clone()) != known(clean.clone()) {
            complaints.push(format!(
                "the output of step {} of {} is {}, without a crash {}",
                step.idx,
                step.task,
                text(step.output.as_ref()),
                text(clean.as_ref())
            ));
        }
    }
}

/// An output without the one field that a crash may rightly change.
fn known(output: Option<Value>) -> Option<Value> {
    let mut output = output?;
    if let Some(fields) = output.as_object_mut() {
        fields.remove("deduplicated");
    }
    Some(output)
}

fn text(output: Option<&Value>) -> String {
    output.map_or_else(|| "nothing".to_owned(), ToString::to_string)
}

#[cfg(test)]
mod tests {
    use crate::testing::{ARTIFACT, Story, breaks, holds};

    #[test]
    fn the_same_files_with_the_same_bytes_are_accepted() {
        holds("effect_once", &Story::clean());
        holds("effect_once", &Story::killed_at("after_effect:2"));
    }

    #[test]
    fn a_result_that_was_there_must_be_called_deduplicated_and_no_other() {
        for (point, said) in [("after_effect:2", false), ("before_effect:2", true)] {
            let mut story = Story::killed_at(point);
            let output = story.last().tables.steps[2].output.as_mut().expect("output");
            output["deduplicated"] = said.into();
            breaks("effect_once", &story, "the output says otherwise");
        }
    }

    #[test]
    fn a_result_that_is_written_again_is_rejected_even_with_the_same_bytes() {
        let mut story = Story::killed_at("after_effect:2");
        let later = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(9);
        story.last().written.insert(ARTIFACT.to_owned(), later);
        breaks("effect_once", &story, "was written again");
    }

    /// An agent that folds the case of its files' names let the second task find the
    /// first one's result, and a clean run of both looked the same.
    #[test]
    fn one_result_of_two_tasks_is_rejected() {
        let mut story = Story::clean();
        let mut other = story.last().tables.steps[2].clone();
        other.task = "T1".to_owned();
        story.last().tables.steps.push(other);
        breaks("effect_once", &story, "is the result of t1:2 and of T1:2");
    }

    #[test]
    fn a_second_file_a_lost_file_and_other_bytes_are_rejected() {
        let mut story = Story::killed_at("after_effect:2");
        story.last().world.insert("artifacts/t1-2-b.md".to_owned(), b"x".to_vec());
        breaks("effect_once", &story, "is not there in a run without");

        let mut story = Story::killed_at("after_effect:2");
        story.last().world.clear();
        breaks("effect_once", &story, "is missing");

        let mut story = Story::killed_at("after_effect:2");
        story.last().world.insert(ARTIFACT.to_owned(), b"other".to_vec());
        breaks("effect_once", &story, "other content");
    }

    #[test]
    fn a_repeated_entry_of_a_log_is_counted() {
        let mut story = Story::clean();
        let log = "artifacts/report.log".to_owned();
        story.baseline_world().insert(log.clone(), b"a\n---\n".to_vec());
        story.last().world.insert(log, b"a\n---\na\n---\n".to_vec());
        breaks("effect_once", &story, "has 2 entries, 1 without");
    }

    /// Every agent of the workspace added a line break, and the lab compared them with each other only.
    #[test]
    fn a_line_break_more_than_the_summary_is_rejected_unless_the_file_was_there_before() {
        let more = || b"summary\n".to_vec();
        let mut story = Story::clean();
        story.last().world.insert(ARTIFACT.to_owned(), more());
        story.baseline_world().insert(ARTIFACT.to_owned(), more());
        breaks("effect_once", &story, "not the summary of step 2, byte for byte");
        story.evidence.created.world.insert(ARTIFACT.to_owned(), more());
        holds("effect_once", &story);
    }

    #[test]
    fn an_appended_entry_is_the_summary_a_line_break_and_a_rule() {
        let unsafe_story = |log: &[u8]| {
            let mut story = Story::clean();
            let name = "artifacts/report.log".to_owned();
            story.last().tables.steps[2].output = Some(serde_json::json!({ "path": name, "deduplicated": false }));
            story.baseline.comparable[2] = false;
            story.last().world = [(name, log.to_vec())].into();
            *story.baseline_world() = story.last().world.clone();
            story
        };
        holds("effect_once", &unsafe_story(b"summary\n---\n"));
        breaks("effect_once", &unsafe_story(b"summary---\n"), "byte for byte");
        breaks("effect_once", &unsafe_story(b"summary\n\n---\n"), "byte for byte");
    }

    #[test]
    fn a_half_written_result_is_rejected_even_if_it_is_whole_in_the_end() {
        let mut story = Story::killed_at("after_effect:2");
        story.after(0).world.insert(ARTIFACT.to_owned(), b"sum".to_vec());
        breaks("effect_once", &story, "not a whole result (3 bytes)");
    }

    #[test]
    fn another_output_than_without_a_crash_is_rejected() {
        let mut story = Story::killed_at("before_effect:1");
        story.last().tables.steps[1].output = Some("other".into());
        breaks("effect_once", &story, "the output of step 1");
    }
}

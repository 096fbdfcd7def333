//! All attempts of a step are for one input and of one class: those of the first. Where the plan has the input as it
//! is, the digest of that is the one in the journal. Only after a person's word that the effect is absent may an
//! attempt be for another input.

use std::collections::BTreeMap;

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::judge::verdict::Verdict;
use crate::look::evidence::{Baseline, Evidence};

pub(super) fn check(evidence: &Evidence, _: &Baseline) -> Verdict {
    let mut complaints = Vec::new();
    for task in &evidence.tasks {
        let mut first: BTreeMap<usize, (Value, Value)> = BTreeMap::new();
        for event in evidence.last().tables.events_of(task) {
            let Some(step) = event.step else { continue };
            if event.kind == "doubt_resolved" && event.field("word") == "absent" {
                first.remove(&step);
            }
            let (digest, class) = (event.field("input_sha256"), event.field("effect"));
            if event.kind != "step_started" || digest.is_null() {
                continue;
            }
            let what = || format!("{} of {task}", event.describe());
            if let Some(planned) = planned(evidence, step).filter(|planned| digest != **planned) {
                complaints.push(format!("{}: it is for {digest}, the plan's input is {planned}", what()));
            }
            let (of_first, class_of_first) = first.entry(step).or_insert_with(|| (digest.clone(), class.clone()));
            if *of_first != digest {
                complaints.push(format!("{}: it is for {digest}, the first attempt was for {of_first}", what()));
            }
            if *class_of_first != class {
                complaints.push(format!("{}: it is {class}, the first attempt was {class_of_first}", what()));
            }
        }
    }
    Verdict::of(&complaints)
}

/// The digest of a step's input, where the plan has it as it is.
fn planned(evidence: &Evidence, step: usize) -> Option<String> {
    let input = &evidence.case.steps.get(step)?.input;
    let digest = || Sha256::digest(input.to_string()).iter().map(|byte| format!("{byte:02x}")).collect();
    is_plain(input).then(digest)
}

/// Whether everybody writes it the same way, and nothing in it is a template.
fn is_plain(value: &Value) -> bool {
    match value {
        Value::String(text) => text.is_ascii() && !text.contains("{{") && !text.contains("{%"),
        Value::Number(number) => !number.is_f64(),
        Value::Array(items) => items.iter().all(is_plain),
        Value::Object(fields) => fields.iter().all(|(name, field)| name.is_ascii() && is_plain(field)),
        Value::Null | Value::Bool(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crate::testing::{Story, breaks, holds};
    use serde_json::json;

    const NAME: &str = "intent_kept";
    /// Of {"from":0}.
    const FROM_0: &str = "288b1a4d5f3ca8fbe5720f71a2f5ab25ab055c1748f016849064bf5cfd172924";
    const DIGEST: &str = "5f2b2a6a0c8f34c7b6b6e0f1e7a54d1b9f3a43e3b18f2c6c2b6d3f4a5b6c7d8e";

    /// Two attempts of the first step, which the plan does not have as it is.
    fn story(second: &str, class: &str) -> Story {
        let mut story = Story::killed_at("after_effect:0");
        Arc::make_mut(&mut story.evidence.case).steps[0].input = json!({ "path": "{{ inputs.path }}" });
        for (nth, (digest, class)) in [(DIGEST, "keyed"), (second, class)].into_iter().enumerate() {
            let data = json!({ "attempt": nth + 1, "effect": class, "input_sha256": digest, "tool": "fetch" });
            story.event("step_started", nth).data = data.to_string();
        }
        story
    }

    #[test]
    fn attempts_for_the_same_input_are_accepted_and_others_are_not() {
        holds(NAME, &Story::killed_at("after_effect:0"));
        holds(NAME, &story(DIGEST, "keyed"));
        breaks(NAME, &story("another", "keyed"), "the first attempt was for");
        breaks(NAME, &story(DIGEST, "once"), "the first attempt was \"keyed\"");
    }

    #[test]
    fn what_the_plan_has_as_it_is_is_digested_as_it_is() {
        let mut story = Story::killed_at("after_effect:1");
        story.event("step_started", 1).data = json!({ "effect": "pure", "input_sha256": DIGEST }).to_string();
        breaks(NAME, &story, "the plan's input is");
        story.event("step_started", 1).data = json!({ "effect": "pure", "input_sha256": FROM_0 }).to_string();
        story.event("step_started", 2).data = json!({ "effect": "pure", "input_sha256": FROM_0 }).to_string();
        holds(NAME, &story);
    }
}

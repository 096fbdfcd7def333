//! The promise of each class, counted in the world at every look at it: what is `keyed`, `verifiable` or `once` is
//! never there twice, and no step is done whose effect is not there, unless a person said that it was. What may have
//! happened and can be done `once` only is left to a person: in doubt, and not begun again without the word that it is
//! absent. No other class comes to that, and none without a cause.

use std::collections::BTreeMap;

use crate::case::promise::Promise;
use crate::case::world;
use crate::judge::verdict::Verdict;
use crate::look::evidence::{Baseline, Evidence, Expect};
use crate::look::snapshot::Snapshot;
use crate::look::tables::EventRow;

pub(super) fn check(evidence: &Evidence, _: &Baseline) -> Verdict {
    let mut complaints = Vec::new();
    for (when, snapshot) in evidence.snapshots() {
        for task in &evidence.tasks {
            let wrong = in_the_world(evidence, snapshot, task);
            complaints.extend(wrong.into_iter().map(|why| format!("{when}: {why}")));
        }
    }
    for task in &evidence.tasks {
        in_the_journal(evidence, task, &mut complaints);
    }
    complaints.dedup();
    Verdict::of(&complaints)
}

/// What is in the world more or less often than a look at the tables allows.
fn in_the_world(evidence: &Evidence, snapshot: &Snapshot, task: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    for row in snapshot.tables.steps_of(task) {
        let Some(promise) = evidence.case.kind.promise(row.idx).filter(|promise| *promise != Promise::Pure) else {
            continue;
        };
        let (found, idx, class) = (world::count(&snapshot.world, task, row.idx), row.idx, promise.word());
        if found > 1 {
            wrong.push(format!("the effect of step {idx} of {task}, which is {class}, is in the world {found} times"));
        }
        let happened = |event: &EventRow| {
            let about = event.kind == "doubt_resolved" && event.step == Some(idx);
            about && event.field("word") == "happened"
        };
        if row.status == "done" && found == 0 && !snapshot.tables.events_of(task).any(happened) {
            wrong.push(format!("step {idx} of {task} is done, and its effect is not in the world"));
        }
    }
    wrong
}

/// How a step stands by what the journal says of its attempts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Known {
    /// Nothing of it can be in the world.
    Nothing,
    /// An attempt is under way.
    Open,
    /// Nobody knows.
    Doubt,
}

fn in_the_journal(evidence: &Evidence, task: &str, complaints: &mut Vec<String>) {
    let undisturbed = evidence.runs.iter().all(|run| {
        let heard = matches!(run.expect, Expect::Heard);
        heard || run.kill.is_none() && run.expect != Expect::Faulted && !run.was_killed()
    });
    let mut steps = BTreeMap::new();
    for event in evidence.last().tables.events_of(task) {
        let Some(promise) = event.step.and_then(|step| evidence.case.kind.promise(step)) else { continue };
        let known = steps.entry(event.step).or_insert(Known::Nothing);
        let (what, class) = (event.describe(), promise.word());
        match (event.kind.as_str(), *known) {
            ("step_started", Known::Doubt) => {
                complaints.push(format!("{what} of {task}: begun again, and nobody has said that it is absent"));
                *known = Known::Open;
            }
            ("step_started", _) => *known = Known::Open,
            ("step_recovered", Known::Open) if promise == Promise::Once => {
                complaints.push(format!("{what} of {task}: an attempt that is {class} was cut, and is not in doubt"));
                *known = Known::Doubt;
            }
            ("step_in_doubt", _) => {
                if promise != Promise::Once {
                    complaints.push(format!("{what} of {task}: what is {class} need not be in doubt"));
                }
                if undisturbed {
                    complaints.push(format!("{what} of {task}: nothing was done to it"));
                }
                *known = Known::Doubt;
            }
            ("step_error", _) if promise == Promise::Once && event.field("unknown") == true => *known = Known::Doubt,
            ("doubt_resolved" | "step_finished" | "step_error" | "step_released", _) => *known = Known::Nothing,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::TASK;
    use crate::testing::{Story, breaks, holds};
    use serde_json::json;

    const NAME: &str = "promise_kept";

    fn file() -> String {
        world::file_of(TASK, 0)
    }

    /// An agent that has left what it may have done once to a person, who has said this.
    fn asked(word: &str) -> Story {
        let mut story = Story::of_promise(Promise::Once, "after_effect:0");
        let doubt = story.event("step_recovered", 0);
        (doubt.kind, doubt.data) = ("step_in_doubt".to_owned(), json!({ "known": "it was cut" }).to_string());
        story.insert_event("doubt_resolved", Some(0), "run_started", 1);
        story.event("doubt_resolved", 0).data = json!({ "by": "me", "why": "", "word": word }).to_string();
        story
    }

    #[test]
    fn each_class_may_do_what_it_has_promised() {
        for promise in [Promise::Pure, Promise::Keyed, Promise::Verifiable] {
            holds(NAME, &Story::of_promise(promise, "after_effect:0"));
        }
        holds(NAME, &asked("absent"));
        let mut pure = Story::of_promise(Promise::Pure, "after_effect:0");
        pure.last().world.clear();
        holds(NAME, &pure);
    }

    #[test]
    fn an_effect_that_is_there_twice_is_rejected_at_any_moment() {
        for promise in [Promise::Keyed, Promise::Verifiable, Promise::Once] {
            let mut story = Story::of_promise(promise, "after_effect:0");
            story.after(0).world.insert(file(), b"once\nonce\n".to_vec());
            breaks(NAME, &story, "in the world 2 times");
        }
    }

    #[test]
    fn a_step_that_is_done_without_its_effect_is_rejected_unless_a_person_said_so() {
        let mut story = Story::of_promise(Promise::Keyed, "before_effect:0");
        story.last().world.clear();
        breaks(NAME, &story, "is done, and its effect is not in the world");
        let mut story = asked("happened");
        story.last().world.clear();
        holds(NAME, &story);
    }

    /// Sent again, it was there once, because the kill had come before the first one: only the journal tells.
    #[test]
    fn what_is_done_once_and_sent_again_without_a_word_is_rejected() {
        let story = Story::of_promise(Promise::Once, "before_effect:0");
        breaks(NAME, &story, "was cut, and is not in doubt");
        let mut story = asked("absent");
        story.remove_event("doubt_resolved");
        breaks(NAME, &story, "nobody has said that it is absent");
    }

    #[test]
    fn a_doubt_without_a_cause_and_one_of_a_class_that_has_none_are_rejected() {
        let mut story = asked("absent");
        story.evidence.runs.remove(0);
        breaks(NAME, &story, "nothing was done to it");
        let mut story = Story::of_promise(Promise::Keyed, "after_effect:0");
        story.event("step_recovered", 0).kind = "step_in_doubt".to_owned();
        breaks(NAME, &story, "need not be in doubt");
    }
}

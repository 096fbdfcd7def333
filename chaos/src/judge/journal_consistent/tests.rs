use crate::testing::{Story, breaks, holds};

const NAME: &str = "journal_consistent";

#[test]
fn every_honest_story_is_accepted() {
    holds(NAME, &Story::clean());
    for point in ["before_effect:0", "after_effect:1", "after_commit:2"] {
        holds(NAME, &Story::killed_at(point));
    }
}

#[test]
fn unknown_kinds_are_none_of_its_business() {
    let mut story = Story::clean();
    story.insert_event("lease_renewed", None, "task_done", 0);
    holds(NAME, &story);
}

#[test]
fn a_step_that_is_left_open_is_rejected() {
    let mut story = Story::killed_at("after_effect:1");
    story.remove_event("step_recovered");
    breaks(NAME, &story, "step 1, started in the run run1, is still open");
    let mut story = Story::clean();
    story.remove_event("step_finished");
    breaks(NAME, &story, "leaves step 2 open");
}

/// A run that stops in good order gives its step back.
fn released() -> Story {
    let mut story = Story::clean();
    story.insert_event("step_released", Some(1), "step_finished", 1);
    story.event("step_released", 0).data = "{\"reason\":\"stopped\"}".to_owned();
    story.insert_event("step_started", Some(1), "step_finished", 1);
    story.event("step_started", 2).data = "{\"attempt\":2,\"tool\":\"summarize\"}".to_owned();
    story
}

#[test]
fn a_step_that_is_given_back_is_closed_and_starts_anew() {
    holds(NAME, &released());
    let mut story = released();
    story.event("step_released", 0).data = "{}".to_owned();
    breaks(NAME, &story, "gives no reason");
    let mut story = released();
    story.event("step_released", 0).run = "run1".to_owned();
    breaks(NAME, &story, "at work is run2");
    let mut story = Story::clean();
    story.insert_event("step_released", Some(1), "step_started", 1);
    breaks(NAME, &story, "closes a step that is not open");
}

/// Three polite stops failed a task, right after they had said that it goes on.
#[test]
fn a_limit_that_is_reached_by_stops_in_good_order_is_rejected() {
    let failed = |limit: u64| {
        let mut story = released();
        for (kind, step) in [("step_error", Some(1)), ("task_failed", Some(1))] {
            story.insert_event(kind, step, "step_finished", 1);
        }
        story.event("step_error", 0).data = "{\"error\":\"no\"}".to_owned();
        story.event("task_failed", 0).data = "{\"reason\":\"max_attempts\"}".to_owned();
        story.event("run_started", 0).data = format!("{{\"max_attempts\":{limit},\"recovered\":[]}}");
        story.last().tables.events.retain(|event| event.seq <= 9);
        story.evidence.end = crate::look::evidence::TaskEnd::Failed;
        story
    };
    holds(NAME, &failed(1));
    breaks(NAME, &failed(2), "comes after 1 attempts that count, the limit is 2");
    // A plan that allowed a step one attempt was accused of giving up early.
    let of_plan = |limit: u64| {
        let mut story = failed(3);
        std::sync::Arc::make_mut(&mut story.evidence.case).steps[1].said =
            serde_json::json!({ "retry": { "max_attempts": limit } });
        story
    };
    holds(NAME, &of_plan(1));
    breaks(NAME, &of_plan(4), "the limit is 4");
}

fn completed(events: &[(&str, &str)]) -> Story {
    let mut story = Story::clean();
    for (kind, data) in events {
        story.insert_event(kind, None, "task_done", 0);
        let last = story.last().tables.events.iter().filter(|event| event.kind == *kind).count();
        story.event(kind, last - 1).data = (*data).to_owned();
    }
    story
}

#[test]
fn a_completion_is_started_and_closed_like_a_step() {
    let (first, second) = (("completion_started", "{\"attempt\":1}"), ("completion_started", "{\"attempt\":2}"));
    let error = ("completion_error", "{\"error\":\"no\"}");
    holds(NAME, &completed(&[first]));
    holds(NAME, &completed(&[first, error, second]));
    breaks(NAME, &completed(&[first, second]), "the completion is still open");
    breaks(NAME, &completed(&[second]), "says attempt 2, it is number 1");
    breaks(NAME, &completed(&[error]), "has not begun");
    breaks(NAME, &completed(&[first, ("completion_error", "{}"), second]), "gives no error");
    breaks(NAME, &completed(&[("completion_recovered", "{}")]), "that is not open");
    breaks(NAME, &completed(&[first, ("completion_recovered", "{}")]), "what its own run has begun");
    breaks(NAME, &completed(&[first, ("run_started", "{}")]), "the completion, started in the run run2, is still open");
    let mut story = Story::clean();
    story.insert_event("completion_started", None, "step_started", 2);
    breaks(NAME, &story, "step 2 is not finished");
}

#[test]
fn a_step_that_is_closed_twice_is_rejected() {
    let mut story = Story::clean();
    story.insert_event("step_finished", Some(2), "task_done", 0);
    breaks(NAME, &story, "closes a step that is not open");
}

#[test]
fn steps_out_of_order_are_rejected() {
    let mut story = Story::clean();
    story.insert_event("step_started", Some(2), "step_started", 1);
    breaks(NAME, &story, "step 1 before it is not finished");
}

#[test]
fn a_wrong_attempt_number_and_a_wrong_tool_are_rejected() {
    let mut story = Story::clean();
    story.event("step_started", 1).data = "{\"attempt\":7,\"tool\":\"fetch\"}".to_owned();
    breaks(NAME, &story, "says attempt 7, it is number 1");
    breaks(NAME, &story, "names the tool \"fetch\"");
}

#[test]
fn events_of_a_run_that_is_not_at_work_are_rejected() {
    let mut story = Story::killed_at("after_commit:0");
    story.event("step_finished", 1).run = "run1".to_owned();
    breaks(NAME, &story, "is of the run run1, at work is run2");
    breaks(NAME, &story, "closes a step that the run run2 had started");
}

#[test]
fn a_second_end_and_what_follows_the_end_are_rejected() {
    let mut story = Story::clean();
    story.insert_event("task_done", None, "task_done", 0);
    breaks(NAME, &story, "comes after the end");
    breaks(NAME, &story, "has 2 task_done");
}

#[test]
fn a_missing_or_early_end_is_rejected() {
    let mut story = Story::clean();
    story.remove_event("task_done");
    breaks(NAME, &story, "has 0 task_done");
    let mut story = Story::clean();
    story.remove_event("task_done");
    story.insert_event("task_done", None, "step_finished", 2);
    breaks(NAME, &story, "step 2 is not finished");
}

#[test]
fn a_row_that_changes_later_is_rejected() {
    let mut story = Story::killed_at("after_commit:0");
    story.event("step_started", 0).ts = 99.0;
    breaks(NAME, &story, "was changed or removed");
}

#[test]
fn data_that_is_no_sorted_object_is_rejected() {
    let mut story = Story::clean();
    story.event("step_started", 0).data = "{\"tool\":\"fetch\",\"attempt\":1}".to_owned();
    breaks(NAME, &story, "not sorted");
    let mut story = Story::clean();
    story.event("task_done", 0).data = "[]".to_owned();
    breaks(NAME, &story, "not a JSON object");
}

#[test]
fn a_journal_without_its_first_event_is_rejected() {
    let mut story = Story::clean();
    story.remove_event("task_created");
    breaks(NAME, &story, "has no task_created");
}

/// A run that cannot know leaves its step in doubt; a person says a word, and another run goes on.
fn doubted(word: &str) -> Story {
    let mut story = Story::killed_at("after_effect:1");
    let doubt = story.event("step_recovered", 0);
    (doubt.kind, doubt.data) = ("step_in_doubt".to_owned(), "{\"known\":\"it was cut\"}".to_owned());
    story.insert_event("doubt_resolved", Some(1), "run_started", 1);
    story.event("doubt_resolved", 0).data = format!("{{\"by\":\"me\",\"why\":\"\",\"word\":\"{word}\"}}");
    story
}

#[test]
fn a_doubt_closes_a_step_and_one_word_ends_it() {
    holds(NAME, &doubted("absent"));
    breaks(NAME, &doubted("happened"), "the step is finished already");
    let mut story = doubted("absent");
    story.event("step_in_doubt", 0).data = "{}".to_owned();
    breaks(NAME, &story, "gives no known");
    let mut story = doubted("absent");
    story.remove_event("doubt_resolved");
    breaks(NAME, &story, "the step is in doubt");
    let mut story = doubted("absent");
    story.insert_event("doubt_resolved", Some(1), "run_started", 1);
    breaks(NAME, &story, "is about a step that is not in doubt");
}

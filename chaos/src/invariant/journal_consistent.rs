//! The journal is complete and in order: every `step_started` is closed by
//! exactly one `step_finished`, `step_recovered` or `step_error`, steps come one
//! after another, events belong to the run that is at work, and rows that were
//! seen once never change.

use std::collections::BTreeMap;

use crate::facts::{Baseline, EventRow, Evidence, TaskEnd};
use crate::plan::PlanCase;
use crate::verdict::Verdict;

pub(super) fn check(evidence: &Evidence, _: &Baseline) -> Verdict {
    let mut complaints = Vec::new();
    only_added(evidence, &mut complaints);
    for event in &evidence.last().tables.events {
        if let Err(why) = well_formed(event) {
            complaints.push(format!("{}: {why}", event.describe()));
        }
    }
    for task in &evidence.tasks {
        let mut reader = Reader::new(&evidence.case);
        for event in evidence.last().tables.events_of(task) {
            for why in reader.read(event) {
                complaints.push(format!("{} of {task}: {why}", event.describe()));
            }
        }
        for why in reader.end(evidence.end) {
            complaints.push(format!("the journal of {task}: {why}"));
        }
    }
    Verdict::of(&complaints)
}

/// Each look at the journal begins with all of the one before.
fn only_added(evidence: &Evidence, complaints: &mut Vec<String>) {
    let mut known: &[EventRow] = &[];
    for (when, snapshot) in evidence.snapshots() {
        let now = &snapshot.tables.events;
        let same = known.iter().zip(now).take_while(|(a, b)| a == b).count();
        if let Some(changed) = known.get(same) {
            complaints.push(format!("{when}: event {} was changed or removed", changed.describe()));
        }
        known = now;
    }
}

fn well_formed(event: &EventRow) -> Result<(), String> {
    let Keys(keys) = serde_json::from_str(&event.data).map_err(|e| format!("its data is no JSON object: {e}"))?;
    if !keys.is_sorted() {
        return Err(format!("the keys of its data are not sorted: {}", event.data));
    }
    Ok(())
}

/// The keys of a JSON object in the order in which they are written; a map
/// would have sorted them.
struct Keys(Vec<String>);

impl<'de> serde::Deserialize<'de> for Keys {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = Keys;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Keys, A::Error> {
                let mut keys = Vec::new();
                while let Some((key, _)) = map.next_entry::<String, serde::de::IgnoredAny>()? {
                    keys.push(key);
                }
                Ok(Keys(keys))
            }
        }
        from.deserialize_map(Visitor)
    }
}

/// How far one step has come by the journal.
#[derive(Default)]
struct Progress {
    open_in: Option<String>,
    finished: bool,
    attempts: u64,
}

/// Reads one task's journal from the start.
struct Reader<'a> {
    case: &'a PlanCase,
    steps: BTreeMap<usize, Progress>,
    created: bool,
    run: Option<String>,
    recovering: Option<String>,
    done: usize,
    failed: usize,
}

impl<'a> Reader<'a> {
    fn new(case: &'a PlanCase) -> Self {
        Self {
            case,
            steps: (0..case.steps.len()).map(|i| (i, Progress::default())).collect(),
            created: false,
            run: None,
            recovering: None,
            done: 0,
            failed: 0,
        }
    }

    /// Takes one event and says what is wrong with it.
    fn read(&mut self, event: &EventRow) -> Vec<String> {
        let mut wrong = Vec::new();
        let ended = self.done + self.failed > 0;
        if ended && event.kind != "task_retried" {
            wrong.push("comes after the end of the task".to_owned());
        }
        match event.kind.as_str() {
            "task_created" => self.task_created(event, &mut wrong),
            "run_started" => self.run_started(event, &mut wrong),
            "step_recovered" => self.step_recovered(event, &mut wrong),
            "step_started" => self.step_started(event, &mut wrong),
            "step_finished" => self.step_closed(event, true, &mut wrong),
            "step_error" => self.step_closed(event, false, &mut wrong),
            "task_done" => self.task_done(event, &mut wrong),
            "task_failed" => self.task_failed(event, &mut wrong),
            "task_retried" => self.failed = 0,
            _ => {}
        }
        wrong
    }

    fn task_created(&mut self, event: &EventRow, wrong: &mut Vec<String>) {
        if self.created || self.run.is_some() {
            wrong.push("is not the first event".to_owned());
        }
        self.created = true;
        let (said, is) = (event.field("steps"), self.case.steps.len());
        if said.as_u64() != Some(is as u64) {
            wrong.push(format!("says {said} steps, the plan has {is}"));
        }
    }

    fn run_started(&mut self, event: &EventRow, wrong: &mut Vec<String>) {
        if self.recovering.take().is_some_and(|run| run != event.run) {
            wrong.push("belongs to another run than the recovery before it".to_owned());
        }
        for (idx, step) in self.steps.iter().filter(|(_, step)| step.open_in.is_some()) {
            let run = step.open_in.as_deref().unwrap_or_default();
            wrong.push(format!("step {idx}, started in the run {run}, is still open"));
        }
        self.run = Some(event.run.clone());
    }

    fn step_recovered(&mut self, event: &EventRow, wrong: &mut Vec<String>) {
        self.recovering = Some(event.run.clone());
        self.close(event, wrong);
    }

    fn step_started(&mut self, event: &EventRow, wrong: &mut Vec<String>) {
        self.of_this_run(event, wrong);
        let Some(idx) = event.step.filter(|idx| self.steps.contains_key(idx)) else {
            return wrong.push("names no step of the plan".to_owned());
        };
        self.names_the_tool(event, idx, wrong);
        if let Some((earlier, _)) = self.steps.range(..idx).find(|(_, step)| !step.finished) {
            wrong.push(format!("step {earlier} before it is not finished"));
        }
        let step = self.steps.entry(idx).or_default();
        if step.open_in.is_some() {
            wrong.push("the step is still open".to_owned());
        }
        step.open_in = Some(event.run.clone());
        step.attempts += 1;
        let (said, is) = (event.field("attempt"), step.attempts);
        if said.as_u64() != Some(is) {
            wrong.push(format!("says attempt {said}, it is number {is}"));
        }
    }

    fn step_closed(&mut self, event: &EventRow, finished: bool, wrong: &mut Vec<String>) {
        self.of_this_run(event, wrong);
        if let (true, Some(idx)) = (finished, event.step) {
            self.names_the_tool(event, idx, wrong);
        }
        let Some(run) = self.close(event, wrong) else { return };
        if run != event.run {
            wrong.push(format!("closes a step that the run {run} had started"));
        }
        if let Some(step) = event.step.and_then(|idx| self.steps.get_mut(&idx)) {
            step.finished = finished;
        }
    }

    /// Closes the event's step; the run that had started it.
    fn close(&mut self, event: &EventRow, wrong: &mut Vec<String>) -> Option<String> {
        let step = event.step.and_then(|idx| self.steps.get_mut(&idx));
        let open = step.and_then(|step| step.open_in.take());
        if open.is_none() {
            wrong.push("closes a step that is not open".to_owned());
        }
        open
    }

    fn task_done(&mut self, event: &EventRow, wrong: &mut Vec<String>) {
        self.of_this_run(event, wrong);
        self.done += 1;
        for (idx, _) in self.steps.iter().filter(|(_, step)| !step.finished) {
            wrong.push(format!("step {idx} is not finished"));
        }
    }

    fn task_failed(&mut self, event: &EventRow, wrong: &mut Vec<String>) {
        self.of_this_run(event, wrong);
        self.failed += 1;
        if event.field("reason").as_str().is_none_or(str::is_empty) {
            wrong.push("gives no reason".to_owned());
        }
        let step = event.step.and_then(|idx| self.steps.get(&idx));
        if step.is_none_or(|step| step.finished || step.open_in.is_some()) {
            wrong.push("is about a step that is open, finished or unknown".to_owned());
        }
    }

    fn of_this_run(&self, event: &EventRow, wrong: &mut Vec<String>) {
        if self.run.as_ref() != Some(&event.run) {
            let at_work = self.run.as_deref().unwrap_or("none");
            wrong.push(format!("is of the run {}, at work is {at_work}", event.run));
        }
    }

    fn names_the_tool(&self, event: &EventRow, idx: usize, wrong: &mut Vec<String>) {
        let said = event.field("tool");
        if said.as_str() != self.case.steps.get(idx).map(|step| step.tool.as_str()) {
            wrong.push(format!("names the tool {said}, which is not the plan's"));
        }
    }

    fn end(&self, end: TaskEnd) -> Vec<String> {
        let mut wrong = Vec::new();
        if !self.created {
            wrong.push("has no task_created".to_owned());
        }
        let (done, failed) = match end {
            TaskEnd::Done => (1, 0),
            TaskEnd::Failed => (0, 1),
        };
        if (self.done, self.failed) != (done, failed) {
            wrong.push(format!(
                "has {} task_done and {} task_failed, must have {done} and {failed}",
                self.done, self.failed
            ));
        }
        for (idx, _) in self.steps.iter().filter(|(_, step)| step.open_in.is_some()) {
            wrong.push(format!("leaves step {idx} open"));
        }
        wrong
    }
}

#[cfg(test)]
mod tests {
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
        breaks(NAME, &story, "no JSON object");
    }

    #[test]
    fn a_journal_without_its_first_event_is_rejected() {
        let mut story = Story::clean();
        story.remove_event("task_created");
        breaks(NAME, &story, "has no task_created");
    }
}

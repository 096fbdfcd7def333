//! The journal is complete and in order: every `step_started` is closed by exactly one `step_finished`,
//! `step_recovered`, `step_error`, `step_released` or `step_in_doubt`, steps come one after another, events belong to
//! the run that is at work, and rows that were seen once never change. A doubt and a question end with one word about
//! them, which comes from no run; a step that is skipped, or failed and left behind, is settled like one that is done.
//!
//! A task with a completion may journal its attempts like those of a step: every `completion_started` is closed by one
//! `task_done`, `completion_error` or `completion_recovered`. Kinds that are not known are nobody's business.

use std::collections::BTreeMap;

use self::step::{Step, gives};
use crate::case::plan::{PlanCase, StepSpec};
use crate::judge::verdict::Verdict;
use crate::look::evidence::{Baseline, Evidence, TaskEnd};
use crate::look::tables::EventRow;

mod step;

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
    let Keys(keys) = serde_json::from_str(&event.data).map_err(|e| format!("its data is not a JSON object: {e}"))?;
    if !keys.is_sorted() {
        return Err(format!("the keys of its data are not sorted: {}", event.data));
    }
    Ok(())
}

/// The keys of a JSON object in the order in which they are written; a map would have sorted them.
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

/// How far one step, or the completion, has come by the journal.
#[derive(Default)]
struct Progress {
    open_in: Option<String>,
    /// Done, skipped, or failed and left behind.
    finished: bool,
    /// What it waits for, and what is known of it.
    stand: Step,
    /// Whether a person has to say what became of it.
    doubted: bool,
    attempts: u64,
    /// Attempts that do not count against the limit: they were given back in good order, or forgiven by a retry.
    uncounted: u64,
}

impl Progress {
    /// What is wrong with an attempt that begins now in the run of `event`.
    fn start(&mut self, event: &EventRow, what: &str) -> Vec<String> {
        let mut wrong = Vec::new();
        if self.open_in.replace(event.run.clone()).is_some() {
            wrong.push(format!("{what} is still open"));
        }
        if self.doubted {
            wrong.push(format!("{what} is in doubt"));
        }
        if self.finished {
            wrong.push(format!("{what} is finished already"));
        }
        self.attempts += 1;
        let (said, is) = (event.field("attempt"), self.attempts);
        if said.as_u64() != Some(is) {
            wrong.push(format!("says attempt {said}, it is number {is}"));
        }
        wrong
    }
}

/// Reads one task's journal from the start.
struct Reader<'a> {
    case: &'a PlanCase,
    steps: BTreeMap<usize, Progress>,
    created: bool,
    run: Option<String>,
    recovering: Option<String>,
    /// The process by which a person spoke last; it is not a run.
    person: Option<String>,
    completion: Progress,
    /// The attempt limit of the run that is at work, where it says so.
    limit: Option<u64>,
    done: usize,
    failed: usize,
    cancelled: bool,
}

impl<'a> Reader<'a> {
    fn new(case: &'a PlanCase) -> Self {
        Self {
            case,
            steps: (0..case.steps.len()).map(|i| (i, Progress::default())).collect(),
            created: false,
            run: None,
            recovering: None,
            person: None,
            completion: Progress::default(),
            limit: None,
            done: 0,
            failed: 0,
            cancelled: false,
        }
    }

    /// Takes one event and says what is wrong with it.
    fn read(&mut self, event: &EventRow) -> Vec<String> {
        let mut wrong = Vec::new();
        let ended = self.done + self.failed > 0 || self.cancelled;
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
            "step_released" => self.step_released(event, &mut wrong),
            "step_in_doubt" => self.step_in_doubt(event, &mut wrong),
            "doubt_resolved" => self.doubt_resolved(event, &mut wrong),
            "step_waiting" => self.step_waiting(event, &mut wrong),
            "answer_given" => self.answer_given(event, &mut wrong),
            "step_skipped" => self.step_skipped(event, &mut wrong),
            "step_failed" => self.step_failed(event, &mut wrong),
            "step_checkpoint" => self.step_checkpoint(event, &mut wrong),
            "completion_started" => self.completion_started(event, &mut wrong),
            "completion_error" => self.completion_error(event, &mut wrong),
            "completion_recovered" => self.completion_recovered(event, &mut wrong),
            "task_done" => self.task_done(event, &mut wrong),
            "task_failed" => self.task_failed(event, &mut wrong),
            "task_retried" => self.task_retried(),
            "task_cancelled" => self.task_cancelled(event, &mut wrong),
            _ => {}
        }
        if let Some(step) = self.step(event) {
            step.stand.read(event, &mut wrong);
        }
        wrong
    }

    fn step(&mut self, event: &EventRow) -> Option<&mut Progress> {
        event.step.and_then(|idx| self.steps.get_mut(&idx))
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
        for (idx, step) in &self.steps {
            if let Some(run) = &step.open_in {
                wrong.push(format!("step {idx}, started in the run {run}, is still open"));
            }
        }
        if let Some(run) = &self.completion.open_in {
            wrong.push(format!("the completion, started in the run {run}, is still open"));
        }
        self.run = Some(event.run.clone());
        self.limit = event.field("max_attempts").as_u64();
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
        self.is_next(idx, wrong);
        wrong.extend(self.steps.entry(idx).or_default().start(event, "the step"));
    }

    fn is_next(&self, idx: usize, wrong: &mut Vec<String>) {
        if let Some((earlier, _)) = self.steps.range(..idx).find(|(_, step)| !step.finished) {
            wrong.push(format!("step {earlier} before it is not finished"));
        }
    }

    /// The event's step, which is next and of which nothing is under way.
    fn idle(&mut self, event: &EventRow, wrong: &mut Vec<String>) -> Option<&mut Progress> {
        self.is_next(event.step.unwrap_or_default(), wrong);
        let idle = self.step(event).filter(|step| !step.finished && step.open_in.is_none());
        if idle.is_none() {
            wrong.push("is about a step that is open, finished or unknown".to_owned());
        }
        idle
    }

    fn step_waiting(&mut self, event: &EventRow, wrong: &mut Vec<String>) {
        self.of_this_run(event, wrong);
        self.idle(event, wrong);
    }

    fn answer_given(&mut self, event: &EventRow, wrong: &mut Vec<String>) {
        self.person = Some(event.run.clone());
        self.idle(event, wrong);
    }

    fn step_skipped(&mut self, event: &EventRow, wrong: &mut Vec<String>) {
        self.of_this_run(event, wrong);
        let Some(step) = self.idle(event, wrong) else { return };
        step.finished = true;
        if step.attempts > 0 {
            wrong.push("leaves out what was begun".to_owned());
        }
    }

    /// A failure that the task outlives.
    fn step_failed(&mut self, event: &EventRow, wrong: &mut Vec<String>) {
        self.of_this_run(event, wrong);
        gives(event, "reason", wrong);
        if let Some(step) = self.idle(event, wrong) {
            step.finished = true;
        }
    }

    fn step_checkpoint(&mut self, event: &EventRow, wrong: &mut Vec<String>) {
        if self.step(event).and_then(|step| step.open_in.as_ref()) != Some(&event.run) {
            wrong.push("is of a step that its run has not under way".to_owned());
        }
    }

    fn task_cancelled(&mut self, event: &EventRow, wrong: &mut Vec<String>) {
        gives(event, "by", wrong);
        self.cancelled = true;
        wrong.extend(self.left_open());
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
        if let Some(step) = self.step(event) {
            step.finished = finished;
        }
    }

    /// Closes the event's step; the run that had started it.
    fn close(&mut self, event: &EventRow, wrong: &mut Vec<String>) -> Option<String> {
        let open = self.step(event).and_then(|step| step.open_in.take());
        if open.is_none() {
            wrong.push("closes a step that is not open".to_owned());
        }
        open
    }

    /// An attempt that ended in good order before its effect began.
    fn step_released(&mut self, event: &EventRow, wrong: &mut Vec<String>) {
        self.step_closed(event, false, wrong);
        if let Some(step) = self.step(event) {
            step.uncounted += 1;
        }
    }

    /// An attempt of which nobody knows what became of it; where its run has died, the next one says so without
    /// beginning. A run that would have to send something else than before does not begin the attempt.
    fn step_in_doubt(&mut self, event: &EventRow, wrong: &mut Vec<String>) {
        let is_early = |step: &mut Progress| step.open_in.is_none() && step.stand.may_have_happened();
        if !self.step(event).is_some_and(is_early) {
            self.close(event, wrong);
        }
        if let Some(step) = self.step(event) {
            step.doubted = true;
        }
    }

    /// A person's word.
    fn doubt_resolved(&mut self, event: &EventRow, wrong: &mut Vec<String>) {
        self.person = Some(event.run.clone());
        let Some(step) = self.step(event).filter(|step| step.doubted) else {
            return wrong.push("is about a step that is not in doubt".to_owned());
        };
        step.doubted = false;
        step.finished = event.field("word") == "happened";
    }

    fn completion_started(&mut self, event: &EventRow, wrong: &mut Vec<String>) {
        self.of_this_run(event, wrong);
        self.all_finished(wrong);
        wrong.extend(self.completion.start(event, "the completion"));
    }

    /// Closes the completion's attempt, which only the run that began it can do.
    fn completion_error(&mut self, event: &EventRow, wrong: &mut Vec<String>) {
        self.of_this_run(event, wrong);
        gives(event, "error", wrong);
        if self.completion.open_in.take().as_ref() != Some(&event.run) {
            wrong.push("closes a completion that its run has not begun".to_owned());
        }
    }

    fn completion_recovered(&mut self, event: &EventRow, wrong: &mut Vec<String>) {
        self.recovering = Some(event.run.clone());
        match self.completion.open_in.take() {
            None => wrong.push("recovers a completion that is not open".to_owned()),
            Some(run) if run == event.run => wrong.push("recovers what its own run has begun".to_owned()),
            Some(_) => {}
        }
    }

    fn task_done(&mut self, event: &EventRow, wrong: &mut Vec<String>) {
        self.of_this_run(event, wrong);
        self.done += 1;
        self.all_finished(wrong);
        if self.completion.open_in.take().is_some_and(|run| run != event.run) {
            wrong.push("closes a completion that its run has not begun".to_owned());
        }
    }

    fn all_finished(&self, wrong: &mut Vec<String>) {
        let open = self.steps.iter().filter(|(_, step)| !step.finished);
        wrong.extend(open.map(|(idx, _)| format!("step {idx} is not finished")));
    }

    /// A failed task gets a fresh budget.
    fn task_retried(&mut self) {
        self.failed = 0;
        for progress in self.steps.values_mut().chain([&mut self.completion]) {
            progress.uncounted = progress.attempts;
        }
    }

    fn task_failed(&mut self, event: &EventRow, wrong: &mut Vec<String>) {
        self.of_this_run(event, wrong);
        self.failed += 1;
        gives(event, "reason", wrong);
        let about = match event.step {
            Some(idx) => self.steps.get(&idx),
            None => Some(&self.completion).filter(|completion| completion.attempts > 0),
        };
        let Some(about) = about.filter(|about| !about.finished && about.open_in.is_none()) else {
            return wrong.push("is about a step that is open, finished or unknown".to_owned());
        };
        let counted = about.attempts - about.uncounted;
        // What the plan says comes first.
        let own = event.step.and_then(|idx| self.case.steps.get(idx)).and_then(StepSpec::max_attempts);
        let limit = own.or(self.limit).filter(|limit| event.field("reason") == "max_attempts" && counted < *limit);
        if let Some(limit) = limit {
            wrong.push(format!("comes after {counted} attempts that count, the limit is {limit}"));
        }
    }

    fn of_this_run(&self, event: &EventRow, wrong: &mut Vec<String>) {
        let fails = matches!(event.kind.as_str(), "task_failed" | "step_failed");
        let by_person = fails && self.person.as_ref() == Some(&event.run);
        if self.run.as_ref() != Some(&event.run) && !by_person {
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
        wrong.extend(self.left_open());
        wrong
    }

    fn left_open(&self) -> Vec<String> {
        let open = self.steps.iter().filter(|(_, step)| step.open_in.is_some());
        let steps = open.map(|(idx, _)| format!("leaves step {idx} open"));
        steps.chain(self.completion.open_in.as_ref().map(|_| "leaves the completion open".to_owned())).collect()
    }
}

#[cfg(test)]
mod tests;

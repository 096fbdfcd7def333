//! Every process that got the lock has its own `run_started`; a process that was refused, or found the task finished,
//! has none.

use std::collections::BTreeSet;

use crate::judge::verdict::Verdict;
use crate::look::evidence::{Baseline, Evidence, Expect};
use crate::look::tables::Tables;

pub(super) fn check(evidence: &Evidence, _: &Baseline) -> Verdict {
    let mut complaints = Vec::new();
    for task in &evidence.tasks {
        of_task(evidence, task, &mut complaints);
        run_ids_differ(&evidence.last().tables, task, &mut complaints);
    }
    Verdict::of(&complaints)
}

/// Runs between two looks at the folder are judged together: usually that is one run, in a race it is many.
fn of_task(evidence: &Evidence, task: &str, complaints: &mut Vec<String>) {
    let mut before = &evidence.created.tables;
    let mut group: Vec<usize> = Vec::new();
    for (i, run) in evidence.runs.iter().enumerate() {
        if run.task == task {
            group.push(i);
        }
        if let Some(after) = &run.after {
            let found = count(&after.tables, task).saturating_sub(count(before, task));
            let finished = is_finished(before, task);
            let (least, most) = bounds(evidence, &group, finished);
            if !(least..=most).contains(&found) {
                let labels: Vec<String> = group.iter().map(|&i| evidence.label(i)).collect();
                let labels = if labels.is_empty() { "other tasks' runs".to_owned() } else { labels.join(", ") };
                complaints.push(format!("{labels}: {found} run_started of {task}, must be {least} to {most}"));
            }
            group.clear();
            before = &after.tables;
        }
    }
}

fn bounds(evidence: &Evidence, group: &[usize], finished: bool) -> (usize, usize) {
    let mut least = 0;
    let mut most = 0;
    let mut contends = false;
    for &i in group {
        match evidence.runs[i].got_the_lock(finished) {
            Some(true) => (least, most) = (least + 1, most + 1),
            Some(false) => {}
            None if evidence.runs[i].expect == Expect::Contends => contends = true,
            None => most += 1,
        }
    }
    // Of several at once one runs, and then the task is finished.
    if contends { (least + 1, most + 1) } else { (least, most) }
}

fn count(tables: &Tables, task: &str) -> usize {
    let begun = tables.events_of(task).filter(|event| event.kind == "run_started");
    begun.count()
}

fn is_finished(tables: &Tables, task: &str) -> bool {
    let status = tables.task(task).map(|row| row.status.as_str());
    matches!(status, Some("done" | "failed"))
}

fn run_ids_differ(tables: &Tables, task: &str, complaints: &mut Vec<String>) {
    let mut seen = BTreeSet::new();
    for event in tables.events_of(task).filter(|event| event.kind == "run_started") {
        if event.run.is_empty() || !seen.insert(&event.run) {
            complaints.push(format!("{} of {task} has a run id that is not its own", event.describe()));
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{Story, breaks, holds};

    #[test]
    fn one_for_each_process_is_accepted() {
        holds("one_run_started", &Story::clean());
        holds("one_run_started", &Story::killed_at("after_commit:2"));
    }

    #[test]
    fn a_resume_without_run_started_is_rejected() {
        let mut story = Story::killed_at("after_effect:1");
        story.remove_event("run_started");
        breaks("one_run_started", &story, "0 run_started of t1, must be 1 to 1");
    }

    #[test]
    fn a_process_that_announces_itself_twice_is_rejected() {
        let mut story = Story::clean();
        story.insert_event("run_started", None, "task_done", 0);
        breaks("one_run_started", &story, "2 run_started");
    }

    #[test]
    fn a_run_that_borrows_the_id_of_the_dead_is_rejected() {
        let mut story = Story::killed_at("after_effect:1");
        story.event("run_started", 1).run = "run1".to_owned();
        breaks("one_run_started", &story, "not its own");
    }
}

//! The report is the last effect of an inbox task: published whole, once every step is done and before the task is. At
//! no kill it stands there in part, and in the end it equals that of a run without a crash.
//!
//! A case without a report holds trivially.

use serde_json::Value;

use crate::judge::verdict::Verdict;
use crate::look::evidence::{Baseline, Evidence, TaskEnd};
use crate::look::snapshot::Snapshot;

pub(super) fn check(evidence: &Evidence, baseline: &Baseline) -> Verdict {
    let mut complaints = Vec::new();
    for task in &evidence.tasks {
        let Some(name) = evidence.case.kind.report(task) else { continue };
        let must = baseline.last().world.get(&name).map(Vec::as_slice);
        // Also a look at a folder without any task: then there is no report either.
        let runs = evidence.runs.iter().enumerate();
        for (i, look) in runs.filter_map(|(i, run)| Some((i, run.after.as_ref()?))) {
            let why = at(look, task, &name, must);
            complaints.extend(why.into_iter().map(|why| format!("after {}: {why}", evidence.label(i))));
        }
        if evidence.end == TaskEnd::Done && !evidence.last().world.contains_key(&name) {
            complaints.push(format!("in the end there is no report of {task}"));
        }
    }
    Verdict::of(&complaints)
}

/// What is wrong with a task's report at one moment.
fn at(look: &Snapshot, task: &str, name: &str, must: Option<&[u8]>) -> Vec<String> {
    let mut wrong = Vec::new();
    let status = look.tables.task(task).map_or("not stored", |row| &row.status);
    let Some(report) = look.world.get(name) else {
        if status == "done" {
            wrong.push(format!("{task} is done and `{name}` is not there"));
        }
        return wrong;
    };
    let open: Vec<usize> = look.tables.steps_of(task).filter(|row| row.status != "done").map(|row| row.idx).collect();
    if status == "not stored" || !open.is_empty() {
        wrong.push(format!("`{name}` is there while {task} is {status} and its steps {open:?} are not done"));
    }
    let outputs: Option<Vec<Value>> = look.tables.steps_of(task).map(|row| row.output.clone()).collect();
    match serde_json::from_slice::<Value>(report) {
        Err(error) => wrong.push(format!("`{name}` is not whole JSON ({} bytes): {error}", report.len())),
        Ok(list) if outputs.is_some_and(|outputs| list != Value::Array(outputs)) => {
            wrong.push(format!("`{name}` is not the list of the committed results: {list}"));
        }
        Ok(_) => {}
    }
    match must {
        None => wrong.push(format!("`{name}` is not there in a run without a crash")),
        Some(must) if must != report.as_slice() => {
            wrong.push(format!(
                "`{name}` is not that of a run without a crash ({} bytes, {} there)",
                report.len(),
                must.len()
            ));
        }
        Some(_) => {}
    }
    wrong
}

#[cfg(test)]
mod tests {
    use crate::testing::{Story, breaks, holds};

    const NAME: &str = "report_whole";

    #[test]
    fn a_report_that_appears_whole_after_the_last_step_is_accepted() {
        holds(NAME, &Story::killed_at("after_effect:1"));
        holds(NAME, &Story::inbox());
        for point in ["before_effect:0", "after_commit:2", "report.published"] {
            holds(NAME, &Story::inbox_killed_at(point));
        }
    }

    #[test]
    fn a_partial_report_at_a_kill_is_rejected_even_if_it_is_whole_in_the_end() {
        let mut story = Story::inbox_killed_at("report.published");
        let report = story.after(0).world.get_mut("report.json").expect("a report");
        report.truncate(report.len() / 2);
        breaks(NAME, &story, "not whole JSON");
        breaks(NAME, &story, "not that of a run without a crash");
    }

    #[test]
    fn a_report_before_its_time_is_rejected() {
        let mut story = Story::inbox_killed_at("after_commit:1");
        let report = story.last().world["report.json"].clone();
        story.after(0).world.insert("report.json".to_owned(), report);
        breaks(NAME, &story, "its steps [2] are not done");
    }

    #[test]
    fn a_task_that_is_done_without_its_report_is_rejected() {
        let mut story = Story::inbox_killed_at("after_commit:2");
        story.last().world.clear();
        breaks(NAME, &story, "`report.json` is not there");
        breaks(NAME, &story, "in the end there is no report");
    }

    #[test]
    fn another_report_than_the_results_or_than_the_baselines_is_rejected() {
        let mut story = Story::inbox();
        story.last().world.insert("report.json".to_owned(), b"[]\n".to_vec());
        breaks(NAME, &story, "not the list of the committed results");

        let mut story = Story::inbox();
        story.last().world.get_mut("report.json").expect("a report").push(b'\n');
        breaks(NAME, &story, "not that of a run without a crash");

        let mut story = Story::inbox();
        story.baseline_world().clear();
        breaks(NAME, &story, "is not there in a run without");
    }
}

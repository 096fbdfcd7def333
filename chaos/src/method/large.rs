//! Sizes that others are too small for: outputs beyond a megabyte, indexes of two
//! digits, a plan of three hundred steps and a journal of thousands of rows.

use std::sync::Arc;

use serde_json::json;

use crate::agent::process::Env;
use crate::case::TASK;
use crate::case::plan::PlanCase;
use crate::error::LabError;
use crate::judge::verdict::Verdict;
use crate::judge::{self, told};
use crate::look::evidence::{Expect, TaskEnd};
use crate::play::method::Method;
use crate::play::prepared::{Prepared, baseline_of, clean_run};
use crate::play::scenario::{Played, Scenario, play_schedule};
use crate::play::stage::Stage;
use crate::schedule::{CrashPoint, KillSchedule};

/// See the file's head.
pub(super) const METHOD: Method = Method {
    name: "large",
    about: "outputs beyond a megabyte, twelve and three hundred steps, a journal of thousands of rows",
    scenarios,
};

/// Three lines of so many bytes are beyond a megabyte together.
const LINE: usize = 400_000;

const STEPS: usize = 300;

/// So many tasks of that many steps journal more than two thousand rows.
const TASKS: usize = 4;

/// The built-in plan stands for all: the sizes are the agent's business, not a plan's.
fn scenarios(ready: &Arc<Prepared>) -> Result<Vec<Scenario>, LabError> {
    if !ready.case.is_built_in() {
        return Ok(Vec::new());
    }
    let sizes = [
        ("megabyte", megabyte()?, 1, [("after_effect", 0), ("after_effect", 2)].as_slice()),
        ("twelve steps", twelve()?, 1, &[("after_effect", 9), ("after_effect", 11)]),
        ("three hundred steps", three_hundred()?, TASKS, &[("after_effect", STEPS / 2)]),
    ];
    let scenario = |(what, case, tasks, points): (&str, PlanCase, usize, &[(&str, usize)])| {
        let points: Vec<CrashPoint> = points.iter().map(|(site, step)| CrashPoint::new(site, *step)).collect();
        let schedule = KillSchedule::points(&points);
        let (case, kills) = (Arc::new(case), schedule.clone());
        let title = format!("{what}: {tasks} task(s), killed at {schedule}, resumed");
        Scenario::new(METHOD.name, ready, what, title, move |ready| play(ready, &case, tasks, &kills)).kills(schedule)
    };
    Ok(sizes.into_iter().map(scenario).collect())
}

fn play(ready: &Prepared, case: &Arc<PlanCase>, tasks: usize, kills: &KillSchedule) -> Result<Played, LabError> {
    let clean = clean_run(&ready.lab, case, &[TASK.to_owned()], &Env::new())?;
    let clean_outcome = judge::clean_outcome(&clean);
    let mut baseline = baseline_of(clean, None);
    // Of the further tasks there is no clean run to compare with.
    baseline.comparable = vec![tasks == 1; case.steps.len()];
    let names: Vec<String> = (1..=tasks).map(|number| format!("t{number}")).collect();
    let mut stage = Stage::new(&ready.lab, case, &names)?;
    play_schedule(&mut stage, TASK, kills, &[], &|_| Vec::new())?;
    for task in &names[1..] {
        stage.run(task, None, Expect::Ends(0), &[])?;
    }
    let mut ask = |word| {
        let running = stage.sandbox.start(&stage.lab.target, &[word, TASK], &[])?;
        stage.sandbox.finish(running)
    };
    let (status, export) = (ask("status")?, ask("export")?);
    let evidence = stage.close(TaskEnd::Done);
    let tables = &evidence.last().tables;
    let mut wrong = told::status(&status, tables, TASK);
    wrong.extend(told::export(&export, tables, TASK));
    let rows = tables.events.len();
    let mut played = Played::judged(evidence, &baseline);
    played.and("clean_outcome", clean_outcome);
    played.and("told_true", Verdict::of(&wrong));
    played.note = Some(format!("{rows} events"));
    Ok(played)
}

fn case(name: &str, steps: &[serde_json::Value], text: String) -> Result<PlanCase, LabError> {
    let plan = json!({ "goal": format!("Stand {name}"), "steps": steps });
    let mut case = PlanCase::parse(name, &plan.to_string())?;
    case.files.insert("input/notes.txt".to_owned(), text.into_bytes());
    Ok(case)
}

fn fetch() -> serde_json::Value {
    json!({ "tool": "fetch", "input": { "path": "input/notes.txt" } })
}

fn megabyte() -> Result<PlanCase, LabError> {
    let steps = [
        fetch(),
        json!({ "tool": "summarize", "input": { "from": 0 } }),
        json!({ "tool": "write_artifact", "input": { "from": 1 } }),
    ];
    let line = |letter: &str| format!("{}\n", letter.repeat(LINE / letter.len()));
    case("a megabyte", &steps, ["a", "ü", "€", "z"].map(line).concat())
}

/// Ten results of one task: the keys of two of them have two digits.
fn twelve() -> Result<PlanCase, LabError> {
    let mut steps = vec![fetch(), json!({ "tool": "summarize", "input": { "from": 0 } })];
    steps.resize(12, json!({ "tool": "write_artifact", "input": { "from": 1 } }));
    case("twelve steps", &steps, "one\ntwo\n".to_owned())
}

fn three_hundred() -> Result<PlanCase, LabError> {
    case("three hundred steps", &vec![fetch(); STEPS], "short\n".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cases_are_as_large_as_they_are_said_to_be() {
        let large = megabyte().expect("a plan");
        assert!(large.files.values().all(|text| text.len() > 1 << 20 && str::from_utf8(text).is_ok()));
        assert_eq!(twelve().expect("a plan").steps.len(), 12);
        assert_eq!(three_hundred().expect("a plan").steps.len(), STEPS);
    }
}

//! Between kill and resume the plan file, the input files and the model's answer change: committed outputs stand,
//! uncommitted ones are made anew, and nothing is planned again.

use std::sync::Arc;

use crate::agent::process::{Ended, Env};
use crate::case::plan::PlanCase;
use crate::case::{TASK, inbox};
use crate::contract::PLAN_FILE;
use crate::error::LabError;
use crate::judge::verdict::Verdict;
use crate::look::evidence::{Baseline, Expect, TaskEnd};
use crate::play::method::Method;
use crate::play::prepared::{Prepared, baseline_of, clean_run};
use crate::play::scenario::{Played, Scenario};
use crate::schedule::{CrashPoint, Kill, KillSchedule};
use crate::server::model::ModelServer;

/// See the file's head.
pub(super) const METHOD: Method = Method {
    name: "drift",
    about: "between kill and resume the plan file, the input and the model's answer change",
    scenarios,
};

/// What the input file begins with after the change.
const NEW_LINE: &str = "A line that came later\n";

/// What somebody else wrote.
const FOREIGN: &[u8] = b"this is nobody's summary\n";

/// How old the files are when the task is resumed, in seconds; or from how far ahead, where a clock was set back.
const AGES: [(&str, i64); 2] = [("a week old", 7 * 86_400), ("from an hour ahead", -3_600)];

/// What the model says before and after the change.
const ANSWERS: [&str; 2] = ["the first answer", "the second answer"];

fn scenarios(ready: &Arc<Prepared>) -> Result<Vec<Scenario>, LabError> {
    let mut all = Vec::new();
    for point in points(ready) {
        all.push(if ready.case.kind.is_created() { plan_drift(ready, &point) } else { late_notes(ready, &point) });
    }
    all.extend(foreign_results(ready));
    if ready.case.example_of.is_none() {
        all.extend(of_last_step(ready).iter().flat_map(|point| AGES.map(|(word, age)| aged(ready, point, word, age))));
    }
    if let Some(drift) = input_drift(ready)?.map(Arc::new) {
        all.extend(points(ready).iter().map(|point| world_drift(ready, &drift, point)));
    }
    if let Some(drift) = model_drift(ready)?.map(Arc::new) {
        all.extend(points(ready).iter().map(|point| world_drift(ready, &drift, point)));
    }
    Ok(all)
}

/// Every point of the last step that a clean run has passed: at some of them a file is half made.
fn of_last_step(ready: &Prepared) -> Vec<CrashPoint> {
    let last = Some(ready.last_step());
    ready.discovery.clean.iter().filter(|point| point.step == last).cloned().collect()
}

/// Time passes between kill and resume: the age of a file does not say who it belongs to.
fn aged(ready: &Arc<Prepared>, point: &CrashPoint, word: &str, age: i64) -> Scenario {
    let title = format!("killed at {point}, all files {word}, resumed");
    let schedule = KillSchedule::points([point]);
    let what = format!("{word}, {schedule}");
    let point = point.clone();
    let play = move |ready: &Prepared| {
        let mut stage = ready.stage()?;
        stage.run(TASK, Some(&Kill::Point(point.clone())), Expect::Dies, &[])?;
        stage.age(age)?;
        stage.run(TASK, None, Expect::Ends(0), &[])?;
        Ok(Played::judged(stage.close(TaskEnd::Done), &ready.baseline))
    };
    Scenario::new(METHOD.name, ready, &what, title, play).kills(schedule)
}

fn points(ready: &Prepared) -> Vec<CrashPoint> {
    let steps = ready.own_steps().into_iter();
    let of_step = |step| ["after_effect", "after_commit"].map(|site| CrashPoint::new(site, step));
    steps.flat_map(of_step).collect()
}

/// The plan file becomes another plan: the frozen one is what counts.
fn plan_drift(ready: &Arc<Prepared>, point: &CrashPoint) -> Scenario {
    let title = format!("killed at {point}, another plan in the plan file, resumed");
    let schedule = KillSchedule::points([point]);
    let point = point.clone();
    let play = move |ready: &Prepared| {
        let mut stage = ready.stage()?;
        stage.run(TASK, Some(&Kill::Point(point.clone())), Expect::Dies, &[])?;
        stage.sandbox.write(PLAN_FILE, other_plan(&ready.case).as_bytes())?;
        stage.run(TASK, None, Expect::Ends(0), &[])?;
        Ok(Played::judged(stage.close(TaskEnd::Done), &ready.baseline))
    };
    Scenario::new(METHOD.name, ready, &format!("plan, {schedule}"), title, play).kills(schedule)
}

/// Notes come in, before and behind all others, and those that have been counted are gone: the plan was frozen when the
/// task was created.
fn late_notes(ready: &Arc<Prepared>, point: &CrashPoint) -> Scenario {
    let title = format!("killed at {point}, new notes in the inbox and those counted removed, resumed");
    let schedule = KillSchedule::points([point]);
    let point = point.clone();
    let play = move |ready: &Prepared| {
        let mut stage = ready.stage()?;
        stage.run(TASK, Some(&Kill::Point(point.clone())), Expect::Dies, &[])?;
        for name in ready.case.kind.late() {
            stage.sandbox.write(name, inbox::LATE_TEXT.as_bytes())?;
        }
        for (step, (note, _)) in inbox::notes(&ready.case.files).enumerate() {
            if stage.last().tables.is_done(TASK, step) {
                let path = stage.sandbox.world().join(note);
                std::fs::remove_file(&path).map_err(LabError::io("remove", &path))?;
            }
        }
        stage.run(TASK, None, Expect::Ends(0), &[])?;
        Ok(Played::judged(stage.close(TaskEnd::Done), &ready.baseline))
    };
    Scenario::new(METHOD.name, ready, &format!("notes, {schedule}"), title, play).kills(schedule)
}

fn other_plan(case: &PlanCase) -> String {
    let step = |spec: &crate::case::plan::StepSpec| serde_json::json!({ "tool": spec.tool, "input": spec.input });
    let mut steps: Vec<_> = case.steps.iter().map(step).collect();
    steps.insert(0, steps[0].clone());
    serde_json::json!({ "goal": "another goal", "steps": steps }).to_string()
}

/// Somebody else's file under the name of a result: it must not be taken for it.
fn foreign_results(ready: &Arc<Prepared>) -> Vec<Scenario> {
    let before = |step| CrashPoint::new("before_effect", step);
    let results = ready.baseline.last().world.keys();
    let of_step = |name: &String| {
        let own = ready.own_steps().into_iter();
        let stem = move |step: usize| name.ends_with(&format!("/{TASK}-{step}.md")).then_some((step, name.clone()));
        own.filter_map(stem).next()
    };
    let found = results.filter_map(of_step);
    found.map(|(step, name)| foreign_result(ready, &before(step), name)).collect()
}

fn foreign_result(ready: &Arc<Prepared>, point: &CrashPoint, name: String) -> Scenario {
    let title = format!("killed at {point}, a foreign file under the result's name, resumed");
    let schedule = KillSchedule::points([point]);
    let what = format!("foreign result, {schedule}");
    let point = point.clone();
    let play = move |ready: &Prepared| play_foreign(ready, &point, &name);
    Scenario::new(METHOD.name, ready, &what, title, play).kills(schedule)
}

/// Ending in failure is right, and so is putting the true result in its place; calling the step done over a foreign
/// file is not.
fn play_foreign(ready: &Prepared, point: &CrashPoint, name: &str) -> Result<Played, LabError> {
    let mut stage = ready.stage()?;
    stage.run(TASK, Some(&Kill::Point(point.clone())), Expect::Dies, &[])?;
    stage.sandbox.write(name, FOREIGN)?;
    stage.run(TASK, None, Expect::Ends(2), &[])?;
    let last = stage.last();
    let done = last.tables.task(TASK).is_some_and(|row| row.status == "done");
    let whole = last.world.get(name) == ready.baseline.last().world.get(name);
    let verdict = if done && !whole {
        Verdict::Violated(format!("the task is done, and `{name}` is somebody else's file"))
    } else {
        Verdict::Holds
    };
    let mut played = Played { cycles: 1, evidence: Some(stage.close(TaskEnd::Failed)), ..Played::default() };
    played.and("foreign_result", verdict);
    Ok(played)
}

/// A world that changes between kill and resume, and both outcomes without a crash.
struct Drift {
    word: &'static str,
    /// The outcome where the change came after everything.
    old: Baseline,
    /// The outcome where the change came before everything.
    new: Baseline,
    /// The step that reads what changes.
    root: usize,
}

/// `None` where the inputs cannot be changed without breaking the plan, or where it is not one step alone that reads
/// them.
fn input_drift(ready: &Prepared) -> Result<Option<Drift>, LabError> {
    let case = changed_inputs(&ready.case);
    if case.files == ready.case.files {
        return Ok(None);
    }
    let new = clean_run(&ready.lab, &Arc::new(case), &[TASK.to_owned()], &Vec::new())?;
    if new.runs[0].outcome.ended != Ended::Exited(0) {
        return Ok(None);
    }
    Ok(drift("input", ready.baseline.clone(), baseline_of(new, None), ready))
}

fn changed_inputs(case: &PlanCase) -> PlanCase {
    let mut case = case.clone();
    // Each note is one step's own; only where one step alone reads what changes, there are no more than two outcomes.
    let one = inbox::notes(&case.files).nth(1).map(|(name, _)| name.to_owned()).filter(|_| !case.kind.is_created());
    let changes = |name: &String| one.as_ref().is_none_or(|one| one == name);
    for (_, content) in case.files.iter_mut().filter(|(name, _)| changes(name)) {
        content.splice(0..0, NEW_LINE.bytes());
    }
    case
}

/// `None` where no step asks a model, or the agent refuses to.
fn model_drift(ready: &Prepared) -> Result<Option<Drift>, LabError> {
    let asks = ready.case.steps.iter().any(|step| step.tool == "summarize");
    if !asks || ready.case.example_of.is_some() {
        return Ok(None);
    }
    let server = ModelServer::start(ANSWERS[0])?;
    let run = || clean_run(&ready.lab, &ready.case, &[TASK.to_owned()], &model_env(&server));
    let old = run()?;
    if old.runs[0].outcome.ended != Ended::Exited(0) {
        return Ok(None);
    }
    server.answers(ANSWERS[1]);
    Ok(drift("model", baseline_of(old, None), baseline_of(run()?, None), ready))
}

fn model_env(server: &ModelServer) -> Env {
    vec![("AGENT_LLM", "ollama".to_owned()), ("OLLAMA_URL", server.url())]
}

fn drift(word: &'static str, mut old: Baseline, mut new: Baseline, ready: &Prepared) -> Option<Drift> {
    let output = |baseline: &Baseline, step| {
        let row = baseline.last().tables.step(TASK, step);
        row.and_then(|row| row.output.clone())
    };
    let steps = 0..ready.case.steps.len();
    let differing: Vec<usize> = steps.filter(|&step| output(&old, step) != output(&new, step)).collect();
    let reads_differing = |&step: &usize| ready.case.reads(step).iter().any(|from| differing.contains(from));
    let mut roots = differing.iter().copied().filter(|step| !reads_differing(step));
    let root = roots.next()?;
    if roots.next().is_some() {
        return None;
    }
    old.comparable.clone_from(&ready.baseline.comparable);
    new.comparable.clone_from(&ready.baseline.comparable);
    Some(Drift { word, old, new, root })
}

fn world_drift(ready: &Arc<Prepared>, drift: &Arc<Drift>, point: &CrashPoint) -> Scenario {
    let word = drift.word;
    let title = format!("killed at {point}, another {word}, resumed");
    let schedule = KillSchedule::points([point]);
    let (drift, point) = (Arc::clone(drift), point.clone());
    let play = move |ready: &Prepared| play_world(ready, &drift, &point);
    Scenario::new(METHOD.name, ready, &format!("{word}, {schedule}"), title, play).kills(schedule)
}

fn play_world(ready: &Prepared, drift: &Drift, point: &CrashPoint) -> Result<Played, LabError> {
    let server = ModelServer::start(ANSWERS[0])?;
    let with_model = drift.word == "model";
    let env = if with_model { model_env(&server) } else { Vec::new() };
    let mut stage = ready.stage()?;
    stage.run(TASK, Some(&Kill::Point(point.clone())), Expect::Dies, &env)?;
    // What was committed stands, what was not is made anew from the new world.
    let committed = stage.last().tables.is_done(TASK, drift.root);
    let outcome = if committed { &drift.old } else { &drift.new };
    if with_model {
        server.answers(ANSWERS[1]);
    } else {
        for (name, content) in &changed_inputs(&ready.case).files {
            stage.sandbox.write(name, content)?;
        }
    }
    stage.run(TASK, None, Expect::Ends(0), &env)?;
    let mut played = Played::judged(stage.close(TaskEnd::Done), outcome);
    let age = if committed { "old" } else { "new" };
    played.note = Some(format!("the outcome had to be that of the {age} {}", drift.word));
    Ok(played)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_other_plan_is_another_plan_and_still_one() {
        let case = PlanCase::report();
        let other = PlanCase::parse("other", &other_plan(&case)).expect("a plan");
        assert_eq!(other.steps.len(), case.steps.len() + 1);
        assert_ne!(other.goal, case.goal);
    }

    #[test]
    fn of_an_inbox_one_note_changes_and_the_plan_does_not() {
        let case = inbox::case();
        let changed = changed_inputs(&case);
        let differing = case.files.iter().filter(|(name, content)| changed.files[*name] != **content);
        assert_eq!(differing.map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["inbox/größe.txt"]);
        assert_eq!(changed.steps, case.steps);
    }

    #[test]
    fn changed_inputs_differ_in_every_file() {
        let case = PlanCase::report();
        let changed = changed_inputs(&case);
        for (name, content) in &case.files {
            assert_ne!(&changed.files[name], content);
        }
    }
}

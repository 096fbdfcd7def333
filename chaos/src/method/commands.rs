//! The commands that start nothing: `status` and `export` at each rest and while a
//! run stands still in a step, `run` of a task that does not exist, `create` of one
//! that does. And a folder of artifacts that was named by `AGENT_ARTIFACTS`.

use std::sync::Arc;

use nix::sys::signal::Signal;

use crate::agent::process::{Env, Outcome};
use crate::case::TASK;
use crate::case::plan::{PlanCase, strings};
use crate::contract::PLAN_FILE;
use crate::error::LabError;
use crate::judge::told;
use crate::judge::verdict::{Verdict, VerdictKind};
use crate::look::evidence::{Expect, TaskEnd};
use crate::look::snapshot::Snapshot;
use crate::play::ask;
use crate::play::method::Method;
use crate::play::prepared::{Prepared, baseline_of, clean_run};
use crate::play::scenario::{Played, Scenario};
use crate::play::stage::{HOLD, Stage};
use crate::schedule::{CrashPoint, Kill, KillSchedule};

/// See the file's head.
pub(super) const METHOD: Method = Method {
    name: "commands",
    about: "status and export against the tables, tasks that are not there or are already, another artifacts folder",
    scenarios,
};

/// Ids that are nobody's, though nearly the one there is.
const NOBODY: [&str; 2] = ["T1", "t_"];

/// Another folder for artifacts, where the lab looks for results.
const ELSEWHERE: &str = "artifacts/else where";

/// How long a step sleeps, in seconds, so that somebody can ask meanwhile; more
/// where it was not seen.
const HOLDS: [f64; 3] = [HOLD, 4.0 * HOLD, 20.0 * HOLD];

fn scenarios(ready: &Arc<Prepared>) -> Result<Vec<Scenario>, LabError> {
    let asked = ready.own_steps().into_iter().map(|step| asked(ready, &CrashPoint::new("after_effect", step)));
    let mut all: Vec<Scenario> = asked.collect();
    if ready.case.example_of.is_some() {
        return Ok(all);
    }
    let scenario = |what: &str, title: &str, play: fn(&Prepared) -> Result<Played, LabError>| {
        Scenario::new(METHOD.name, ready, what, title.to_owned(), play)
    };
    all.push(scenario("unknown", "tasks run and asked for that do not exist", unknown));
    if ready.case.kind.is_created() {
        all.push(scenario("exists", "created again before, during and after its run", exists));
        if !names_the_folder(&ready.case) {
            all.push(scenario("artifacts", "killed and resumed with another artifacts folder", artifacts));
        }
    }
    Ok(all)
}

/// Whether a plan says itself that something lies in the usual folder, which stays there wherever artifacts go.
fn names_the_folder(case: &PlanCase) -> bool {
    let mut texts = Vec::new();
    case.steps.iter().for_each(|step| strings(&step.input, &mut texts));
    texts.iter().any(|text| text.contains("artifacts/"))
}

fn asked(ready: &Arc<Prepared>, point: &CrashPoint) -> Scenario {
    let title = format!("killed at {point}, asked; asked while it resumes, and in the end");
    let schedule = KillSchedule::points([point]);
    let what = schedule.to_string();
    let point = point.clone();
    let play = move |ready: &Prepared| ask_patiently(ready, Some(&point), |_| Ok(Vec::new()));
    Scenario::new(METHOD.name, ready, &what, title, play).kills(schedule)
}

type Also = fn(&mut Stage<'_>) -> Result<Vec<String>, LabError>;

/// Asks before, during and after the run that ends the task; each time `also`
/// happens, of which nothing may come.
fn ask_around(mut stage: Stage<'_>, ready: &Prepared, also: Also) -> Result<Played, LabError> {
    let mut wrong = ask(&mut stage, also)?;
    let open = ready.first_open(&stage.last().tables);
    let mut seen = Verdict::Holds;
    match open {
        None => _ = stage.run(TASK, None, Expect::Ends(0), &[])?,
        Some(step) => {
            let (running, in_time) =
                stage.start_and_wait(TASK, step, &[("AGENT_STEP_DELAY", stage.hold.to_string())])?;
            if in_time {
                running.signal(Signal::SIGSTOP);
                wrong.extend(ask(&mut stage, also)?);
                running.signal(Signal::SIGCONT);
            } else {
                seen = Verdict::NotReached(format!("the run was not seen in step {step}"));
            }
            stage.finish(TASK, running, Expect::Ends(0), true)?;
        }
    }
    wrong.extend(ask(&mut stage, also)?);
    let mut played = Played::judged(stage.close(TaskEnd::Done), &ready.baseline);
    played.and("told_true", Verdict::of(&wrong));
    played.and("seen_running", seen);
    Ok(played)
}

fn ask(stage: &mut Stage<'_>, also: Also) -> Result<Vec<String>, LabError> {
    let before = stage.sandbox.look()?;
    let mut wrong = ask::ask(&stage.lab.target, &mut stage.sandbox, &before.tables)?;
    wrong.extend(also(stage)?);
    wrong.extend(told::changed("who only asked", &before, &stage.sandbox.look()?));
    Ok(wrong)
}

fn command(stage: &mut Stage<'_>, words: &[&str], env: &Env) -> Result<Outcome, LabError> {
    ask::command(&stage.lab.target, &mut stage.sandbox, words, env)
}

fn exists(ready: &Prepared) -> Result<Played, LabError> {
    let again: Also = |stage| {
        let again = command(stage, &["create", TASK, PLAN_FILE], &Env::new())?;
        Ok(told::refused("`create` of a task that exists", &again, None))
    };
    ask_patiently(ready, None, again)
}

/// With more time where the run was over before somebody could ask.
fn ask_patiently(ready: &Prepared, point: Option<&CrashPoint>, also: Also) -> Result<Played, LabError> {
    let mut played = Played::default();
    for hold in HOLDS {
        let mut stage = ready.stage()?;
        stage.hold = hold;
        if let Some(point) = point {
            stage.run(TASK, Some(&Kill::Point(point.clone())), Expect::Dies, &[])?;
        }
        played = ask_around(stage, ready, also)?;
        if played.verdict() != VerdictKind::NotReached {
            break;
        }
    }
    Ok(played)
}

fn unknown(ready: &Prepared) -> Result<Played, LabError> {
    let mut stage = ready.stage()?;
    if !ready.case.kind.is_created() {
        // Without a database nothing is known.
        stage.run(TASK, None, Expect::Ends(0), &[])?;
    }
    let before: Snapshot = stage.sandbox.look()?;
    let mut wrong = Vec::new();
    for (name, words) in NOBODY.iter().flat_map(|name| ["run", "status", "export"].map(|word| (word, [word, *name]))) {
        let asked = command(&mut stage, &words, &Env::new())?;
        wrong.extend(told::refused(&format!("`{name}` of an unknown task"), &asked, Some(1)));
    }
    wrong.extend(told::changed("who asked for an unknown task", &before, &stage.sandbox.look()?));
    stage.run(TASK, None, Expect::Ends(0), &[])?;
    let mut played = Played::judged(stage.close(TaskEnd::Done), &ready.baseline);
    played.and("told_true", Verdict::of(&wrong));
    Ok(played)
}

/// The same results in another folder, and none in the usual one.
fn artifacts(ready: &Prepared) -> Result<Played, LabError> {
    let env = vec![("AGENT_ARTIFACTS", ELSEWHERE.to_owned())];
    let clean = clean_run(&ready.lab, &ready.case, &[TASK.to_owned()], &env)?;
    let mut baseline = baseline_of(clean, None);
    baseline.comparable.clone_from(&ready.baseline.comparable);
    let mut stage = ready.stage()?;
    let point = CrashPoint::new("after_effect", ready.last_step());
    stage.run(TASK, Some(&Kill::Point(point)), Expect::Dies, &env)?;
    stage.run(TASK, None, Expect::Ends(0), &env)?;
    let moved = moved(&ready.baseline.last().world, stage.last());
    let mut played = Played::judged(stage.close(TaskEnd::Done), &baseline);
    played.and("artifacts_there", moved);
    Ok(played)
}

fn moved(usual: &std::collections::BTreeMap<String, Vec<u8>>, look: &Snapshot) -> Verdict {
    let there = |name: &String| match name.strip_prefix("artifacts/") {
        Some(rest) => format!("{ELSEWHERE}/{rest}"),
        None => name.clone(),
    };
    let missing = usual.iter().filter(|(name, content)| look.world.get(&there(name)) != Some(*content));
    let mut wrong: Vec<String> = missing.map(|(name, _)| format!("`{}` is not there", there(name))).collect();
    let usual = |name: &&String| name.starts_with("artifacts/") && !name.starts_with(ELSEWHERE);
    let left = look.world.keys().filter(usual);
    wrong.extend(left.map(|name| format!("`{name}` is there, although AGENT_ARTIFACTS names `{ELSEWHERE}`")));
    Verdict::of(&wrong)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{ARTIFACT, Story};

    /// A file whose path the plan gives was called an artifact in the wrong folder.
    #[test]
    fn a_plan_that_names_the_usual_folder_is_not_asked_for_another() {
        assert!(!names_the_folder(&PlanCase::report()));
        let plan = r#"{"goal": "g", "steps": [{"tool": "write_file", "input": {"path": "artifacts/a", "text": "x"}}]}"#;
        assert!(names_the_folder(&PlanCase::parse("named", plan).expect("a plan")));
    }

    #[test]
    fn results_in_the_usual_folder_and_missing_ones_are_rejected() {
        let mut story = Story::clean();
        let usual = story.last().world.clone();
        assert!(!moved(&usual, story.last()).holds());
        let content = story.last().world.remove(ARTIFACT).expect("a file");
        assert!(!moved(&usual, story.last()).holds());
        story.last().world.insert(format!("{ELSEWHERE}/t1-2.md"), content);
        assert!(moved(&usual, story.last()).holds());
    }
}

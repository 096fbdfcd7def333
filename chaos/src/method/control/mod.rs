//! The negative control: the agent is made unsafe, and the doubled effect must appear at exactly the points between
//! effect and commit.
//!
//! For the contract's points the window is known: `after_effect` of a step with an effect and nothing else. For further
//! points it is measured: the effect was in the world when the kill hit, and the step was not committed.

use std::sync::{Arc, Mutex};

mod weight;

use self::weight::{Control, Weight};
use crate::agent::process::Env;
use crate::agent::target::Target;
use crate::case::TASK;
use crate::case::plan::PlanCase;
use crate::case::promise::Promise;
use crate::error::LabError;
use crate::judge;
use crate::judge::verdict::{Finding, Verdict};
use crate::look::evidence::{Baseline, Evidence, Expect, TaskEnd};
use crate::play::method::Method;
use crate::play::prepared::{Prepared, baseline_of, clean_run};
use crate::play::scenario::{Played, Scenario};
use crate::report::model::ControlReport;
use crate::schedule::{CrashPoint, Kill, KillSchedule};

/// See the file's head.
pub(super) const METHOD: Method = Method {
    name: "control",
    about: "the agent made unsafe: the effect must double at exactly the points between effect and commit",
    scenarios,
};

/// Why there is nothing to control in a plan, where that is so: each step with an effect has a control, or nobody has
/// said that it has an effect.
pub(super) fn why_not(target: &Target, case: &PlanCase) -> Option<&'static str> {
    if !case.kind.is_created() {
        return Some("its steps have no effect of their own that could double");
    }
    let mut promises = (0..case.steps.len()).filter_map(|step| case.kind.promise(step));
    if case.kind.has_person() || promises.any(|promise| promise != Promise::Keyed) {
        return Some("something else than a key protects its effect");
    }
    let tools = || case.steps.iter().map(|step| step.tool.as_str()).filter(|tool| target.has_effect(tool));
    match tools().next() {
        None => Some("none of its tools has an effect"),
        Some(_) if tools().any(|tool| !Control::of(target, tool).is_empty()) => None,
        Some(_) => Some("the agent has no `tools --json`, which would say whether its tools have effects"),
    }
}

/// The name of this judge in findings.
const JUDGE: &str = "control_bites";

/// The judge that a doubled effect must not escape.
const WITNESS: &str = "effect_once";

/// One control of one plan, with its clean outcome, played once.
struct Trial {
    control: Control,
    tool: String,
    step: usize,
    clean: Mutex<Option<Arc<Baseline>>>,
}

fn scenarios(ready: &Arc<Prepared>) -> Result<Vec<Scenario>, LabError> {
    let own = ready.own_steps();
    let mut all = Vec::new();
    for step in ready.effectful_steps().into_iter().filter(|step| own.contains(step)) {
        let tool = ready.case.steps[step].tool.clone();
        for control in Control::of(&ready.lab.target, &tool) {
            let trial = Arc::new(Trial { control, tool: tool.clone(), step, clean: Mutex::default() });
            let points = points(ready, &trial).into_iter();
            all.extend(points.map(|point| scenario(ready, &trial, &point)));
        }
    }
    Ok(all)
}

/// The contract's points of all steps, and the points of the watched step that a recording has shown. The contract's
/// control may take another way through the tool, so that it is given the contract's points only.
fn points(ready: &Prepared, trial: &Trial) -> Vec<CrashPoint> {
    let watched = |point: &&CrashPoint| match trial.control {
        Control::Effects => point.is_of_contract(),
        Control::Keys => point.is_of_contract() || point.step == Some(trial.step),
    };
    ready.discovery.clean.iter().filter(watched).cloned().collect()
}

fn scenario(ready: &Arc<Prepared>, trial: &Arc<Trial>, point: &CrashPoint) -> Scenario {
    let word = trial.control.word();
    let what = format!("{word} of {}:{}, {point}", trial.tool, trial.step);
    let title = format!("made unsafe by {}, killed at {point}", trial.control.variable());
    let schedule = KillSchedule::points([point]);
    let (trial, point) = (Arc::clone(trial), point.clone());
    let id = format!("{}/{}/{what}", METHOD.name, ready.case.name);
    let play = move |ready: &Prepared| play(ready, &trial, &point, &id);
    Scenario::new(METHOD.name, ready, &what, title, play).kills(schedule)
}

fn play(ready: &Prepared, trial: &Trial, point: &CrashPoint, id: &str) -> Result<Played, LabError> {
    let env: Env = vec![(trial.control.variable(), "1".to_owned())];
    let clean = trial.clean_outcome(ready, &env)?;
    let killed = killed_at(ready, point, &env)?;
    let must_bite = must_bite(ready, trial, point, &env, &killed)?;
    let (is, once) = (Weight::of(killed.last()), Weight::of(clean.last()));
    let bit = is.exceeds(once);
    let mut verdict = judge(must_bite, is, once, &trial.tool);
    let findings = judge::judge(&killed, &clean);
    if verdict.holds() && bit && !findings.iter().any(|finding| finding.property == WITNESS) {
        verdict = Verdict::Violated(format!("the effect is doubled and `{WITNESS}` does not see it"));
    }
    let mut played = Played {
        cycles: killed.cycles(),
        evidence: Some(killed),
        control: Some(ControlReport {
            scenario: id.to_owned(),
            control: trial.control.variable().to_owned(),
            tool: trial.tool.clone(),
            plan: ready.case.name.clone(),
            point: point.to_string(),
            must_bite,
            bit,
        }),
        ..Played::default()
    };
    played.and(JUDGE, verdict);
    let ends: Vec<Finding> = findings.into_iter().filter(|f| f.property == "exit_code").collect();
    played.checked += 1;
    played.findings.extend(ends);
    Ok(played)
}

impl Trial {
    fn clean_outcome(&self, ready: &Prepared, env: &Env) -> Result<Arc<Baseline>, LabError> {
        let mut kept = self.clean.lock().map_err(|_| LabError::poisoned())?;
        if let Some(clean) = &*kept {
            return Ok(Arc::clone(clean));
        }
        let evidence = clean_run(&ready.lab, &ready.case, &[TASK.to_owned()], env)?;
        let clean = Arc::new(baseline_of(evidence, None));
        *kept = Some(Arc::clone(&clean));
        Ok(clean)
    }
}

fn killed_at(ready: &Prepared, point: &CrashPoint, env: &Env) -> Result<Evidence, LabError> {
    let mut stage = ready.stage()?;
    stage.run(TASK, Some(&Kill::Point(point.clone())), Expect::Dies, env)?;
    stage.run(TASK, None, Expect::Ends(0), env)?;
    Ok(stage.close(TaskEnd::Done))
}

/// Whether the kill at `point` lies between effect and commit.
fn must_bite(
    ready: &Prepared,
    trial: &Trial,
    point: &CrashPoint,
    env: &Env,
    killed: &Evidence,
) -> Result<bool, LabError> {
    let effectful = |step: &usize| ready.effectful_steps().contains(step);
    if point.is_of_contract() {
        let inside = point.site == "after_effect" && point.step.as_ref().is_some_and(effectful);
        // A step of another tool may not know this control.
        return Ok(inside && ready.case.steps[point.step.unwrap_or(0)].tool == trial.tool);
    }
    let at_kill = killed.before(1);
    if at_kill.tables.is_done(TASK, trial.step) {
        return Ok(false);
    }
    let earlier = killed_at(ready, &CrashPoint::new("before_effect", trial.step), env)?;
    Ok(Weight::of(at_kill).exceeds(Weight::of(earlier.before(1))))
}

fn judge(must_bite: bool, is: Weight, once: Weight, tool: &str) -> Verdict {
    if once.files == 0 {
        return Verdict::Violated(format!("no effect of `{tool}` is in the folder, even without a crash"));
    }
    match (must_bite, is.exceeds(once)) {
        (true, false) => Verdict::Violated(format!(
            "the control stays green: killed between effect and commit, the effect of `{tool}` \
             must be there twice, it weighs {} files and {} bytes as without a crash",
            is.files, is.bytes
        )),
        (false, true) => Verdict::Violated(format!(
            "the effect of `{tool}` is doubled outside of its window: {} files and {} bytes, \
             without a crash {} and {}",
            is.files, is.bytes, once.files, once.bytes
        )),
        _ if once.exceeds(is) => Verdict::Violated(format!("an effect of `{tool}` is lost")),
        _ => Verdict::Holds,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONCE: Weight = Weight { files: 1, bytes: 10 };
    const TWICE: Weight = Weight { files: 1, bytes: 20 };
    const NONE: Weight = Weight { files: 0, bytes: 0 };

    #[test]
    fn a_control_must_bite_in_its_window_and_nowhere_else() {
        assert!(judge(true, TWICE, ONCE, "x").holds());
        assert!(judge(false, ONCE, ONCE, "x").holds());
        assert!(!judge(true, ONCE, ONCE, "x").holds());
        assert!(!judge(false, TWICE, ONCE, "x").holds());
    }

    /// An agent without `tools --json` was asked to double the effect of a tool of which nobody had said that it has
    /// one, and was called silent.
    #[test]
    fn of_a_tool_that_nobody_has_declared_nothing_is_asked() {
        let target = Target::new("agent", std::path::Path::new("."), Vec::new()).expect("words");
        let plan = |tool| {
            let text = format!(r#"{{"goal": "g", "steps": [{{"tool": "{tool}", "input": {{}}}}]}}"#);
            PlanCase::parse("plan", &text).expect("a plan")
        };
        assert_eq!(why_not(&target, &plan("write_artifact")), None);
        assert_eq!(why_not(&target, &plan("fetch")), Some("none of its tools has an effect"));
        assert!(why_not(&target, &plan("launch_rocket")).expect("a reason").contains("no `tools --json`"));
    }

    #[test]
    fn a_lost_and_an_invisible_effect_are_rejected() {
        assert!(!judge(false, NONE, ONCE, "x").holds());
        assert!(!judge(false, NONE, NONE, "x").holds());
    }
}

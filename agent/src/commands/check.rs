//! `agent check`

use std::path::Path;

use serde_json::{Map, Value};
use store::model::{Effect, PlanSource as _, PlannedStep};
use tools::{Registry, is_template};

use super::asks::text_of;
use super::create::given;
use super::{Parts, counted};
use crate::engine::effect_of;
use crate::exit::{Exit, Failure};
use crate::output::{Output, table};
use crate::plan_file::{Checked, PlanFile};

/// Checks a plan as `create` does, without a database, and says how it was understood.
pub(crate) fn check(
    plan: &Path,
    inputs: &[(String, String)],
    file: Option<&Path>,
    mermaid: bool,
) -> Result<Exit, Failure> {
    let tools = Parts::right().tools;
    let mut checked = PlanFile::open(plan, tools)?;
    let given = given(inputs, file)?;
    let any = !given.texts.is_empty() || !given.values.is_empty();
    if any || checked.inputs.wanted().next().is_none() {
        checked.give(&given, &[])?;
    }
    let mut out = Output::new();
    if mermaid {
        draw(&mut out, &checked, tools)?;
    } else {
        tell(&mut out, &checked, tools)?;
    }
    out.finish()?;
    Ok(Exit::Done)
}

fn tell(out: &mut Output, checked: &Checked<'_>, tools: &Registry) -> Result<(), Failure> {
    let plan = &checked.plan;
    out.line(&format!("{}: {}", plan.goal(), counted(plan.count(), "step")))?;
    for (name, value) in plan.origin().inputs.iter().flatten() {
        out.line(&format!("input {name} = {value}"))?;
    }
    if plan.origin().inputs.is_none() {
        for (name, schema) in checked.inputs.wanted() {
            out.line(&format!("input {name} must be given: {schema}"))?;
        }
    }
    for (name, value) in plan.origin().labels.iter().flatten() {
        out.line(&format!("label {name} = {value}"))?;
    }
    out.line("")?;
    let rows = plan.steps().enumerate().map(|(index, step)| {
        let effect = effect(&step, tools);
        vec![
            index.to_string(),
            step.id().unwrap_or_default().to_owned(),
            step.tool.clone(),
            said(&step),
            effect.to_string(),
            after_a_crash(effect).to_owned(),
        ]
    });
    out.line(&table(&["STEP", "ID", "TOOL", "SAYS", "EFFECT", "A CRASH IN IT"], rows))
}

/// What the plan says of a step, in a few words.
fn said(step: &PlannedStep) -> String {
    let word = |name: &str| step.setting(name).map(|value| format!("{name} {}", text_of(value)));
    let mut said: Vec<String> = ["when", "until", "timeout"].into_iter().filter_map(word).collect();
    if step.setting("on_error").and_then(Value::as_str) == Some("continue") {
        said.push("goes on where it fails".to_owned());
    }
    if let Some(check) = step.setting("check").and_then(|check| check.get("tool")).and_then(Value::as_str) {
        said.push(format!("asks {check}"));
    }
    if has_template(&step.input) {
        said.push("has templates".to_owned());
    }
    said.join("; ")
}

fn has_template(input: &Map<String, Value>) -> bool {
    fn within(value: &Value) -> bool {
        match value {
            Value::String(text) => is_template(text),
            Value::Array(items) => items.iter().any(within),
            Value::Object(fields) => fields.values().any(within),
            _ => false,
        }
    }
    input.values().any(within)
}

fn effect(step: &PlannedStep, tools: &Registry) -> Effect {
    tools.find(&step.tool).map_or(Effect::Once, |tool| effect_of(step, tool.as_ref()))
}

fn after_a_crash(effect: Effect) -> &'static str {
    match effect {
        Effect::Pure => "is run again, and changes nothing",
        Effect::Keyed => "is run again with the same key: once in effect",
        Effect::Verifiable => "asks first whether it has happened",
        Effect::Once => "may end in doubt, and wait for a person",
    }
}

fn draw(out: &mut Output, checked: &Checked<'_>, tools: &Registry) -> Result<(), Failure> {
    out.line("flowchart TD")?;
    for (index, step) in checked.plan.steps().enumerate() {
        let name = step.id().map_or_else(|| index.to_string(), |id| format!("{index} {id}"));
        let effect = effect(&step, tools);
        out.line(&format!("    s{index}[\"{name}: {} ({effect})\"]", step.tool))?;
        if index > 0 {
            let label = |when| format!("|\"when {}\"|", text_of(when).replace('"', "#quot;"));
            let when = step.setting("when").map(label).unwrap_or_default();
            out.line(&format!("    s{} -->{when} s{index}", index - 1))?;
        }
    }
    Ok(())
}

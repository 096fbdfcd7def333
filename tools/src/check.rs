//! Plans and outputs against the tools' schemas.

use serde_json::{Map, Value};
use store::model::{Plan, PlanError, PlannedStep};

use crate::registry::Registry;
use crate::schema::{Field, Form, Kind, Misfit};
use crate::tool::{Spec, Tool};

/// Checks a whole plan before it is stored; see [`PlanCheck`].
///
/// # Errors
/// The first fault, with its step and field.
pub fn check_plan(tools: &Registry, plan: &Plan) -> Result<(), PlanError> {
    let mut check = PlanCheck::new(tools);
    plan.steps.iter().try_for_each(|step| check.step(step))
}

/// Checks a plan step by step: every tool known, every field there and of its kind, every reference to an earlier step
/// whose output has what is needed. Of the steps it keeps which tool they call.
pub struct PlanCheck<'a> {
    tools: &'a Registry,
    form: Form,
    earlier: Vec<&'a Spec>,
}

impl<'a> PlanCheck<'a> {
    /// Before the first step of a plan whose texts stand for themselves.
    #[must_use]
    pub fn new(tools: &'a Registry) -> Self {
        Self { tools, form: Form::Literal, earlier: Vec::new() }
    }

    /// The same for a plan whose texts may be templates: what they become is checked when it is known.
    #[must_use]
    pub fn templated(self) -> Self {
        Self { form: Form::Templated, ..self }
    }

    /// The next step.
    ///
    /// # Errors
    /// Its first fault.
    pub fn step(&mut self, step: &PlannedStep) -> Result<(), PlanError> {
        let index = u32::try_from(self.earlier.len()).unwrap_or(u32::MAX);
        let spec = self.check(step).map_err(|error| error.in_step(index, &step.tool))?;
        self.earlier.push(spec);
        Ok(())
    }

    /// The tool that an earlier step calls.
    #[must_use]
    pub fn spec_of(&self, step: u32) -> Option<&'a Spec> {
        self.earlier.get(step as usize).copied()
    }

    fn check(&self, step: &PlannedStep) -> Result<&'a Spec, PlanError> {
        let Some(tool) = self.tools.find(&step.tool) else {
            let known: Vec<_> = self.tools.iter().map(|tool| tool.spec().name.as_str()).collect();
            return Err(PlanError::field("tool", format!("unknown tool; there are {}", known.join(", "))));
        };
        let spec = tool.spec();
        check_input(tool.as_ref(), &step.input, self.form)?;
        for Field { name, kind, .. } in &spec.input {
            if let (Kind::From(wanted), Some(value)) = (kind, step.input.get(name)) {
                self.check_reference(value, wanted).map_err(|why| PlanError::field(name, why))?;
            }
        }
        Ok(spec)
    }

    fn check_reference(&self, value: &Value, wanted: &str) -> Result<(), String> {
        let index = value.as_u64().and_then(|index| usize::try_from(index).ok());
        let Some((index, spec)) = index.and_then(|index| self.earlier.get(index).map(|spec| (index, spec))) else {
            return Err(format!("must name an earlier step, step {value} does not come before this one"));
        };
        let fits = spec.output.iter().any(|field| field.name == wanted && field.kind == Kind::Text && field.required);
        if fits {
            Ok(())
        } else {
            Err(format!("needs an output with `{wanted}`, step {index} ({}) has none", spec.name))
        }
    }
}

/// Checks the input of one step, as a plan has it or as it is when its templates are rendered. Where a reference leads
/// is a matter of the whole plan.
///
/// # Errors
/// The first field at fault.
pub fn check_input(tool: &dyn Tool, input: &Map<String, Value>, form: Form) -> Result<(), PlanError> {
    let fields = &tool.spec().input;
    for Field { name, kind, required, .. } in fields {
        match input.get(name) {
            None if *required => return Err(PlanError::field(name, format!("missing, must be {}", kind.words()))),
            None => {}
            Some(value) => {
                if let Some(Misfit { path, why }) = kind.misfit(value, form) {
                    return Err(PlanError::field(&format!("{name}{path}"), why));
                }
            }
        }
    }
    match input.keys().find(|name| fields.iter().all(|field| field.name != **name)) {
        Some(name) => Err(PlanError::field(name, "unknown field")),
        None => tool.check(input, form),
    }
}

/// The earlier steps whose outputs a step reads.
#[must_use]
pub fn named_steps(spec: &Spec, input: &Map<String, Value>) -> Vec<u32> {
    let references = spec.input.iter().filter(|field| matches!(field.kind, Kind::From(_)));
    references
        .filter_map(|field| input.get(&field.name).and_then(Value::as_u64))
        .filter_map(|index| u32::try_from(index).ok())
        .collect()
}

/// Checks an output against its tool's schema, before it is stored and after it is read back.
///
/// # Errors
/// Names the field, one line.
pub fn check_output(spec: &Spec, output: &Map<String, Value>) -> Result<(), String> {
    spec.output.iter().try_for_each(|Field { name, kind, required, .. }| match output.get(name) {
        None if *required => Err(format!("the output of {} has no `{name}`", spec.name)),
        None => Ok(()),
        Some(value) => match kind.misfit(value, Form::Literal) {
            Some(Misfit { path, why }) => Err(format!("the output of {}: `{name}{path}` {why}", spec.name)),
            None => Ok(()),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use store::model::codec;

    const FETCH: &str = r#"{"tool":"fetch","input":{"path":"n"}}"#;

    fn check(steps: &str) -> Result<(), PlanError> {
        check_plan(&Registry::builtin(), &codec::plan_from_json(&format!(r#"{{"goal":"g","steps":[{steps}]}}"#))?)
    }

    #[rstest]
    #[case(r#"{"tool":"fetsh","input":{}}"#, "step 0 (fetsh): field `tool`: unknown tool; there are")]
    #[case(r#"{"tool":"fetch","input":{}}"#, "step 0 (fetch): field `path`: missing, must be text")]
    #[case(r#"{"tool":"fetch","input":{"path":7}}"#, "step 0 (fetch): field `path`: must be text, is 7")]
    #[case(r#"{"tool":"fetch","input":{"path":"n","pth":"n"}}"#, "field `pth`: unknown field")]
    #[case(r#"{"tool":"summarize","input":{"from":0}}"#, "step 0 does not come before this one")]
    #[case(r#"{"tool":"summarize","input":{"from":1}}"#, "step 1 does not come before this one")]
    #[case(r#"{"tool":"summarize","input":{"from":99}}"#, "step 99 does not come before this one")]
    #[case(r#"{"tool":"summarize","input":{"from":-1}}"#, "must be the index of an earlier step, is -1")]
    #[case(r#"{"tool":"summarize","input":{"from":0.5}}"#, "must be the index of an earlier step, is 0.5")]
    #[case(r#"{"tool":"summarize","input":{"from":"0"}}"#, "must be the index of an earlier step, is text")]
    fn a_fault_in_the_first_step_is_named(#[case] step: &str, #[case] says: &str) {
        let error = check(step).expect_err("must be refused").to_string();
        assert!(error.contains(says), "{error}");
    }

    #[rstest]
    #[case(
        r#"{"tool":"write_artifact","input":{"from":0}}"#,
        "needs an output with `summary`, step 0 (fetch) has none"
    )]
    #[case(r#"{"tool":"summarize","input":{"from":1}}"#, "step 1 does not come before this one")]
    fn a_reference_must_lead_to_what_is_needed(#[case] step: &str, #[case] says: &str) {
        let error = check(&format!("{FETCH},{step}")).expect_err("must be refused").to_string();
        assert!(error.contains(says) && error.contains("step 1 ("), "{error}");
    }

    #[test]
    fn the_examples_of_all_tools_are_good_plans() {
        let tools = Registry::builtin();
        for tool in tools.iter() {
            let plan = codec::plan_from_json(&tool.spec().example.plan).unwrap();
            assert_eq!(check_plan(&tools, &plan), Ok(()));
            assert_eq!(plan.steps.last().unwrap().tool, tool.spec().name, "an example ends with its tool");
        }
    }

    #[test]
    fn an_output_that_does_not_fit_its_schema_is_refused() {
        let tools = Registry::builtin();
        let spec = tools.find("fetch").unwrap().spec();
        let output = |text: &str| match serde_json::from_str(text).unwrap() {
            Value::Object(map) => map,
            _ => unreachable!(),
        };
        assert_eq!(check_output(spec, &output(r#"{"chars":1,"sha256":"x","text":"a"}"#)), Ok(()));
        assert!(check_output(spec, &output(r#"{"chars":1,"sha256":"x"}"#)).unwrap_err().contains("no `text`"));
        assert!(
            check_output(spec, &output(r#"{"chars":-1,"sha256":"x","text":"a"}"#)).unwrap_err().contains("`chars`")
        );
    }
}

//! All that can be known of a step before its plan is stored: what its texts name, and whether that is there.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::{Map, Value};
use store::model::{Effect, PlanError, PlannedStep};
use tools::{Form, PlanCheck, Registry, Tool, check_input, is_template};

use super::inputs::Inputs;
use super::names::{Names, StepName};
use super::template::Template;

/// What is stored with a step beside what its plan says of it, so that nobody has to look for it again.
pub(crate) const READS: &str = "reads";
/// The names of its secrets.
pub(crate) const SECRETS: &str = "secrets";

/// Checks the texts of a plan, step by step.
#[derive(Debug, Default)]
pub(crate) struct TextCheck {
    /// The steps that have an id.
    ids: HashMap<String, u32>,
    /// Where each input is named first: a plan may declare its inputs after its steps.
    inputs: BTreeMap<String, Place>,
    /// How many steps have been seen.
    count: u32,
}

#[derive(Debug)]
struct Place {
    step: u32,
    tool: String,
    field: String,
}

/// What is found in one step.
#[derive(Default)]
struct Found {
    /// The steps that it reads, as it names them.
    reads: BTreeMap<String, u32>,
    secrets: BTreeSet<String>,
    /// Whether anything in it is to be rendered.
    has_texts: bool,
}

impl TextCheck {
    /// The next step, which has passed `plan`; gives what is to be stored of it beside its settings, if anything.
    ///
    /// # Errors
    /// Its first fault, with its field.
    pub(crate) fn step(
        &mut self,
        step: &PlannedStep,
        tool: &dyn Tool,
        plan: &PlanCheck<'_>,
        tools: &Registry,
    ) -> Result<Option<Map<String, Value>>, PlanError> {
        let mut found = Found::default();
        let mut look = Look { all: self, plan, step, found: &mut found };
        look.input(tool, &step.input, "")?;
        if let Some(settings) = &step.settings {
            look.settings(settings, tool, tools)?;
        }
        self.count += 1;
        let id = step.id();
        if let Some(id) = id.filter(|id| self.ids.contains_key(*id)) {
            return Err(PlanError::field("id", format!("`{id}` is that of an earlier step")));
        }
        self.ids.extend(id.map(|id| (id.to_owned(), self.count - 1)));
        let Found { reads, secrets, has_texts } = found;
        let mut stored = Map::new();
        if has_texts {
            stored.insert(READS.to_owned(), reads.into_iter().map(|(name, step)| (name, Value::from(step))).collect());
        }
        if !secrets.is_empty() {
            stored.insert(SECRETS.to_owned(), secrets.into_iter().collect());
        }
        Ok((!stored.is_empty()).then_some(stored))
    }

    /// After the last step.
    ///
    /// # Errors
    /// A step names an input that the plan does not declare.
    pub(crate) fn finish(self, inputs: &Inputs) -> Result<(), PlanError> {
        let Some((name, place)) = self.inputs.into_iter().find(|(name, _)| !inputs.has(name)) else { return Ok(()) };
        let known: Vec<_> = inputs.names().collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        let why = format!("the plan has no input `{name}`; under `inputs` there are {known}");
        Err(PlanError::field(&place.field, why).in_step(place.step, &place.tool))
    }
}

/// A look at one step.
struct Look<'l, 'p> {
    all: &'l mut TextCheck,
    plan: &'l PlanCheck<'p>,
    step: &'l PlannedStep,
    found: &'l mut Found,
}

impl Look<'_, '_> {
    /// The texts of an input, which stands in a field of that name.
    fn input(&mut self, tool: &dyn Tool, input: &Map<String, Value>, within: &str) -> Result<(), PlanError> {
        self.found.secrets.extend(tool.secrets(input));
        for (name, value) in input {
            let may_hold = tool.spec().input.iter().any(|field| field.name == *name && field.secret);
            self.value(value, &format!("{within}{name}"), may_hold)?;
        }
        Ok(())
    }

    fn value(&mut self, value: &Value, field: &str, secrets: bool) -> Result<(), PlanError> {
        match value {
            Value::String(text) if is_template(text) => {
                let template = Template::parse(text).map_err(|why| PlanError::field(field, why))?;
                self.names(&template.names, field, secrets, false)
            }
            Value::Array(items) => {
                items.iter().enumerate().try_for_each(|(at, item)| self.value(item, &format!("{field}[{at}]"), secrets))
            }
            Value::Object(fields) => {
                fields.iter().try_for_each(|(name, value)| self.value(value, &format!("{field}.{name}"), secrets))
            }
            _ => Ok(()),
        }
    }

    fn settings(&mut self, settings: &Map<String, Value>, tool: &dyn Tool, tools: &Registry) -> Result<(), PlanError> {
        if let Some(when) = settings.get("when") {
            self.expression(when, "when", false)?;
        }
        if let Some(until) = settings.get("until") {
            self.expression(until, "until", true)?;
            let named = settings.get("effect").and_then(Value::as_str).and_then(|effect| effect.parse().ok());
            let effect = named.unwrap_or_else(|| tool.effect(&self.step.input));
            let asks = settings.contains_key("check");
            if asks || !matches!(effect, Effect::Pure | Effect::Keyed) {
                let why = "repeats the step, which its class must allow: only what is pure or keyed can have it";
                return Err(PlanError::field("until", why));
            }
        }
        match settings.get("check") {
            None => Ok(()),
            Some(check) => self.check(check, tools),
        }
    }

    /// The call that finds out whether the step has had its effect.
    fn check(&mut self, check: &Value, tools: &Registry) -> Result<(), PlanError> {
        let bad = |field: &str, why: &str| PlanError::field(&format!("check{field}"), why);
        let Value::Object(check) = check else {
            return Err(bad("", "must be a map with `tool`, `input` and `happened`"));
        };
        if let Some(name) = check.keys().find(|name| !CHECK.contains(&name.as_str())) {
            return Err(bad(&format!(".{name}"), "unknown field; there are tool, input, happened and output"));
        }
        let name = check.get("tool").and_then(Value::as_str).ok_or_else(|| bad(".tool", "must name a tool"))?;
        let Some(tool) = tools.find(name) else { return Err(bad(".tool", "unknown tool")) };
        let Some(Value::Object(input)) = check.get("input") else { return Err(bad(".input", "must be a map")) };
        check_input(tool.as_ref(), input, Form::Templated)
            .map_err(|error| bad(&format!(".input.{}", error.field.unwrap_or_default()), &error.why))?;
        if tool.effect(input) != Effect::Pure {
            return Err(bad(".tool", "must be a call that changes nothing, and this one may"));
        }
        self.input(tool.as_ref(), input, "check.input.")?;
        let happened = check.get("happened").ok_or_else(|| bad(".happened", "missing, must be an expression"))?;
        self.expression(happened, "check.happened", true)?;
        check.get("output").map_or(Ok(()), |output| self.expression(output, "check.output", true))
    }

    /// A setting that is an expression.
    fn expression(&mut self, value: &Value, field: &str, output: bool) -> Result<(), PlanError> {
        let bad = |why: String| PlanError::field(field, why);
        self.found.has_texts = true;
        match value {
            Value::Bool(_) if field != "check.output" => Ok(()),
            Value::String(text) => {
                let template = Template::expression(text).map_err(bad)?;
                self.names(&template.names, field, false, output)
            }
            _ => Err(bad("must be an expression, as text".to_owned())),
        }
    }

    fn names(&mut self, names: &Names, field: &str, secrets: bool, output: bool) -> Result<(), PlanError> {
        let bad = |why: String| Err(PlanError::field(field, why));
        self.found.has_texts = true;
        if names.output && !output {
            return bad("there is no `output` here; `until` and `check` see it".to_owned());
        }
        if let Some(secret) = names.secrets.first().filter(|_| !secrets) {
            return bad(format!(
                "no place for secret('{secret}'): it may stand where a tool sends it, see docs/plans.md"
            ));
        }
        self.found.secrets.extend(names.secrets.iter().cloned());
        for (step, wanted) in &names.steps {
            let index = self.earlier(step).map_err(|why| PlanError::field(field, why))?;
            let Some(spec) = self.plan.spec_of(index) else { continue };
            let Some(wanted) = wanted.as_ref().filter(|_| !spec.open) else { continue };
            if spec.output.iter().all(|field| field.name != *wanted) {
                let there: Vec<_> = spec.output.iter().map(|field| field.name.as_str()).collect();
                let there = there.join(", ");
                return bad(format!("`{step}` ({}) gives no `{wanted}`; it gives {there}", spec.name));
            }
        }
        for id in &names.status {
            self.earlier(&StepName::Id(id.clone())).map_err(|why| PlanError::field(field, why))?;
        }
        let count = self.all.count;
        for name in &names.inputs {
            let place = || Place { step: count, tool: self.step.tool.clone(), field: field.to_owned() };
            self.all.inputs.entry(name.clone()).or_insert_with(place);
        }
        Ok(())
    }

    /// The index of a step that comes before this one.
    fn earlier(&mut self, step: &StepName) -> Result<u32, String> {
        let (name, index) = match step {
            StepName::Index(index) => (index.to_string(), Some(*index).filter(|index| *index < self.all.count)),
            StepName::Id(id) => (id.clone(), self.all.ids.get(id).copied()),
        };
        let index = index.ok_or_else(|| {
            let mut known: Vec<_> = self.all.ids.keys().map(String::as_str).collect();
            known.sort_unstable();
            let known = if known.is_empty() { "none has an id".to_owned() } else { known.join(", ") };
            format!("`{step}` is not an earlier step; of those before this one: {known}")
        })?;
        self.found.reads.insert(name, index);
        Ok(index)
    }
}

/// What `check` may say.
const CHECK: [&str; 4] = ["tool", "input", "happened", "output"];

//! The call by which a plan finds out whether the effect of a step has happened.

use std::sync::Arc;

use serde_json::{Map, Value};
use store::StepRow;
use tools::{Attempt, Effect, Form, Input, Probe, Registry, Tool, ToolContext, ToolError};

use crate::language::Scope;

/// A `check` of a plan, rendered.
pub(super) struct Check {
    pub(super) tool: Arc<dyn Tool>,
    pub(super) input: Map<String, Value>,
    /// An expression over what the call gives: whether the effect has happened.
    happened: Value,
    /// An expression over the same: what the step gives then. What the call gives, where it is unsaid.
    output: Option<Value>,
}

impl Check {
    /// That of a step, if it has one.
    ///
    /// # Errors
    /// It makes no sense, one line.
    pub(super) fn of(scope: &Scope, step: &StepRow, tools: &Registry) -> Result<Option<Self>, String> {
        let Some(check) = step.setting("check") else { return Ok(None) };
        let name = check.get("tool").and_then(Value::as_str).unwrap_or_default();
        let Some(tool) = tools.find(name) else { return Err(format!("its check calls `{name}`, which is not a tool")) };
        let input = check.get("input").and_then(Value::as_object).ok_or("its check has no input")?;
        let input = scope.input(input).map_err(|why| format!("its check: {why}"))?;
        tools::check_input(tool.as_ref(), &input, Form::Literal).map_err(|error| format!("its check: {error}"))?;
        if tool.effect(&input) != Effect::Pure {
            return Err(format!("its check calls {name} in a way that may change something"));
        }
        let happened = check.get("happened").cloned().ok_or("its check does not say what `happened` means")?;
        Ok(Some(Self { tool: Arc::clone(tool), input, happened, output: check.get("output").cloned() }))
    }

    /// Asks.
    ///
    /// # Errors
    /// Nothing was found out.
    pub(super) fn ask(&self, ctx: &ToolContext<'_>, scope: &Scope) -> Result<Probe, ToolError> {
        let attempt = Attempt { timeout: ctx.attempt.timeout, ..Attempt::first(Effect::Pure) };
        let ToolContext { key, world, outputs, crash, stop, .. } = *ctx;
        let given = self.tool.call(&ToolContext { key, world, outputs, crash, stop, attempt }, Input(&self.input))?;
        let unclear = |why: String| ToolError::permanent(format!("its check was answered, but {why}"));
        if !scope.holds("happened", &self.happened, Some(&given)).map_err(unclear)? {
            return Ok(Probe::Absent);
        }
        match self.output.as_ref().map(|output| scope.value("output", output, Some(&given))) {
            None => Ok(Probe::Happened(given)),
            Some(Ok(Value::Object(output))) => Ok(Probe::Happened(output)),
            Some(Ok(other)) => Err(unclear(format!("`output` must give a map, and gives {other}"))),
            Some(Err(why)) => Err(unclear(why)),
        }
    }
}

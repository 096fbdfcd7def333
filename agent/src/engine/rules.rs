//! What a step goes by: what its plan says, then the environment, then its tool.

use std::time::Duration;

use serde_json::{Map, Value};
use store::model::{Digest, Effect, IdempotencyKey, PlannedStep, Timestamp};
use store::{StepRow, limits};
use tools::{Backoff, Tool};

use crate::language::is_name;

/// The rules of one step.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Rules {
    /// The class that plan and tool name; the one that was named first is in force.
    pub(crate) effect: Effect,
    /// How often it is tried at most.
    pub(crate) max_attempts: u32,
    /// Whether the task goes on without it where it fails for good.
    pub(crate) goes_on: bool,
    /// How long one call may take.
    pub(crate) timeout: Option<Duration>,
    /// How an attempt that may succeed later is put off.
    backoff: Option<Backoff>,
    /// Whether the plan says how, so that any error is put off.
    by_plan: bool,
}

impl Rules {
    /// Of a step that calls this tool with this input; `said` is the attempt limit of the environment.
    ///
    /// # Errors
    /// The stored settings make no sense to this program, one line.
    pub(crate) fn of(
        step: &StepRow,
        input: &Map<String, Value>,
        tool: &dyn Tool,
        said: Option<u32>,
    ) -> Result<Self, String> {
        Self::read(step.settings.as_ref(), input, tool, said)
    }

    fn read(
        settings: Option<&Map<String, Value>>,
        input: &Map<String, Value>,
        tool: &dyn Tool,
        said: Option<u32>,
    ) -> Result<Self, String> {
        let none = Map::new();
        let settings = Settings(settings.unwrap_or(&none));
        let own = tool.spec().retry;
        let retry = settings.retry(own)?;
        let named =
            settings.text("effect")?.map(str::parse::<Effect>).transpose().map_err(|error| error.to_string())?;
        let checked = settings.0.contains_key("check").then_some(Effect::Verifiable);
        Ok(Self {
            effect: checked.or(named).unwrap_or_else(|| tool.effect(input)),
            max_attempts: match (settings.attempts()?, said, own) {
                (Some(limit), _, _) | (None, Some(limit), _) => limit,
                (None, None, own) => own.map_or(limits::ATTEMPTS, |own| own.max_attempts),
            },
            goes_on: settings.goes_on()?,
            timeout: settings.length("timeout")?,
            backoff: retry.or(own),
            by_plan: retry.is_some(),
        })
    }

    /// When a step that failed for the `charged`-th time is tried again; none for at once, or not at all. `later` is
    /// whether the tool says that waiting helps, `after` how long the other side asks to be left alone.
    ///
    /// The pause is between a half and the whole of what doubles with each failure. Which part is a matter of the key,
    /// so that tasks which failed together do not come back together, and yet the same journal comes from the same run.
    pub(crate) fn retry_at(
        &self,
        key: &IdempotencyKey,
        charged: u32,
        later: bool,
        after: Option<Duration>,
        now: Timestamp,
    ) -> Option<Timestamp> {
        if charged >= self.max_attempts {
            return None;
        }
        let own = self.backoff.filter(|_| later || self.by_plan).map(|backoff| {
            let doubled =
                backoff.first.saturating_mul(1_u32.checked_shl(charged.saturating_sub(1)).unwrap_or(u32::MAX));
            let whole = doubled.min(backoff.longest);
            let byte = Digest::of_text(&format!("{key}#{charged}")).0[0];
            whole / 2 + (whole / 2).mul_f64(f64::from(byte) / 255.0)
        });
        let pause = own.max(after)?;
        let micros = i64::try_from(pause.as_micros()).unwrap_or(i64::MAX);
        Some(Timestamp::from_micros(now.as_micros().saturating_add(micros)))
    }
}

/// Checks what a step of a new plan says beside its tool, its input and its expressions.
///
/// # Errors
/// The first thing that makes no sense, one line.
pub(crate) fn check(step: &PlannedStep, tool: &dyn Tool) -> Result<(), String> {
    let Some(settings) = &step.settings else { return Ok(()) };
    let rules = Rules::read(Some(settings), &step.input, tool, None)?;
    let asks = step.input.contains_key("check") || settings.contains_key("check");
    if rules.effect == Effect::Verifiable && tool.effect(&step.input) != Effect::Verifiable && !asks {
        return Err("its setting `effect` is verifiable, and there is no `check` that could be asked".to_owned());
    }
    let settings = Settings(settings);
    if let Some(retry) = settings.own()? {
        let known = |name: &&String| RETRY.contains(&name.as_str());
        if let Some(name) = retry.0.keys().find(|name| !known(name)) {
            return Err(format!("its setting `retry` has `{name}`; there are {}", RETRY.join(", ")));
        }
    }
    match settings.text("id")? {
        Some(id) if !is_name(id) => Err(format!("its id `{id}` must be a letter, then letters, digits and `_`")),
        _ => Ok(()),
    }
}

/// What `retry` may say.
const RETRY: [&str; 3] = ["max_attempts", "backoff", "max_backoff"];

/// The class of a step of a new plan, as far as it is known before its texts are rendered.
pub(crate) fn effect_of(step: &PlannedStep, tool: &dyn Tool) -> Effect {
    let rules = Rules::read(step.settings.as_ref(), &step.input, tool, None);
    rules.map_or_else(|_| tool.effect(&step.input), |rules| rules.effect)
}

/// Whether the plan says that the task goes on where this step has failed for good.
pub(crate) fn goes_on(step: &StepRow) -> bool {
    let said = step.setting("on_error");
    said.and_then(Value::as_str) == Some("continue")
}

/// What a plan says of a step, as it is stored.
struct Settings<'a>(&'a Map<String, Value>);

impl<'a> Settings<'a> {
    fn goes_on(&self) -> Result<bool, String> {
        match self.text("on_error")? {
            None | Some("fail") => Ok(false),
            Some("continue") => Ok(true),
            Some(other) => Err(format!("its setting `on_error` is `{other}`; there are fail and continue")),
        }
    }

    fn text(&self, name: &str) -> Result<Option<&'a str>, String> {
        match self.0.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(format!("its setting `{name}` is {other}, not text")),
        }
    }

    fn length(&self, name: &str) -> Result<Option<Duration>, String> {
        let parsed =
            |text| tools::parse_length(text).ok_or_else(|| format!("its setting `{name}` is not {}", tools::LENGTH));
        self.text(name)?.map(parsed).transpose()
    }

    fn own(&self) -> Result<Option<Settings<'a>>, String> {
        match self.0.get("retry") {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Object(retry)) => Ok(Some(Settings(retry))),
            Some(_) => Err("its setting `retry` is not a map".to_owned()),
        }
    }

    fn attempts(&self) -> Result<Option<u32>, String> {
        let Some(limit) = self.own()?.and_then(|retry| retry.0.get("max_attempts").cloned()) else { return Ok(None) };
        let number = limit.as_u64().and_then(|number| u32::try_from(number).ok()).filter(|number| *number > 0);
        number.map(Some).ok_or_else(|| format!("its setting `max_attempts` is {limit}, not a whole number from 1"))
    }

    fn retry(&self, own: Option<Backoff>) -> Result<Option<Backoff>, String> {
        let Some(retry) = self.own()? else { return Ok(None) };
        let default = own.unwrap_or(Backoff::REMOTE);
        let first = retry.length("backoff")?.unwrap_or(default.first);
        Ok(Some(Backoff { first, longest: retry.length("max_backoff")?.unwrap_or(default.longest), ..default }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use store::model::{StepState, TaskId};
    use tools::Registry;

    fn row(settings: Value) -> StepRow {
        let Value::Object(settings) = settings else { unreachable!() };
        StepRow {
            idx: 0,
            tool: "echo".into(),
            input: Map::new(),
            state: StepState::default(),
            has_output: false,
            settings: Some(settings),
            checkpoint: None,
            answer: None,
        }
    }

    fn rules(settings: Value, said: Option<u32>) -> Result<Rules, String> {
        let tools = Registry::builtin();
        Rules::of(&row(settings), &Map::new(), tools.find("echo").unwrap().as_ref(), said)
    }

    #[test]
    fn the_plan_comes_before_the_environment_and_that_before_the_tool() {
        let limit = |settings, said| rules(settings, said).unwrap().max_attempts;
        assert_eq!(limit(json!({}), None), 3);
        assert_eq!(limit(json!({}), Some(7)), 7);
        assert_eq!(limit(json!({ "retry": { "max_attempts": 2 } }), Some(7)), 2);
        assert_eq!(limit(json!({ "retry": { "backoff": "1s" } }), Some(7)), 7);
        let said = rules(json!({ "effect": "once", "on_error": "continue", "timeout": "30s" }), None).unwrap();
        assert_eq!((said.effect, said.goes_on, said.timeout), (Effect::Once, true, Some(Duration::from_secs(30))));
        assert_eq!(rules(json!({ "effect": "once", "check": {} }), None).unwrap().effect, Effect::Verifiable);
        assert_eq!(rules(json!({ "on_error": "fail" }), None).unwrap().effect, Effect::Pure);
    }

    #[test]
    fn settings_that_make_no_sense_are_named() {
        for (settings, says) in [
            (json!({ "effect": "often" }), "often"),
            (json!({ "effect": 1 }), "`effect`"),
            (json!({ "timeout": "soon" }), "`timeout`"),
            (json!({ "on_error": "go" }), "`on_error`"),
            (json!({ "retry": 3 }), "`retry`"),
            (json!({ "retry": { "max_attempts": 0 } }), "`max_attempts`"),
            (json!({ "retry": { "backoff": 1 } }), "`backoff`"),
        ] {
            let error = rules(settings, None).unwrap_err();
            assert!(error.contains(says), "{error}");
        }
    }

    #[test]
    fn what_a_new_step_says_is_checked() {
        let tools = Registry::builtin();
        let check = |settings: Value| {
            let Value::Object(settings) = settings else { unreachable!() };
            let step = PlannedStep { settings: Some(settings), ..PlannedStep::new("echo", Map::new()) };
            let tool = tools.find("echo").unwrap();
            super::check(&step, tool.as_ref())
        };
        assert_eq!(check(json!({ "id": "note_1", "retry": { "backoff": "1s" } })), Ok(()));
        assert_eq!(check(json!({ "on_error": "continue" })), Ok(()));
        for (settings, says) in [
            (json!({ "id": "1note" }), "must be a letter"),
            (json!({ "id": "a-b" }), "must be a letter"),
            (json!({ "id": 7 }), "`id`"),
            (json!({ "retry": { "backof": "1s" } }), "`backof`"),
            (json!({ "effect": "verifiable" }), "no `check`"),
            (json!({ "timeout": "1y" }), "`timeout`"),
        ] {
            let error = check(settings).unwrap_err();
            assert!(error.contains(says), "{error}");
        }
    }

    #[test]
    fn a_pause_doubles_up_to_its_longest_and_is_never_less_than_what_was_asked_for() {
        let rules =
            rules(json!({ "retry": { "max_attempts": 9, "backoff": "1s", "max_backoff": "5s" } }), None).unwrap();
        let (key, now) = (IdempotencyKey::new(TaskId::new("t").unwrap(), 0), Timestamp::from_micros(0));
        let pause = |charged| rules.retry_at(&key, charged, true, None, now).unwrap().as_micros();
        for (charged, whole) in [(1, 1_000_000), (2, 2_000_000), (3, 4_000_000), (4, 5_000_000), (8, 5_000_000)] {
            assert!((whole / 2..=whole).contains(&pause(charged)), "{charged}: {}", pause(charged));
            assert_eq!(pause(charged), pause(charged), "the same journal comes from the same run");
        }
        let other = IdempotencyKey::new(TaskId::new("u").unwrap(), 0);
        assert_ne!(rules.retry_at(&other, 8, true, None, now), rules.retry_at(&key, 8, true, None, now));
        let asked = rules.retry_at(&key, 1, true, Some(Duration::from_secs(3600)), now).unwrap();
        assert_eq!(asked.as_micros(), 3_600_000_000);
        assert_eq!(rules.retry_at(&key, 9, true, None, now), None, "there is no next attempt");
    }

    #[test]
    fn the_plain_rule_is_at_once() {
        let (key, now) = (IdempotencyKey::new(TaskId::new("t").unwrap(), 0), Timestamp::from_micros(0));
        let plain = rules(json!({}), None).unwrap();
        assert_eq!(plain.retry_at(&key, 1, true, None, now), None);
        assert!(plain.retry_at(&key, 1, true, Some(Duration::from_secs(1)), now).is_some(), "unless it was asked for");
    }
}

//! What holds for every tool that there is, and for every one that is added.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Map, Value};
use store::Crash;
use store::model::{IdempotencyKey, Plan, TaskId, codec};
use tools::{
    Attempt, Audit, Effect, Input, Outputs, Registry, Spec, Stop, Tool, ToolContext, ToolError, World, schema_of,
};

use crate::support::{folder, names, recording, tree, world};

/// Those whose example can be run here; what the others need is in tests of their own.
fn runnable() -> Vec<Arc<dyn Tool>> {
    Registry::builtin().iter().filter(|tool| tool.spec().example.needs.is_none()).cloned().collect()
}

/// The example's plan with the example's files, which are given absolute names.
fn example(spec: &Spec, folder: &Path) -> Plan {
    let mut plan = codec::plan_from_json(&spec.example.plan).unwrap();
    for (name, content) in &spec.example.files {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        for value in plan.steps.iter_mut().flat_map(|step| step.input.values_mut()).filter(|value| *value == name) {
            *value = path.to_str().unwrap().into();
        }
    }
    plan
}

/// One attempt of a step of the plan.
fn attempt(plan: &Plan, step: u32, outputs: &Outputs, world: &World, crash: &Crash) -> Map<String, Value> {
    let planned = &plan.steps[step as usize];
    let tools = Registry::builtin();
    let tool = tools.find(&planned.tool).unwrap();
    let named = tools::named_steps(tool.spec(), &planned.input);
    let outputs = outputs.iter().filter(|(step, _)| named.contains(step)).map(|(k, v)| (*k, v.clone())).collect();
    let key = IdempotencyKey::new(TaskId::new("t").unwrap(), step);
    let ctx = ToolContext {
        key: &key,
        world,
        outputs: &outputs,
        crash: crash.scope(Some(step)),
        stop: &Stop::default(),
        attempt: Attempt::first(Effect::Keyed),
    };
    let output = tool.call(&ctx, Input(&planned.input)).unwrap();
    assert_eq!(tools::check_output(tool.spec(), &output), Ok(()), "{}", planned.tool);
    // An audit that finds nothing must not be one that never finds anything; each tool's own tests see to that.
    let sound = !matches!(tool.audit(&ctx, Input(&planned.input), &output), Audit::Differs(_));
    assert!(sound || world.unsafe_effects, "{} does not find its own effect", planned.tool);
    output
}

/// Runs the example up to its last step, and that step twice. The sites that the last step passed, the two outputs, and
/// whether the world was the same after both.
fn twice(tool: &dyn Tool, unsafe_effects: bool) -> (Vec<String>, [Map<String, Value>; 2], bool) {
    let folder = folder();
    let world = World { unsafe_effects, home: folder.path().to_owned(), ..world(folder.path()) };
    let plan = example(tool.spec(), folder.path());
    let last = u32::try_from(plan.steps.len()).unwrap() - 1;
    let mut outputs = Outputs::new();
    for step in 0..last {
        let output = attempt(&plan, step, &outputs, &world, &Crash::off());
        outputs.insert(step, output);
    }
    let (crash, seen) = recording();
    let first = attempt(&plan, last, &outputs, &world, &crash);
    let after = tree(folder.path());
    let second = attempt(&plan, last, &outputs, &world, &crash);
    let sites = seen.lock().unwrap().clone();
    (sites, [first, second], tree(folder.path()) == after)
}

#[test]
fn a_second_attempt_under_one_key_changes_nothing() {
    for tool in runnable() {
        let name = &tool.spec().name;
        let (_, [mut first, mut second], same) = twice(tool.as_ref(), false);
        assert!(same, "{name} has its effect twice");
        let flag = |output: &mut Map<String, Value>| output.remove("deduplicated");
        let flags = (flag(&mut first), flag(&mut second));
        if tool.spec().effect == Effect::Keyed {
            assert_eq!(flags, (Some(false.into()), Some(true.into())), "{name}");
        }
        assert_eq!(first, second, "{name}");
    }
}

/// The test above would see an effect that is repeated.
#[test]
fn the_unsafe_effect_changes_the_world_a_second_time() {
    let tools = Registry::builtin();
    assert!(!twice(tools.find("write_artifact").unwrap().as_ref(), true).2);
}

#[test]
fn every_declared_crash_point_is_passed_and_no_other() {
    for tool in runnable() {
        let spec = tool.spec();
        let passed: BTreeSet<String> = twice(tool.as_ref(), false).0.into_iter().collect();
        let declared: BTreeSet<String> = spec.crash_points.iter().map(|site| site.0.to_owned()).collect();
        assert_eq!(passed, declared, "{}", spec.name);
        assert_eq!(declared.len(), spec.crash_points.len(), "{} declares a point twice", spec.name);
        assert!(declared.iter().all(|site| site.starts_with(&format!("{}.", spec.name))), "{declared:?}");
        assert_eq!(spec.effect == Effect::Pure, declared.is_empty(), "an effect has points around it: {}", spec.name);
    }
}

/// A tool whose file exists and whose row was forgotten would never run, and no other test would say so.
#[test]
fn every_file_under_builtin_is_a_tool_in_the_list() {
    let files: Vec<String> = names(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src/builtin"))
        .into_iter()
        .map(|name| name.strip_suffix(".rs").map(str::to_owned).unwrap_or(name))
        .filter(|name| name != "mod")
        .collect();
    let listed: Vec<String> = Registry::builtin().iter().map(|tool| tool.spec().name.clone()).collect();
    assert_eq!(files, listed, "one file per tool, listed by name");
}

#[test]
fn every_tool_is_found_by_its_name_and_no_other() {
    let tools = Registry::builtin();
    for tool in tools.iter() {
        assert_eq!(tools.find(&tool.spec().name).unwrap().spec().name, tool.spec().name);
    }
    assert!(tools.find("fetsh").is_none() && tools.find("").is_none() && tools.find("Fetch").is_none());
}

/// Tools were looked up in one list that could not be changed: no program could have one of its own.
#[test]
fn a_program_may_have_tools_of_its_own_and_their_effect_depends_on_the_input() {
    /// Reads or sends, whatever the input says; made while the program runs.
    struct Either(Spec);
    impl Tool for Either {
        fn spec(&self) -> &Spec {
            &self.0
        }
        fn effect(&self, input: &Map<String, Value>) -> Effect {
            if input["value"] == "GET" { Effect::Pure } else { self.0.effect }
        }
        fn call(&self, _: &ToolContext<'_>, _: Input<'_>) -> Result<Map<String, Value>, ToolError> {
            Ok(Map::new())
        }
    }
    let mut tools = Registry::builtin();
    let echo = tools.find("echo").unwrap().spec().clone();
    for (name, replaces) in [("either".to_owned(), false), ("echo".to_owned(), true)] {
        let spec = Spec { name, effect: Effect::Keyed, ..echo.clone() };
        assert_eq!(tools.add(Arc::new(Either(spec))).is_some(), replaces);
    }
    let plan =
        r#"{"goal":"g","steps":[{"tool":"either","input":{"value":"GET"}},{"tool":"echo","input":{"value":1}}]}"#;
    let plan = codec::plan_from_json(plan).unwrap();
    assert_eq!(tools::check_plan(&tools, &plan), Ok(()));
    assert!(tools::check_plan(&Registry::builtin(), &plan).is_err());
    let effects = plan.steps.iter().map(|step| tools.find(&step.tool).unwrap().effect(&step.input));
    assert_eq!(effects.collect::<Vec<_>>(), [Effect::Pure, Effect::Keyed]);
}

#[test]
fn schemas_are_closed_objects_whose_fields_are_explained() {
    let tools = Registry::builtin();
    for spec in tools.iter().map(|tool| tool.spec()) {
        for fields in [&spec.input, &spec.output] {
            let schema = schema_of(fields);
            assert_eq!(schema["type"], "object");
            assert_eq!(schema["additionalProperties"], false);
            let properties = schema["properties"].as_object().unwrap();
            assert_eq!(properties.len(), fields.len(), "{} names a field twice", spec.name);
            let needed = fields.iter().filter(|field| field.required).map(|field| Value::from(field.name.as_str()));
            assert_eq!(schema["required"].as_array().unwrap(), &needed.collect::<Vec<_>>());
            for field in fields {
                assert!(!properties[&field.name]["description"].as_str().unwrap().is_empty());
            }
        }
    }
}

//! What `agent tools` says of the tools and crash points.

use std::collections::BTreeSet;

use fixtures::contract;
use serde_json::Value;

use crate::lab::Lab;

#[test]
fn the_document_has_every_tool_with_schemas_points_and_an_example() {
    let document = Lab::new().agent(["tools", "--json"]).exits(0).json();
    assert_eq!(document["schema"], 1);
    let tools = document["tools"].as_array().unwrap();
    let names: Vec<&str> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    for name in ["echo", "fetch", "summarize", "write_artifact"] {
        assert!(names.contains(&name), "{name}");
    }
    for tool in tools {
        assert!(["pure", "keyed", "verifiable", "once"].contains(&tool["effect"].as_str().unwrap()));
        assert!(!tool["about"].as_str().unwrap().is_empty());
        for schema in ["input_schema", "output_schema"] {
            assert_eq!(tool[schema]["type"], "object", "{schema}");
            assert!(tool[schema]["properties"].is_object() && tool[schema]["required"].is_array());
        }
    }
    let scopes: BTreeSet<(&str, &str)> = document["crash_points"]
        .as_array()
        .unwrap()
        .iter()
        .map(|point| (point["site"].as_str().unwrap(), point["scope"].as_str().unwrap()))
        .collect();
    for site in contract::CRASH_SITES {
        assert!(scopes.contains(&(site, "step")), "{site}");
    }
    for site in ["recover.swept", "run.started", "commit.written", "commit.done"] {
        assert!(scopes.contains(&(site, "run")), "{site}");
    }
}

/// Harnesses take the examples and points from the document, so both must work as they stand.
#[test]
fn every_example_runs_and_passes_only_points_that_are_listed() {
    let document = Lab::new().agent(["tools", "--json"]).exits(0).json();
    let mut listed: BTreeSet<String> =
        document["crash_points"].as_array().unwrap().iter().map(|point| text(&point["site"])).collect();
    let runs = |tool: &&Value| tool["example"]["needs"].is_null();
    for tool in document["tools"].as_array().unwrap().iter().filter(runs) {
        listed.extend(tool["crash_points"].as_array().unwrap().iter().map(text));
    }
    let mut passed = BTreeSet::new();
    for tool in document["tools"].as_array().unwrap().iter().filter(runs) {
        let lab = Lab::new();
        lab.write("plan.json", tool["example"]["plan"].to_string());
        for (name, content) in tool["example"]["files"].as_object().unwrap() {
            lab.write(name, text(content));
        }
        let steps = tool["example"]["plan"]["steps"].as_array().unwrap();
        assert_eq!(steps.last().unwrap()["tool"], tool["name"], "an example ends with its tool");
        lab.agent(["create", "t", "plan.json"]).exits(0);
        let last = format!("after_effect:{}", steps.len() - 1);
        for point in [Some(last.as_str()), None] {
            let call = lab.call(["run", "t"]).env("AGENT_CRASH_RECORD", "recording");
            match point {
                Some(point) => call.env("AGENT_CRASH_AT", point).ran().exits(137),
                None => call.ran().exits(0),
            };
        }
        lab.agent(["verify"]).exits(0);
        let recording = lab.sandbox.read("recording");
        passed.extend(recording.lines().map(|line| line.split([':', '#']).next().unwrap().to_owned()));
    }
    assert_eq!(passed, listed, "each is passed in one of the examples");
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

#[test]
fn the_table_for_people_names_every_tool_and_point() {
    let lab = Lab::new();
    let document = lab.agent(["tools", "--json"]).exits(0).json();
    let table = lab.agent(["tools"]).exits(0).stdout;
    let names = document["tools"].as_array().unwrap().iter().map(|tool| &tool["name"]);
    for name in names.chain(document["crash_points"].as_array().unwrap().iter().map(|point| &point["site"])) {
        assert!(table.contains(name.as_str().unwrap()), "{name}");
    }
}

#[test]
fn all_of_one_tool_is_told_with_an_example_that_can_be_used() {
    let lab = Lab::new();
    let told = lab.agent(["tools", "exec"]).exits(0).stdout;
    for word in ["at most once", "6 attempts", "command", "optional", "Example:", "with file_note.sh:"] {
        assert!(told.contains(word), "{word}: {told}");
    }
    let one = lab.agent(["tools", "--json", "sleep"]).exits(0).json();
    assert_eq!((&one["name"], &one["effect"]), (&Value::from("sleep"), &Value::from("pure")));
    lab.agent(["tools", "shout"]).fails(64).says("there is no tool `shout`; there are approval, ");
}

//! `agent tools`

use serde::Serialize;
use serde_json::Value;
use store::crash::{RUN_SITES, STEP_SITES};
use tools::{ALL, Spec, schema_of};

use crate::exit::{Exit, Failure};
use crate::output::{Output, table};

#[derive(Serialize)]
struct Inventory {
    schema: u32,
    crash_points: Vec<Site>,
    tools: Vec<Tool>,
}

#[derive(Serialize)]
struct Site {
    site: &'static str,
    scope: &'static str,
}

#[derive(Serialize)]
struct Tool {
    name: &'static str,
    about: &'static str,
    effect: &'static str,
    input_schema: Value,
    output_schema: Value,
    crash_points: Vec<&'static str>,
    example: Example,
}

#[derive(Serialize)]
struct Example {
    plan: Value,
    files: std::collections::BTreeMap<&'static str, &'static str>,
}

pub(crate) fn tools(json: bool) -> Result<Exit, Failure> {
    let mut out = Output::new();
    if json {
        let tools = ALL.iter().map(|tool| describe(tool.spec())).collect::<Result<_, _>>()?;
        out.pretty(&Inventory { schema: 1, crash_points: sites(), tools })?;
    } else {
        let rows = ALL.iter().map(|tool| {
            let spec = tool.spec();
            let input: Vec<_> =
                spec.input.iter().map(|field| format!("{}: {}", field.name, field.kind.words())).collect();
            vec![spec.name.to_owned(), spec.effect.as_str().to_owned(), input.join(", "), spec.about.to_owned()]
        });
        out.line(&table(&["TOOL", "EFFECT", "INPUT", "WHAT IT DOES"], rows))?;
        out.line("")?;
        out.line(&format!("Crash points of every step: {}", names(STEP_SITES)))?;
        out.line(&format!("Crash points outside steps: {}", names(RUN_SITES)))?;
        for spec in ALL.iter().map(|tool| tool.spec()).filter(|spec| !spec.crash_points.is_empty()) {
            out.line(&format!("Crash points of {}: {}", spec.name, names(spec.crash_points)))?;
        }
    }
    out.finish()?;
    Ok(Exit::Done)
}

fn sites() -> Vec<Site> {
    let steps = STEP_SITES.iter().map(|site| Site { site: site.0, scope: "step" });
    steps.chain(RUN_SITES.iter().map(|site| Site { site: site.0, scope: "run" })).collect()
}

fn describe(spec: &'static Spec) -> Result<Tool, Failure> {
    let plan = serde_json::from_str(spec.example.plan)
        .map_err(|error| Failure::new(Exit::Internal, format!("the example of {} is not JSON: {error}", spec.name)))?;
    Ok(Tool {
        name: spec.name,
        about: spec.about,
        effect: spec.effect.as_str(),
        input_schema: schema_of(spec.input),
        output_schema: schema_of(spec.output),
        crash_points: spec.crash_points.iter().map(|site| site.0).collect(),
        example: Example { plan, files: spec.example.files.iter().copied().collect() },
    })
}

fn names(sites: &[store::CrashSite]) -> String {
    sites.iter().map(|site| site.0).collect::<Vec<_>>().join(", ")
}

//! `agent tools`

use serde::Serialize;
use serde_json::Value;
use store::CrashSite;
use store::crash::{RUN_SITES, STEP_SITES};
use tools::{Backoff, Effect, Field, Registry, Spec, schema_of};

use super::Parts;

use crate::exit::{Exit, Failure};
use crate::output::{Output, table};
use crate::{action_log, engine};

#[derive(Serialize)]
struct Inventory<'a> {
    schema: u32,
    crash_points: Vec<Site>,
    /// Passed only by runs that have what `needs` says.
    further_crash_points: Vec<FurtherSite>,
    tools: Vec<Tool<'a>>,
}

#[derive(Serialize)]
struct Site {
    site: &'static str,
    scope: &'static str,
}

#[derive(Serialize)]
struct FurtherSite {
    #[serde(flatten)]
    site: Site,
    needs: &'static str,
}

#[derive(Serialize)]
struct Tool<'a> {
    name: &'a str,
    about: &'a str,
    effect: &'static str,
    input_schema: Value,
    output_schema: Value,
    crash_points: Vec<&'static str>,
    example: Example<'a>,
}

#[derive(Serialize)]
struct Example<'a> {
    plan: Value,
    files: std::collections::BTreeMap<&'a str, &'a str>,
    /// What must be there beside the files.
    #[serde(skip_serializing_if = "Option::is_none")]
    needs: Option<&'a str>,
}

pub(crate) fn tools(name: Option<&str>, json: bool) -> Result<Exit, Failure> {
    let mut out = Output::new();
    let all = Parts::right().tools;
    if let Some(name) = name {
        let spec = all.find(name).map(|tool| tool.spec()).ok_or_else(|| no_such(all, name))?;
        if json {
            out.pretty(&describe(spec)?)?;
        } else {
            explain(&mut out, spec)?;
        }
    } else if json {
        let tools = all.iter().map(|tool| describe(tool.spec())).collect::<Result<_, _>>()?;
        let (crash_points, further_crash_points) = (sites(STEP_SITES, RUN_SITES), further_sites());
        out.pretty(&Inventory { schema: 1, crash_points, further_crash_points, tools })?;
    } else {
        let rows = all.iter().map(|tool| {
            let spec = tool.spec();
            let optional = |field: &Field| if field.required { "" } else { "?" };
            let input: Vec<_> = spec.input.iter().map(|field| format!("{}{}", field.name, optional(field))).collect();
            vec![spec.name.clone(), spec.effect.as_str().to_owned(), input.join(", "), spec.about.clone()]
        });
        out.line(&table(&["TOOL", "EFFECT", "INPUT", "WHAT IT DOES"], rows))?;
        out.line("")?;
        out.line("`agent tools NAME` says all of one tool, with an example.")?;
        out.line("")?;
        out.line(&format!("Crash points of every step: {}", names(STEP_SITES)))?;
        out.line(&format!("Crash points outside steps: {}", names(RUN_SITES)))?;
        for (needs, step, run) in FURTHER_SITES {
            let all: std::collections::BTreeSet<_> = step.iter().chain(run).copied().collect();
            out.line(&format!("Crash points with {needs}: {}", names(&all.into_iter().collect::<Vec<_>>())))?;
        }
        for spec in all.iter().map(|tool| tool.spec()).filter(|spec| !spec.crash_points.is_empty()) {
            out.line(&format!("Crash points of {}: {}", spec.name, names(&spec.crash_points)))?;
        }
    }
    out.finish()?;
    Ok(Exit::Done)
}

fn no_such(all: &Registry, name: &str) -> Failure {
    let known: Vec<_> = all.iter().map(|tool| tool.spec().name.as_str()).collect();
    Failure::new(Exit::Usage, format!("there is no tool `{name}`; there are {}", known.join(", ")))
}

/// All of one tool, for people.
fn explain(out: &mut Output, spec: &Spec) -> Result<(), Failure> {
    out.line(&format!("{}: {}", spec.name, spec.about))?;
    out.line("")?;
    out.line(&format!("Effect: at most {}: {}.", spec.effect, after_a_crash(spec.effect)))?;
    if let Some(Backoff { max_attempts, first, longest }) = spec.retry {
        let (first, longest) = (first.as_secs(), longest.as_secs());
        out.line(&format!(
            "Tried again where that may help: {max_attempts} attempts, after {first} s at first, {longest} s at most."
        ))?;
    }
    for (title, fields) in [("INPUT", &spec.input), ("OUTPUT", &spec.output)] {
        out.line("")?;
        let rows = fields.iter().map(|field| {
            let needed = if field.required { "" } else { "optional" };
            vec![field.name.clone(), needed.to_owned(), field.kind.words(), field.about.clone()]
        });
        out.line(&table(&[title, "", "WHAT", "WHAT IT MEANS"], rows))?;
    }
    if spec.open {
        out.line("(and whatever further fields it has)")?;
    }
    out.line("")?;
    let needs = spec.example.needs.map(|needs| format!(" (it needs {needs})")).unwrap_or_default();
    out.line(&format!("Example{needs}:"))?;
    out.pretty(&describe(spec)?.example.plan)?;
    for (name, text) in &spec.example.files {
        out.line("")?;
        out.line(&format!("with {name}:"))?;
        text.lines().try_for_each(|line| out.line(&format!("    {line}")))?;
    }
    Ok(())
}

fn after_a_crash(effect: Effect) -> &'static str {
    match effect {
        Effect::Pure => "it changes nothing, and is run again after a crash",
        Effect::Keyed => "it is run again after a crash with the same key, and has its effect once",
        Effect::Verifiable => {
            "after a crash it is asked whether its effect has happened; where nobody can say, in doubt"
        }
        Effect::Once => "after a crash it may end in doubt, unless the input makes it less (docs/effects.md)",
    }
}

/// What a run must have to pass them, those within steps, those outside.
const FURTHER_SITES: [(&str, &[CrashSite], &[CrashSite]); 2] =
    [("an action log", action_log::STEP_SITES, action_log::RUN_SITES), ("a report", &[], engine::RUN_SITES)];

fn sites(step: &[CrashSite], run: &[CrashSite]) -> Vec<Site> {
    let steps = step.iter().map(|site| Site { site: site.0, scope: "step" });
    steps.chain(run.iter().map(|site| Site { site: site.0, scope: "run" })).collect()
}

fn further_sites() -> Vec<FurtherSite> {
    let with = |(needs, step, run)| sites(step, run).into_iter().map(move |site| FurtherSite { site, needs });
    FURTHER_SITES.into_iter().flat_map(with).collect()
}

fn describe(spec: &Spec) -> Result<Tool<'_>, Failure> {
    let plan = serde_json::from_str(&spec.example.plan)
        .map_err(|error| Failure::new(Exit::Internal, format!("the example of {} is not JSON: {error}", spec.name)))?;
    Ok(Tool {
        name: &spec.name,
        about: &spec.about,
        effect: spec.effect.as_str(),
        input_schema: schema_of(&spec.input),
        output_schema: schema_of(&spec.output),
        crash_points: spec.crash_points.iter().map(|site| site.0).collect(),
        example: Example {
            plan,
            files: spec.example.files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect(),
            needs: spec.example.needs,
        },
    })
}

fn names(sites: &[CrashSite]) -> String {
    sites.iter().map(|site| site.0).collect::<Vec<_>>().join(", ")
}

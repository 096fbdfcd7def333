//! The gate: what the agent's inventory and the recording runs have shown, against a pinned file. A tool that gains or
//! loses a crash point, a declared point that no recording ever passed and an effectful tool without a control that
//! bites all shut it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use crate::agent::target::Site;
use crate::error::LabError;
use crate::look::lab::Lab;
use crate::play::prepared::Prepared;
use crate::report::model::{ControlReport, GateReport};
use crate::schedule::CrashPoint;

const HEAD: &str = "\
# Every crash point of the agent, as recording runs have shown them: the tool in
# whose step it is passed (`-` for the run itself), its effect class, the site.
# `cargo xtask chaos` fails where this and the agent differ; `--bless` rewrites it.
";

/// The pinned file and what to do with it.
#[derive(Debug, Clone)]
pub struct Gate {
    /// The file.
    pub file: PathBuf,
    /// Rewrite it instead of comparing.
    pub bless: bool,
    /// Whether this run plays every control, so that a missing one can be told.
    pub with_controls: bool,
}

/// What one line of the file says.
type Line = String;

/// Compares (or rewrites) the pinned file.
///
/// # Errors
/// A file that cannot be read or written.
pub fn check(
    gate: &Gate,
    lab: &Lab,
    prepared: &[Arc<Prepared>],
    controls: &[ControlReport],
) -> Result<GateReport, LabError> {
    let found = inventory(lab, prepared);
    let mut differences = never_hit(lab, prepared);
    if gate.with_controls {
        differences.extend(without_control(lab, prepared, controls));
    }
    if gate.bless {
        std::fs::write(&gate.file, render(&found)).map_err(LabError::io("write", &gate.file))?;
    } else {
        let pinned = std::fs::read_to_string(&gate.file).map_err(LabError::io("read", &gate.file))?;
        differences.extend(compare(&parse(&pinned), &found));
    }
    Ok(GateReport {
        file: gate.file.display().to_string(),
        open: differences.is_empty(),
        blessed: gate.bless,
        differences,
    })
}

fn inventory(lab: &Lab, prepared: &[Arc<Prepared>]) -> BTreeSet<Line> {
    let mut lines = BTreeSet::new();
    for ready in prepared {
        for point in ready.discovery.all() {
            let tool = tool_of(ready, &point);
            let effect = match tool {
                "-" => "-",
                name => lab.target.tool(name).map_or("undeclared", |tool| &tool.effect),
            };
            lines.insert(format!("{tool} {effect} {}", point.site));
        }
    }
    lines
}

/// The tool in whose step a point was passed.
fn tool_of<'a>(ready: &'a Prepared, point: &CrashPoint) -> &'a str {
    let step = point.step.and_then(|step| ready.case.steps.get(step));
    step.map_or("-", |step| &step.tool)
}

fn parse(text: &str) -> BTreeSet<Line> {
    let lines = text.lines().map(str::trim);
    lines
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect()
}

fn render(lines: &BTreeSet<Line>) -> String {
    lines.iter().fold(HEAD.to_owned(), |text, line| text + line + "\n")
}

fn compare(pinned: &BTreeSet<Line>, found: &BTreeSet<Line>) -> Vec<String> {
    let new = found.difference(pinned);
    let lost = pinned.difference(found);
    new.map(|line| format!("new: `{line}` is not in the file"))
        .chain(lost.map(|line| format!("lost: `{line}` is in the file, no run passed it")))
        .collect()
}

/// What the inventory declares and no recording has shown. Points of a log or a completion are declared for cases that
/// have one.
fn never_hit(lab: &Lab, prepared: &[Arc<Prepared>]) -> Vec<String> {
    let Some(inventory) = &lab.target.inventory else {
        return Vec::new();
    };
    let mut hit: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for ready in prepared {
        for point in ready.discovery.all() {
            let tool = tool_of(ready, &point);
            hit.entry(point.site.clone()).or_default().insert(tool);
        }
    }
    let mut missing = Vec::new();
    let further = if prepared.iter().any(|ready| ready.case.kind.log().is_some()) {
        &inventory.further_crash_points[..]
    } else {
        &[]
    };
    for site in inventory.crash_points.iter().chain(further) {
        if !hit.get(&site.site).is_some_and(|tools| is_passed(site, tools)) {
            missing.push(format!("never hit: the declared point `{}` of a {}", site.site, site.scope));
        }
    }
    for tool in inventory.tools.iter().filter(|tool| tool.example.needs.is_none()) {
        for site in &tool.crash_points {
            if !hit.get(site).is_some_and(|tools| tools.contains(tool.name.as_str())) {
                missing.push(format!("never hit: the point `{site}` that `{}` declares", tool.name));
            }
        }
    }
    missing
}

/// Whether a site was passed in the scope in which it is declared.
fn is_passed(site: &Site, tools: &BTreeSet<&str>) -> bool {
    match site.scope.as_str() {
        "run" => tools.contains("-"),
        _ => tools.iter().any(|tool| *tool != "-"),
    }
}

fn without_control(lab: &Lab, prepared: &[Arc<Prepared>], controls: &[ControlReport]) -> Vec<String> {
    let effectful: BTreeSet<&str> = prepared
        .iter()
        .flat_map(|ready| &ready.case.steps)
        .map(|step| step.tool.as_str())
        .chain(lab.target.examples.iter().filter_map(|case| case.example_of.as_deref()))
        .filter(|tool| lab.target.has_effect(tool))
        .collect();
    let bites = |tool: &str| controls.iter().any(|c| c.tool == tool && c.must_bite && c.bit);
    effectful
        .into_iter()
        .filter(|tool| !bites(tool))
        .map(|tool| format!("no control: no negative control of `{tool}` bites"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(lines: &[&str]) -> BTreeSet<Line> {
        lines.iter().map(|&line| line.to_owned()).collect()
    }

    #[test]
    fn the_file_comes_back_as_it_was_written() {
        let lines = set(&["- - run.started", "fetch pure before_effect"]);
        assert_eq!(parse(&render(&lines)), lines);
        assert_eq!(parse("  fetch   pure  before_effect\n\n# no\n"), set(&["fetch pure before_effect"]));
    }

    #[test]
    fn a_point_that_was_passed_in_another_scope_only_is_not_hit() {
        let site = |scope: &str| Site { site: "log.appended".to_owned(), scope: scope.to_owned() };
        for (tools, run, step) in
            [(vec!["-"], true, false), (vec!["fetch"], false, true), (vec!["-", "fetch"], true, true)]
        {
            let tools = tools.into_iter().collect();
            assert_eq!((is_passed(&site("run"), &tools), is_passed(&site("step"), &tools)), (run, step));
        }
    }

    #[test]
    fn what_is_new_and_what_is_lost_is_named() {
        let pinned = set(&["a pure x", "b keyed y"]);
        assert_eq!(compare(&pinned, &pinned), Vec::<String>::new());
        let found = set(&["a pure x", "b pure y"]);
        let differences = compare(&pinned, &found);
        assert_eq!(differences.len(), 2);
        assert!(differences[0].starts_with("new: `b pure y`"), "{differences:?}");
        assert!(differences[1].starts_with("lost: `b keyed y`"), "{differences:?}");
    }
}

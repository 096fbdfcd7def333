//! What people and machines get to see of a run.

pub mod model;

use std::fmt::Write as _;

use model::{RunReport, ScenarioReport, VerdictKind};

/// How many failed scenarios are told in full.
const MAX_TOLD: usize = 20;

/// The run in plain text: failures with their evidence and replay command,
/// then a row a method, then the sum.
#[must_use]
pub fn summary(report: &RunReport) -> String {
    let mut text = String::new();
    let failed: Vec<_> = report.scenarios.iter().filter(|scenario| scenario.verdict != VerdictKind::Holds).collect();
    for scenario in failed.iter().take(MAX_TOLD) {
        text += &failure(scenario);
    }
    if failed.len() > MAX_TOLD {
        let _ = writeln!(text, "... and {} more failed scenarios\n", failed.len() - MAX_TOLD);
    }
    for method in &report.methods {
        let _ = writeln!(
            text,
            "{:<11} {:>5} played {:>5} held {:>4} violated {:>4} not reached {:>6} cycles {:>7.2} s{}",
            method.name,
            method.scenarios,
            method.held,
            method.violated,
            method.not_reached,
            method.cycles,
            method.duration_s,
            match method.unreachable {
                0 => String::new(),
                count => format!("  ({count} unreachable by design)"),
            }
        );
    }
    if let Some(gate) = &report.gate {
        let state = if gate.open { "open" } else { "SHUT" };
        let _ = writeln!(text, "gate {state}: {}", gate.file);
        for difference in &gate.differences {
            let _ = writeln!(text, "  {difference}");
        }
    }
    if let Some(why) = &report.cut_short {
        let _ = writeln!(text, "CUT SHORT: {why}");
    }
    let _ = writeln!(
        text,
        "{:?}: {} scenarios, {} failed, {} cycles{} in {:.1} s, seed {}, {} jobs",
        report.outcome,
        report.scenarios.len(),
        failed.len(),
        report.cycles,
        report.cycles_per_second.map_or(String::new(), |speed| format!(" ({speed:.0}/s in points and nested)")),
        report.duration_s,
        report.seed,
        report.jobs
    );
    text
}

/// One failed scenario in plain text.
#[must_use]
pub fn failure(scenario: &ScenarioReport) -> String {
    let mut text = format!("FAILED {}: {}\n", scenario.id, scenario.title);
    for finding in &scenario.findings {
        let word = match finding.verdict {
            VerdictKind::NotReached => "not reached",
            _ => "violated",
        };
        let why = finding.why.replace('\n', "\n    ");
        let _ = writeln!(text, "  {word} {}:\n    {why}", finding.invariant);
    }
    let _ = writeln!(text, "  again: {}\n", scenario.replay);
    text
}

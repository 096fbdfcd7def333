//! No crash: the reference outcome for all others. Played twice, so that what
//! differs from run to run anyway is not blamed on a crash.

use std::sync::Arc;

use super::Method;
use crate::bench::Bench;
use crate::error::LabError;
use crate::invariant;
use crate::scenario::{Played, Scenario};
use crate::verdict::Verdict;

/// See the file's head.
pub(super) const METHOD: Method =
    Method { name: "baseline", about: "no crash; the reference outcome for all others", scenarios };

fn scenarios(bench: &Arc<Bench>) -> Result<Vec<Scenario>, LabError> {
    let title = "run twice without a crash".to_owned();
    let play = |bench: &Bench| Ok(judge(bench));
    Ok(vec![Scenario::new(METHOD.name, bench, "clean", title, play)])
}

/// The runs were played when the bench was made ready; here they are judged.
fn judge(bench: &Bench) -> Played {
    let mut played = Played::judged(bench.baseline.evidence.clone(), &bench.baseline);
    if played.findings.is_empty() {
        played.findings = invariant::judge(&bench.second, &bench.baseline);
        for finding in &mut played.findings {
            finding.why = format!("in a second clean run: {}", finding.why);
        }
    }
    played.and("declared_effects", declared(bench));
    played
}

/// A tool that is declared without an effect and changes files would get no
/// negative control: nobody would see its effect twice.
fn declared(bench: &Bench) -> Verdict {
    let changed = bench.discovery.changed_files.iter();
    let tools = changed.map(|&step| bench.case.steps[step].tool.as_str());
    let hidden: Vec<String> = tools
        .filter(|tool| !bench.lab.target.has_effect(tool))
        .map(|tool| format!("`{tool}` is declared pure and changes files"))
        .collect();
    Verdict::of(&hidden)
}

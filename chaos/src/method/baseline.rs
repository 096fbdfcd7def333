//! No crash: the reference outcome for all others. Played twice, so that what differs from run to run anyway is not
//! blamed on a crash.

use std::sync::Arc;

use serde_json::Value;

use crate::agent::process::Ended;
use crate::case::{TASK, inbox};
use crate::contract::code::PERSON;
use crate::error::LabError;
use crate::judge;
use crate::judge::verdict::Verdict;
use crate::look::evidence::{Evidence, Expect};
use crate::play::method::Method;
use crate::play::prepared::Prepared;
use crate::play::scenario::{Played, Scenario};

/// See the file's head.
pub(super) const METHOD: Method =
    Method { name: "baseline", about: "no crash; the reference outcome for all others", scenarios };

fn scenarios(ready: &Arc<Prepared>) -> Result<Vec<Scenario>, LabError> {
    let title = "run twice without a crash".to_owned();
    let play = |ready: &Prepared| Ok(judge(ready));
    Ok(vec![Scenario::new(METHOD.name, ready, "clean", title, play)])
}

/// The property that a clean run can be judged at all. Where it is violated, nothing else is asked: what else is
/// wrong follows from it.
pub const RUNS_CLEAN: &str = "runs_clean";

/// The runs were played when the ready was made ready; here they are judged.
fn judge(ready: &Prepared) -> Played {
    let broken = [&ready.baseline.evidence, &ready.second].into_iter().find_map(cannot_be_judged);
    if let Some(why) = broken {
        let mut played = Played { evidence: Some(ready.baseline.evidence.clone()), ..Played::default() };
        played.and(RUNS_CLEAN, Verdict::Violated(why));
        return played;
    }
    let mut played = Played::judged(ready.baseline.evidence.clone(), &ready.baseline);
    if played.findings.is_empty() {
        played.findings = judge::judge(&ready.second, &ready.baseline);
        for finding in &mut played.findings {
            finding.why = format!("in a second clean run: {}", finding.why);
        }
    }
    played.and("declared_effects", declared(ready));
    let second = judge::clean_outcome(&ready.second);
    let both = [judge::clean_outcome(&ready.baseline.evidence), second];
    played.and("clean_outcome", both.into_iter().find(|verdict| !verdict.holds()).unwrap_or(Verdict::Holds));
    if let Some(report) = ready.case.kind.report(TASK) {
        let report = ready.baseline.last().world.get(&report);
        let must = inbox::results(&ready.case.files);
        played.and("report_of_contract", of_contract(report.map(Vec::as_slice), &must));
    }
    played
}

/// Why a run without a crash shows nothing of what the agent would do after one: it did not come to its end, or has
/// stored nothing. One line, the first of what is wrong.
fn cannot_be_judged(evidence: &Evidence) -> Option<String> {
    let creates = evidence.creates.iter().map(|create| ("create".to_owned(), create));
    // Who asks a person has done what it should, and goes on when it is answered.
    let runs = evidence.runs.iter().enumerate().filter(|(_, run)| run.expect != Expect::Ends(PERSON));
    let runs = runs.map(|(i, run)| (evidence.label(i), &run.outcome));
    for (label, outcome) in creates.chain(runs) {
        if outcome.ended != Ended::Exited(0) {
            return Some(format!("{label}, without any crash: {}, must end with 0", outcome.describe()));
        }
    }
    let last = evidence.last();
    let stored = evidence.tasks.iter().all(|task| last.tables.task(task).is_some());
    let fault = last.faults.first().map_or(String::new(), |fault| format!(" ({fault})"));
    (!stored).then(|| format!("every process ended with 0, and no task is stored{fault}"))
}

/// A tool that is declared without an effect and changes files would get no
/// negative control: nobody would see its effect twice.
fn declared(ready: &Prepared) -> Verdict {
    let changed = ready.discovery.changed_files.iter();
    let tools = changed.map(|&step| ready.case.steps[step].tool.as_str());
    let hidden: Vec<String> = tools
        .filter(|tool| !ready.lab.target.has_effect(tool))
        .map(|tool| match ready.lab.target.tool(tool) {
            Some(_) => format!("`{tool}` is declared pure and changes files"),
            None => format!("`{tool}` has no effect by the contract, and changes files"),
        })
        .collect();
    Verdict::of(&hidden)
}

/// A report that is the same after every crash may still be wrong.
fn of_contract(report: Option<&[u8]>, must: &Value) -> Verdict {
    let is = report.and_then(|report| serde_json::from_slice::<Value>(report).ok());
    let Some(is) = is else {
        return Verdict::Violated("there is no report that is JSON".to_owned());
    };
    let mut complaints = Vec::new();
    let length = |list: &Value| list.as_array().map(Vec::len);
    if length(&is) != length(must) {
        complaints.push(format!("the report has {:?} results, there are {:?} notes", length(&is), length(must)));
    }
    for (i, due) in must.as_array().into_iter().flatten().enumerate() {
        for field in ["file", "words", "sha256"] {
            if is[i][field] != due[field] {
                complaints.push(format!("result {i} has `{field}` {}, must be {}", is[i][field], due[field]));
            }
        }
    }
    Verdict::of(&complaints)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::look::snapshot::Snapshot;
    use crate::testing::Story;

    #[test]
    fn a_clean_run_that_does_not_end_or_stores_nothing_cannot_be_judged_and_one_line_says_why() {
        let mut story = Story::clean();
        assert_eq!(cannot_be_judged(&story.evidence), None);
        story.evidence.runs[0].outcome.stderr = "Traceback\nagent: no such tool\n".to_owned();
        story.evidence.runs[0].outcome.ended = Ended::Exited(65);
        let why = cannot_be_judged(&story.evidence).expect("a reason");
        assert!(why.contains("exit 65, saying `agent: no such tool`") && !why.contains('\n'), "{why}");
        let mut story = Story::clean();
        *story.last() = Snapshot { faults: vec!["there is no database".to_owned()], ..Snapshot::default() };
        let why = cannot_be_judged(&story.evidence).expect("a reason");
        assert!(why.contains("no task is stored (there is no database)"), "{why}");
    }

    #[test]
    fn a_report_with_another_result_or_none_is_rejected() {
        let must = inbox::results(&inbox::case().files);
        let text = |value: &Value| value.to_string().into_bytes();
        assert!(of_contract(Some(&text(&must)), &must).holds());
        assert!(!of_contract(None, &must).holds());
        assert!(!of_contract(Some(b"[{\"file\":"), &must).holds());
        for (field, wrong) in [("file", Value::from("x")), ("words", 1.into()), ("sha256", "e3b0c44298fd".into())] {
            let mut bent = must.clone();
            bent[1][field] = wrong;
            assert!(!of_contract(Some(&text(&bent)), &must).holds(), "{field}");
        }
        let mut short = must.clone();
        short.as_array_mut().expect("a list").pop();
        assert!(!of_contract(Some(&text(&short)), &must).holds());
    }
}

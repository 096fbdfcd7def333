//! JUnit XML, for the test tabs of CI services: a suite a method, a case a scenario. A run that has not passed has at
//! least one case that has not.

use std::time::Duration;

use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};

use super::model::{Conclusion, RunReport, ScenarioReport, VerdictKind};
use super::phrase;
use crate::error::LabError;

/// The whole document.
///
/// # Errors
/// A document that cannot be put into XML.
pub(super) fn document(report: &RunReport) -> Result<String, LabError> {
    let mut all = Report::new("chaos");
    all.set_time(time(report.duration_s));
    for method in &report.methods {
        let mut suite = TestSuite::new(method.name.as_str());
        suite.set_time(time(method.duration_s));
        let own = report.scenarios.iter().filter(|scenario| scenario.method == method.name);
        suite.add_test_cases(own.map(case));
        all.add_test_suite(suite);
    }
    all.add_test_suite(whole(report));
    all.to_string().map_err(|e| LabError::Internal(format!("cannot write JUnit XML: {e}")))
}

fn time(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or_default()
}

fn case(scenario: &ScenarioReport) -> TestCase {
    let status = match scenario.verdict {
        VerdictKind::Holds => TestCaseStatus::success(),
        VerdictKind::Violated | VerdictKind::NotReached => failure(scenario),
    };
    let mut case = TestCase::new(scenario.id.as_str(), status);
    case.set_classname(format!("chaos.{}.{}", scenario.method, scenario.plan));
    case.set_assertions(scenario.checked);
    case.set_time(time(scenario.duration_s));
    case
}

fn failure(scenario: &ScenarioReport) -> TestCaseStatus {
    let mut names: Vec<&str> = scenario.findings.iter().map(|finding| finding.property.as_str()).collect();
    names.dedup();
    let mut text = format!("{}\n", scenario.title);
    for finding in &scenario.findings {
        let word = phrase::verdict(finding.verdict);
        text += &format!("\n{word} {}:\n{}\n", finding.property, finding.why);
    }
    text += &format!("\nagain: {}\n", scenario.replay);
    let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
    status.set_type(phrase::verdict(scenario.verdict).replace(' ', "_"));
    status.set_message(format!("{} {}", phrase::verdict(scenario.verdict), names.join(", ")));
    status.set_description(phrase::harmless(&text));
    status
}

/// What concerns the run as a whole and no single scenario.
fn whole(report: &RunReport) -> TestSuite {
    let mut suite = TestSuite::new("run");
    let mut add = |name: &str, bad: Option<String>| {
        let status = bad.map_or_else(TestCaseStatus::success, |why| {
            let mut status = TestCaseStatus::non_success(NonSuccessKind::Error);
            status.set_message(why);
            status
        });
        let mut case = TestCase::new(name, status);
        case.set_classname("chaos.run");
        suite.add_test_case(case);
    };
    let sentence = || phrase::sentence(report);
    let complete = report.outcome != Conclusion::CutShort && report.cut_short.is_none();
    add("everything that was selected was played", (!complete).then(sentence));
    if let Some(gate) = &report.gate {
        add("the gate is open", (!gate.open).then(|| gate.differences.join("\n")));
    }
    if !report.controls.is_empty() {
        let silent = report.controls.iter().any(phrase::is_silent);
        add("every negative control bites", silent.then(sentence));
    }
    suite
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    fn parsed(report: &RunReport) -> Report {
        Report::deserialize_from_str(&document(report).expect("a document")).expect("XML")
    }

    #[test]
    fn a_green_run_has_a_case_for_each_scenario_and_no_failure() {
        let report = sample::green();
        let read = parsed(&report);
        assert_eq!((read.tests, read.failures, read.errors), (report.scenarios.len() + 3, 0, 0));
        assert_eq!(read.test_suites.len(), report.methods.len() + 1);
    }

    #[test]
    fn failures_are_counted_and_carry_why_and_the_replay_command() {
        let read = parsed(&sample::red());
        assert_eq!((read.failures, read.errors), (3, 1));
        let cases = read.test_suites.iter().flat_map(|suite| &suite.test_cases);
        let case = cases.into_iter().find(|case| case.name.as_str() == "points/report/after_effect:2").expect("it");
        let TestCaseStatus::NonSuccess { message, description, ty, .. } = &case.status else { panic!("{case:?}") };
        assert_eq!(message.as_ref().expect("one").as_str(), "violated effect_once");
        assert_eq!(ty.as_ref().expect("one").as_str(), "violated");
        let text = description.as_ref().expect("one").as_str();
        assert!(text.contains("<script>alert(1)</script>") && text.contains("&") && text.contains("]]>"), "{text}");
        assert!(text.contains("again: chaos replay 'points/report/after_effect:2'"), "{text}");
    }

    #[test]
    fn a_run_that_was_cut_short_is_an_error_although_every_scenario_held() {
        let mut report = sample::green();
        report.outcome = Conclusion::CutShort;
        report.cut_short = Some("the budget ended".to_owned());
        let read = parsed(&report);
        assert_eq!((read.failures, read.errors), (0, 1));
    }
}

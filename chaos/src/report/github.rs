//! What GitHub Actions understands: annotations as lines on the output, and a summary that is appended to a file. Other
//! services set the same variables.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use super::model::{RunReport, ScenarioReport};
use super::phrase::{self, counted, shortened};
use crate::error::LabError;

/// GitHub shows ten errors of one step and drops the rest.
const MAX_SHOWN: usize = 10;
/// Lines, and characters in a line, of one finding.
const WHY: (usize, usize) = (8, 400);

/// What the surroundings ask for; who reads the environment fills it in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GitHub {
    /// Whether annotations are wanted (`GITHUB_ACTIONS`).
    pub annotations: bool,
    /// The file that job summaries are appended to (`GITHUB_STEP_SUMMARY`).
    pub summary: Option<PathBuf>,
}

/// An `::error` line for each failure, at most ten lines in all.
#[must_use]
pub fn annotations(report: &RunReport) -> String {
    let mut errors: Vec<(String, String)> = Vec::new();
    let failed = phrase::failures(report);
    if let Some(why) = whole(report, failed.is_empty()) {
        errors.push(("chaos".to_owned(), why));
    }
    errors.extend(failed.iter().map(|(_, scenario)| (title(scenario), message(scenario))));
    if errors.len() > MAX_SHOWN {
        let more = errors.len() - (MAX_SHOWN - 1);
        errors.truncate(MAX_SHOWN - 1);
        errors.push(("chaos".to_owned(), format!("… and {}", counted(more, "more failure"))));
    }
    errors.iter().map(|(title, text)| format!("::error title={}::{}\n", property(title), data(text))).collect()
}

/// Appends `markdown` to the file of job summaries.
///
/// # Errors
/// A file that cannot be written.
pub fn append_summary(file: &Path, markdown: &str) -> Result<(), LabError> {
    let opened = OpenOptions::new().create(true).append(true).open(file);
    let written = opened.and_then(|mut opened| opened.write_all(format!("{markdown}\n").as_bytes()));
    written.map_err(LabError::io("append the summary to", file))
}

/// What no failed scenario says.
fn whole(report: &RunReport, alone: bool) -> Option<String> {
    let shut = report.gate.as_ref().filter(|gate| !gate.open);
    let differences = shut.map(|gate| gate.differences.join("\n"));
    let needed = report.exit_code != 0 && (alone || shut.is_some() || report.cut_short.is_some());
    needed.then(|| {
        let text = format!("{}\n{}", phrase::sentence(report), differences.unwrap_or_default());
        text.trim_end().to_owned()
    })
}

fn title(scenario: &ScenarioReport) -> String {
    let property = scenario.findings.first().map_or("", |finding| finding.property.as_str());
    format!("chaos: {property} {} in {}", phrase::verdict(scenario.verdict), scenario.id)
}

fn message(scenario: &ScenarioReport) -> String {
    let mut text = format!("{}\n", scenario.title);
    for finding in &scenario.findings {
        text += &format!("{}: {}\n", finding.property, shortened(&finding.why, WHY.0, WHY.1));
    }
    format!("{text}again: {}", scenario.replay)
}

/// The runner reads a line at a time and decodes these.
fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// In a property, two characters more end it.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    #[test]
    fn newlines_percent_colons_and_commas_are_escaped_as_the_runner_decodes_them() {
        assert_eq!(data("50%\r\na: b, c"), "50%25%0D%0Aa: b, c");
        assert_eq!(property("50%\na: b, c"), "50%25%0Aa%3A b%2C c");
    }

    #[test]
    fn each_failure_is_one_line() {
        let text = annotations(&sample::red());
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), 4, "{text}");
        assert!(lines[0].contains("the gate is shut") && lines[0].contains("%0Anew: point mail.sent"), "{text}");
        let title = "::error title=chaos%3A effect_once violated in points/report/after_effect%3A2::";
        assert!(lines[1].starts_with(title), "{text}");
        assert!(lines[1].contains("100%25 <script>") && lines[1].contains("%0Aagain: chaos replay '"), "{text}");
    }

    #[test]
    fn a_green_run_has_no_annotation_and_a_cut_run_has_one() {
        let mut report = sample::green();
        assert_eq!(annotations(&report), "");
        report.exit_code = 4;
        report.cut_short = Some("the budget ended".to_owned());
        assert_eq!(annotations(&report).lines().count(), 1);
    }

    #[test]
    fn no_more_than_ten_are_written_and_the_last_one_counts_the_rest() {
        let text = annotations(&sample::large(100, 2));
        assert_eq!(text.lines().count(), 10);
        assert!(text.trim_end().ends_with("::… and 45 more failures"), "{text}");
    }

    #[test]
    fn a_summary_is_appended_and_nothing_is_overwritten() {
        let dir = tempfile::tempdir().expect("a folder");
        let file = dir.path().join("summary");
        append_summary(&file, "one").expect("written");
        append_summary(&file, "two").expect("written");
        assert_eq!(std::fs::read_to_string(&file).expect("text"), "one\ntwo\n");
        assert!(append_summary(&dir.path().join("no/such"), "x").is_err());
    }
}

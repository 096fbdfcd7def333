//! What stands on the terminal after a run. Always with colour: the writer that prints it takes the colour away where
//! nobody wants it. Every colour has a letter or a word beside it.

use std::fmt::Write as _;

use clap::builder::styling::{AnsiColor, Style};

use super::causes::{Cause, causes};
use super::matrix::{Letter, Matrix, legend, side_by_side};
use super::model::{Conclusion, Finding, MethodReport, RunReport, ScenarioReport, VerdictKind};
use super::phrase::{self, counted, harmless, number, shortened};

/// How many causes are told one by one.
const MAX_TOLD: usize = 12;
/// How many remarks are told one by one.
const MAX_REMARKS: usize = 2;
/// How many differences of the gate are told one by one.
const MAX_DIFFERENCES: usize = 20;
/// Lines, and characters in a line, of one finding.
const WHY: (usize, usize) = (3, 160);
/// Into how many characters matrices are put side by side.
const WIDTH: usize = 100;

const GREEN: Style = AnsiColor::Green.on_default();
const RED: Style = AnsiColor::Red.on_default().bold();
const YELLOW: Style = AnsiColor::Yellow.on_default().bold();
const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();

/// The run as a whole. A green one fits into ten lines; any other has the matrix, a row a method, and the causes of its
/// failures with a replay command each. The outcome stands in one sentence at the end, where people look.
#[must_use]
pub fn summary(report: &RunReport) -> String {
    let mut text = String::new();
    if report.outcome == Conclusion::Held {
        in_brief(&mut text, &report.methods);
    } else {
        matrices(&mut text, report);
        methods(&mut text, &report.methods);
    }
    controls(&mut text, report);
    gate(&mut text, report);
    remarks(&mut text, report);
    let causes = causes(report);
    for cause in causes.iter().take(MAX_TOLD) {
        text.push('\n');
        text += &told_once(cause);
    }
    if causes.len() > MAX_TOLD {
        let more = counted(causes.len() - MAX_TOLD, "more cause");
        let _ = writeln!(text, "\n… and {more}; `--out DIR` writes them all down");
    }
    let facts: Vec<_> =
        phrase::facts(report).into_iter().filter(|(name, _)| !["began", "plans"].contains(name)).collect();
    let facts: Vec<_> = facts.iter().map(|(name, value)| format!("{name} {}", harmless(value))).collect();
    let _ = writeln!(text, "{DIM}{}{DIM:#}", facts.join(" · "));
    let style = match report.outcome {
        Conclusion::Held => GREEN.bold(),
        Conclusion::CutShort => YELLOW,
        _ => RED,
    };
    let _ = writeln!(text, "{style}{}{style:#}", harmless(&phrase::sentence(report)));
    text
}

/// The methods with their scenarios, as many as fit into a line.
fn in_brief(text: &mut String, methods: &[MethodReport]) {
    let mut width = 0;
    for (i, method) in methods.iter().filter(|method| method.scenarios > 0).enumerate() {
        let word = format!("{} {}", harmless(&method.name), number(method.scenarios));
        let gap = match i {
            0 => "",
            _ if width + word.len() + 3 > WIDTH => "\n",
            _ => " · ",
        };
        width = if gap == "\n" { 0 } else { width + gap.len() } + word.len();
        text.push_str(gap);
        text.push_str(&word);
    }
    text.push('\n');
}

/// What was not played and what could not be seen: a few lines, for these may make a verdict smaller than it looks.
fn remarks(text: &mut String, report: &RunReport) {
    // What could not be seen comes first: it may hide a bug.
    let not_applicable = report.not_applicable.iter().map(|what| format!("not applicable: {what}"));
    let lines: Vec<String> = phrase::blind(report).into_iter().chain(not_applicable).collect();
    for line in lines.iter().take(MAX_REMARKS) {
        let _ = writeln!(text, "{DIM}{}{DIM:#}", harmless(line));
    }
    if lines.len() > MAX_REMARKS {
        let more = counted(lines.len() - MAX_REMARKS, "more remark");
        let _ = writeln!(text, "{DIM}… and {more}; `--out DIR` writes them all down{DIM:#}");
    }
}

/// A cause with its count, the simplest scenario that shows it, and the command for that.
fn told_once(cause: &Cause<'_>) -> String {
    let Finding { property, verdict, why } = cause.finding;
    let (letter, style) = badge(*verdict);
    let word = phrase::verdict(*verdict);
    let mut text = format!("{style}{letter} {word} {property}{style:#} in {}\n", harmless(&cause.places()));
    let why = harmless(&shortened(why.trim_end(), WHY.0, WHY.1)).replace('\n', "\n    ");
    let _ = writeln!(text, "  {BOLD}{}{BOLD:#}  {}", harmless(&cause.simplest.id), harmless(&cause.simplest.title));
    let _ = writeln!(text, "    {why}");
    if let Some(follows) = cause.with_it() {
        let _ = writeln!(text, "  {DIM}{}{DIM:#}", harmless(&follows));
    }
    let _ = writeln!(text, "  again: {}", harmless(&cause.simplest.replay));
    text
}

/// One failed scenario with all of its evidence.
#[must_use]
pub fn failure_in_full(scenario: &ScenarioReport) -> String {
    let (letter, style) = badge(scenario.verdict);
    let id = harmless(&scenario.id);
    let mut text = format!("{style}{letter}{style:#} {BOLD}{id}{BOLD:#}  {}\n", harmless(&scenario.title));
    for Finding { property, verdict, why } in &scenario.findings {
        let (_, style) = badge(*verdict);
        let why = harmless(why.trim_end()).replace('\n', "\n    ");
        let word = phrase::verdict(*verdict);
        let _ = writeln!(text, "  {style}{word}{style:#} {property}\n    {why}");
    }
    let _ = writeln!(text, "  again: {}", harmless(&scenario.replay));
    text
}

fn badge(verdict: VerdictKind) -> (char, Style) {
    let letter = match verdict {
        VerdictKind::Holds => Letter::Held,
        VerdictKind::NotReached => Letter::NotReached,
        VerdictKind::Violated => Letter::Violated,
    };
    (letter.char(), style(letter))
}

fn style(letter: Letter) -> Style {
    match letter {
        Letter::Held => GREEN,
        Letter::Violated | Letter::Later => RED,
        Letter::NotReached => YELLOW,
        Letter::Unreachable => DIM,
    }
}

fn matrices(text: &mut String, report: &RunReport) {
    let matrices = Matrix::of_steps(report);
    if matrices.is_empty() {
        return;
    }
    let paint = |letter: Letter| {
        let style = style(letter);
        format!("{style}{}{style:#}", letter.char())
    };
    *text += &side_by_side(&matrices, WIDTH, paint);
    let legend = legend(&matrices).into_iter().map(|letter| format!("{} {}", paint(letter), letter.meaning()));
    let legend: Vec<_> = legend.collect();
    let _ = writeln!(text, "\n{}\n", legend.join("   "));
}

fn methods(text: &mut String, methods: &[MethodReport]) {
    let titles = ["scenarios", "held", "violated", "not reached", "cycles"];
    let name = methods.iter().map(|method| method.name.len()).max().unwrap_or(0).max("method".len());
    let titles_text = titles.map(|title| format!("{title:>6}")).join("  ");
    let _ = writeln!(text, "{BOLD}{:<name$}  {titles_text}  seconds{BOLD:#}", "method");
    for method in methods {
        let values = [method.scenarios, method.held, method.violated, method.not_reached];
        let _ = write!(text, "{:<name$}", method.name);
        for (i, value) in values.into_iter().enumerate() {
            let style = match (i, value) {
                (1, _) if method.held == method.scenarios => GREEN,
                (2, 1..) => RED,
                (3, 1..) => YELLOW,
                _ => Style::new(),
            };
            let _ = write!(text, "  {style}{:>width$}{style:#}", number(value), width = titles[i].len().max(6));
        }
        let _ = write!(text, "  {:>6}  {:>7.2}", number(method.cycles), method.duration_s);
        if method.unreachable > 0 {
            let _ = write!(text, "  {DIM}{} unreachable by design{DIM:#}", number(method.unreachable));
        }
        text.push('\n');
    }
}

fn controls(text: &mut String, report: &RunReport) {
    let must: Vec<_> = report.controls.iter().filter(|control| control.must_bite).collect();
    let silent: Vec<_> = must.iter().filter(|control| phrase::is_silent(control)).collect();
    if must.is_empty() {
        return;
    }
    let (bit, of) = (must.len() - silent.len(), must.len());
    let style = if silent.is_empty() { GREEN } else { RED };
    let _ = writeln!(text, "controls: {style}{bit} of {of}{style:#} that must double an effect did");
}

fn gate(text: &mut String, report: &RunReport) {
    let Some(gate) = &report.gate else { return };
    let (word, style) = match (gate.open, gate.blessed) {
        (true, false) => ("open", GREEN),
        (true, true) => ("open, rewritten by this run", GREEN),
        (false, _) => ("SHUT", RED),
    };
    let _ = writeln!(text, "gate: {style}{word}{style:#}  {}", harmless(&gate.file));
    for difference in gate.differences.iter().take(MAX_DIFFERENCES) {
        let _ = writeln!(text, "  {}", harmless(difference).replace('\n', "\n  "));
    }
    if gate.differences.len() > MAX_DIFFERENCES {
        let _ = writeln!(text, "  … and {} more", number(gate.differences.len() - MAX_DIFFERENCES));
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    fn bare(text: &str) -> String {
        anstream::adapter::strip_str(text).to_string()
    }

    #[test]
    fn colour_can_be_taken_away_and_every_word_stays() {
        let coloured = summary(&sample::red());
        let text = bare(&coloured);
        assert!(coloured.contains("\u{1b}["), "{coloured}");
        assert!(!text.contains('\u{1b}'), "{text}");
        for word in [
            "H held",
            "V violated",
            "N not reached",
            "· no such place, or unreachable by design",
            "gate: SHUT",
            "seed 4711",
        ] {
            assert!(text.contains(word), "{word} is missing in\n{text}");
        }
    }

    #[test]
    fn each_failure_has_exactly_one_replay_line() {
        let text = bare(&summary(&sample::red()));
        let lines: Vec<_> = text.lines().filter(|line| line.contains("chaos replay ")).collect();
        assert_eq!(
            lines,
            [
                "  again: chaos replay 'points/report/after_effect:2' --seed 4711",
                "  again: chaos replay 'nested/report/after_effect:2, before_effect:2' --seed 4711",
                "  again: chaos replay 'points/report/after_commit:1' --seed 4711",
            ]
        );
    }

    #[test]
    fn a_green_run_ends_with_its_sentence_and_names_no_failure() {
        let text = bare(&summary(&sample::green()));
        assert!(text.trim_end().lines().last().expect("a line").starts_with("Held: every property held in "));
        assert!(!text.contains("again:") && !text.contains("SHUT"), "{text}");
    }

    #[test]
    fn a_method_has_one_row_with_its_numbers() {
        let text = bare(&summary(&sample::red()));
        let row = text.lines().find(|line| line.starts_with("points ")).expect("a row");
        let words: Vec<_> = row.split_whitespace().collect();
        assert_eq!(words, ["points", "17", "15", "1", "1", "17", "0.20"]);
    }

    #[test]
    fn a_long_why_is_cut_in_the_summary_and_whole_in_full() {
        let report = sample::red();
        let (_, pair) = phrase::failures(&report)[1];
        let text = bare(&summary(&report));
        assert!(text.contains("    … 3 more lines") && !text.contains("line 6"), "{text}");
        assert!(failure_in_full(pair).contains("line 6"));
    }

    /// One bug filled twenty screens.
    #[test]
    fn scenarios_that_fail_of_one_cause_are_counted_and_told_once() {
        let text = bare(&summary(&sample::large(100, 2)));
        assert!(text.contains("V violated effect_once in 51 scenarios: nested 50, points 1"), "{text}");
        assert_eq!(text.matches("again: ").count(), 3, "{text}");
    }

    /// A green run printed fifty lines, in which nobody found the one that said so.
    #[test]
    fn a_green_run_fits_into_ten_lines() {
        let mut report = sample::green();
        let one = report.methods[0].clone();
        report.methods.resize(18, one);
        report.not_applicable.resize(9, "log to report, because it has no action log".to_owned());
        let text = bare(&summary(&report));
        assert!(text.lines().count() <= 10, "{text}");
        assert!(text.lines().all(|line| line.len() <= 160), "{text}");
    }

    #[test]
    fn what_an_agent_wrote_cannot_colour_the_terminal() {
        assert!(bare(&summary(&sample::red())).contains("\\u{1b}[31m"));
    }
}

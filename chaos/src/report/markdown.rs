//! Markdown for a job summary or a pull request.

use std::fmt::Write as _;

use super::causes::{Cause, causes};
use super::matrix::{Letter, Matrix, legend, side_by_side};
use super::model::{RunReport, VerdictKind};
use super::phrase::{self, number, shortened};

/// How many causes are told; a job summary may have one megabyte.
const MAX_TOLD: usize = 50;
/// Lines, and characters in a line, of one finding.
const WHY: (usize, usize) = (20, 400);
/// Into how many characters matrices are put side by side.
const WIDTH: usize = 110;

/// The whole document.
#[must_use]
pub fn document(report: &RunReport) -> String {
    let mut text = format!("## Crash tests: {}\n\n", phrase::outcome(report.outcome).to_lowercase());
    let _ = writeln!(text, "{}\n", inline(&phrase::sentence(report)));
    failures(&mut text, report);
    methods(&mut text, report);
    matrices(&mut text, report);
    gate(&mut text, report);
    let facts: Vec<_> = phrase::facts(report).iter().map(|(name, value)| format!("{name} {}", code(value))).collect();
    let _ = writeln!(text, "{}", facts.join(" · "));
    text
}

fn failures(text: &mut String, report: &RunReport) {
    let failed = phrase::failures(report);
    if !failed.is_empty() {
        let counts = phrase::by_property(report).into_iter();
        let counts: Vec<_> = counts.map(|(name, count)| format!("{} {}", code(name), number(count))).collect();
        let _ = writeln!(text, "Failed scenarios by property: {}\n", counts.join(", "));
    }
    let causes = causes(report);
    for (i, cause) in causes.iter().take(MAX_TOLD).enumerate() {
        failure(text, cause, i < 3);
    }
    if causes.len() > MAX_TOLD {
        let _ = writeln!(text, "… and {} more causes.\n", number(causes.len() - MAX_TOLD));
    }
}

/// A cause, told by its simplest scenario.
fn failure(text: &mut String, cause: &Cause<'_>, open: bool) {
    let scenario = cause.simplest;
    let mark = match scenario.verdict {
        VerdictKind::Violated => Letter::Violated,
        VerdictKind::NotReached => Letter::NotReached,
        VerdictKind::Holds => Letter::Held,
    };
    let (mark, open) = (mark.char(), if open { " open" } else { "" });
    let (id, title) = (html(&scenario.id), html(&scenario.title));
    let _ = writeln!(text, "<details{open}><summary><b>{mark}</b> <code>{id}</code> {title}</summary>\n");
    for finding in &scenario.findings {
        let word = phrase::verdict(finding.verdict);
        let _ = writeln!(text, "{word} {}:\n", code(&finding.property));
        text.push_str(&fenced(&shortened(&finding.why, WHY.0, WHY.1)));
    }
    let follows = cause.with_it().map_or(String::new(), |follows| format!("; {follows}"));
    let _ = writeln!(text, "Failed in {}.\n", html(&format!("{}{follows}", cause.places())));
    let _ = writeln!(text, "Again:\n\n{}</details>\n", fenced(&scenario.replay));
}

fn methods(text: &mut String, report: &RunReport) {
    text.push_str(
        "| method | scenarios | held | violated | not reached | unreachable by design | cycles | seconds |\n",
    );
    text.push_str("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n");
    for method in &report.methods {
        let numbers = [method.scenarios, method.held, method.violated, method.not_reached, method.unreachable];
        let numbers: Vec<_> = numbers.into_iter().map(number).collect();
        let (name, numbers, cycles) = (inline(&method.name), numbers.join(" | "), number(method.cycles));
        let _ = writeln!(text, "| {name} | {numbers} | {cycles} | {:.2} |", method.duration_s);
    }
    text.push('\n');
}

fn matrices(text: &mut String, report: &RunReport) {
    let matrices = Matrix::of_steps(report);
    if matrices.is_empty() {
        return;
    }
    let table = side_by_side(&matrices, WIDTH, |letter| letter.char().to_string());
    let legend = legend(&matrices).into_iter().map(|letter| format!("{} {}", letter.char(), letter.meaning()));
    let legend: Vec<_> = legend.collect();
    text.push_str(&fenced(&format!("{table}\n{}", legend.join("   "))));
}

fn gate(text: &mut String, report: &RunReport) {
    let Some(gate) = &report.gate else { return };
    let state = if gate.open { "open" } else { "**shut**" };
    let _ = writeln!(text, "The gate is {state}: {}\n", code(&gate.file));
    if !gate.differences.is_empty() {
        text.push_str(&fenced(&shortened(&gate.differences.join("\n"), 40, WHY.1)));
    }
}

/// A block of code whose fence is longer than any in it.
fn fenced(block: &str) -> String {
    let block = phrase::harmless(block.trim_end());
    let fence = "`".repeat(longest_ticks(&block).max(2) + 1);
    format!("{fence}text\n{block}\n{fence}\n\n")
}

/// A word of code, also in a table.
fn code(word: &str) -> String {
    let word = phrase::harmless(word).replace('\n', " ").replace('|', "\\|");
    let fence = "`".repeat(longest_ticks(&word) + 1);
    let space = if word.starts_with('`') || word.ends_with('`') { " " } else { "" };
    format!("{fence}{space}{word}{space}{fence}")
}

fn longest_ticks(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or(0)
}

/// Text without any meaning in Markdown.
fn inline(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for char in phrase::harmless(text).replace('\n', " ").chars() {
        if "\\`*_[]<>&|#~".contains(char) {
            out.push('\\');
        }
        out.push(char);
    }
    out
}

fn html(text: &str) -> String {
    let text = phrase::harmless(text).replace('\n', " ");
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    #[test]
    fn every_row_of_the_method_table_has_as_many_cells_as_its_head() {
        let report = sample::red();
        let text = document(&report);
        let table = &text[text.find("| method |").expect("a table")..];
        let rows: Vec<_> = table.lines().take_while(|line| line.starts_with('|')).collect();
        assert_eq!(rows.len(), report.methods.len() + 2);
        assert!(rows.iter().all(|row| row.matches('|').count() == 9), "{text}");
        let points = "| points | 17 | 15 | 1 | 1 | 0 | 17 | 0.20 |";
        assert!(rows.contains(&points), "{text}");
    }

    #[test]
    fn a_red_run_tells_each_failure_with_its_replay_command_and_the_matrix() {
        let text = document(&sample::red());
        assert!(text.starts_with("## Crash tests: violated\n"), "{text}");
        assert_eq!(text.matches("\nchaos replay '").count(), 3, "{text}");
        assert!(text.contains("V violated   N not reached") && text.contains("The gate is **shut**"), "{text}");
    }

    #[test]
    fn what_an_agent_wrote_stays_in_its_block() {
        let text = document(&sample::red());
        // The evidence holds a fence of three, so that its block needs four.
        assert!(text.contains("\n````text\n") && text.contains("\n````\n"), "{text}");
        assert_eq!(code("a`b|c"), "``a`b\\|c``");
        assert_eq!(inline("<b> *x* [y]"), "\\<b\\> \\*x\\* \\[y\\]");
        assert_eq!(html("<i>&"), "&lt;i&gt;&amp;");
    }

    #[test]
    fn a_run_of_thousands_of_failures_fits_into_a_job_summary() {
        assert!(document(&sample::large(3000, 1)).len() < 1_000_000);
    }
}

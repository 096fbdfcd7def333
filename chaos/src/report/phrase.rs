//! Wording and order that all writers share.

use std::collections::{BTreeMap, BTreeSet};

use super::model::{Conclusion, ControlReport, RunReport, ScenarioReport, VerdictKind};

/// The scenarios that failed: violated ones first, else in the order of the run. Each with its place in
/// [`RunReport::scenarios`].
pub(super) fn failures(report: &RunReport) -> Vec<(usize, &ScenarioReport)> {
    let all = report.scenarios.iter().enumerate();
    let mut failed: Vec<_> = all.filter(|(_, scenario)| scenario.verdict != VerdictKind::Holds).collect();
    failed.sort_by_key(|(_, scenario)| std::cmp::Reverse(scenario.verdict));
    failed
}

/// How many failed scenarios name each property, the most frequent one first.
pub(super) fn by_property(report: &RunReport) -> Vec<(&str, usize)> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for scenario in &report.scenarios {
        let names: BTreeSet<_> = scenario.findings.iter().map(|finding| finding.property.as_str()).collect();
        for name in names {
            *counts.entry(name).or_default() += 1;
        }
    }
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by_key(|&(_, count)| std::cmp::Reverse(count));
    counts
}

/// A verdict in words.
pub(super) fn verdict(verdict: VerdictKind) -> &'static str {
    match verdict {
        VerdictKind::Holds => "held",
        VerdictKind::NotReached => "not reached",
        VerdictKind::Violated => "violated",
    }
}

/// How the run ended, in two words.
pub(super) fn outcome(outcome: Conclusion) -> &'static str {
    match outcome {
        Conclusion::Held => "Held",
        Conclusion::Violated => "Violated",
        Conclusion::BaselineFailed => "Baseline failed",
        Conclusion::CutShort => "Cut short",
        Conclusion::ControlSilent => "Control silent",
    }
}

/// The outcome in one sentence, which begins with the words of [`outcome`].
pub(super) fn sentence(report: &RunReport) -> String {
    let word = outcome(report.outcome);
    let played = counted(report.scenarios.len(), "scenario");
    let tail = match report.outcome {
        Conclusion::Held => {
            let of = report.sample_of.map_or(String::new(), |of| format!(" of {} that there are", number(of)));
            format!("every property held in {played}{of}, with {}", counted(report.cycles, "kill-and-resume cycle"))
        }
        Conclusion::Violated => violated(report, &played),
        Conclusion::BaselineFailed => {
            "a plan fails already where nothing is killed, so that nothing else was played".to_owned()
        }
        Conclusion::CutShort => {
            let why = report.cut_short.as_deref().unwrap_or("not everything that was selected was played");
            format!("this does not count as passed, although all of {played} held: {}", why.trim_end_matches('.'))
        }
        Conclusion::ControlSilent => {
            let silent = report.controls.iter().filter(|control| is_silent(control));
            let controls = counted(silent.count(), "negative control");
            format!("{controls} stayed green, so that the lab is blind there and its other verdicts prove little")
        }
    };
    format!("{word}: {tail}.")
}

fn violated(report: &RunReport, played: &str) -> String {
    let with = |verdict| report.scenarios.iter().filter(|scenario| scenario.verdict == verdict).count();
    let (violated, missed) = (with(VerdictKind::Violated), with(VerdictKind::NotReached));
    let mut parts = Vec::new();
    if violated + missed > 0 {
        let failed = format!("{} of {played}", number(violated + missed));
        parts.push(match (violated, missed) {
            (_, 0) => format!("{failed} violated a property"),
            (0, _) => format!("{failed} did not reach the kill"),
            (violated, missed) => {
                format!("{failed} failed ({} violated, {} not reached)", number(violated), number(missed))
            }
        });
    }
    if let Some(gate) = report.gate.as_ref().filter(|gate| !gate.open) {
        parts.push(format!("the gate is shut ({})", counted(gate.differences.len(), "difference")));
    }
    if let Some(why) = &report.cut_short {
        parts.push(format!("the run was cut short: {}", why.trim_end_matches('.')));
    }
    if parts.is_empty() { format!("{played} played") } else { parts.join("; ") }
}

/// The words by which a remark says that something could not be seen.
const BLIND: &str = "blind here";

/// What the lab could not see, each once: a green verdict says nothing about it.
pub(super) fn blind(report: &RunReport) -> BTreeSet<String> {
    let notes = report.scenarios.iter().filter_map(|scenario| scenario.note.as_deref());
    notes.flat_map(|note| note.split("; ")).filter(|part| part.contains(BLIND)).map(str::to_owned).collect()
}

/// Whether a control did not do what it is there for.
pub(super) fn is_silent(control: &ControlReport) -> bool {
    control.must_bite && !control.bit
}

/// What there is to know of the run as a whole, as name and value.
pub(super) fn facts(report: &RunReport) -> Vec<(&'static str, String)> {
    let mut facts = vec![
        ("agent", report.agent.clone()),
        ("plans", report.plans.join(", ")),
        ("seed", report.seed.to_string()),
        ("jobs", report.jobs.to_string()),
        ("time", duration(report.duration_s)),
        ("cycles", number(report.cycles)),
    ];
    if let Some(speed) = report.cycles_per_second {
        facts.push(("cycles per second", format!("{speed:.0} in points and nested")));
    }
    if let Some(began) = moment(report.started_at) {
        facts.push(("began", began));
    }
    facts
}

/// `1,497 scenarios`, `1 scenario`.
pub(super) fn counted(count: impl TryInto<u64>, noun: &str) -> String {
    let count = count.try_into().unwrap_or(u64::MAX);
    let plural = if count == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", number(count))
}

/// A number with its thousands set apart.
pub(super) fn number(count: impl TryInto<u64>) -> String {
    let digits = count.try_into().unwrap_or(u64::MAX).to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Seconds in the unit that fits.
pub(super) fn duration(seconds: f64) -> String {
    if seconds.abs() < 1.0 {
        format!("{:.1} ms", seconds * 1000.0)
    } else if seconds < 120.0 {
        format!("{seconds:.1} s")
    } else {
        format!("{:.0} min {:02.0} s", (seconds / 60.0).floor(), (seconds % 60.0).floor())
    }
}

/// Seconds since the epoch as a date; `None` where there is no such date.
fn moment(seconds: f64) -> Option<String> {
    let moment = jiff::Timestamp::from_second(seconds as i64).ok()?;
    Some(moment.strftime("%Y-%m-%d %H:%M:%S UTC").to_string())
}

/// Text without characters that would steer a terminal. What an agent printed
/// or wrote ends up in a report; a report must not do what it says.
#[must_use]
pub fn harmless(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for char in text.chars() {
        if char.is_control() && char != '\n' {
            out.extend(char.escape_default());
        } else {
            out.push(char);
        }
    }
    out
}

/// The first `lines` lines of `text`, each of at most `width` characters, with a last line that says how much is
/// missing.
pub(super) fn shortened(text: &str, lines: usize, width: usize) -> String {
    let all: Vec<&str> = text.lines().collect();
    let mut kept: Vec<String> = all.iter().take(lines).map(|line| cut(line, width)).collect();
    if all.len() > lines {
        kept.push(format!("… {}", counted(all.len() - lines, "more line")));
    }
    kept.join("\n")
}

/// `text` in at most `width` characters.
pub(super) fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let kept: String = text.chars().take(width.saturating_sub(1)).collect();
    format!("{kept}…")
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case(0, "0")]
    #[case(999, "999")]
    #[case(1000, "1,000")]
    #[case(1_234_567, "1,234,567")]
    fn thousands_are_set_apart(#[case] count: u64, #[case] text: &str) {
        assert_eq!(number(count), text);
    }

    #[rstest]
    #[case(0.0034, "3.4 ms")]
    #[case(-0.0008, "-0.8 ms")]
    #[case(14.93, "14.9 s")]
    #[case(185.9, "3 min 05 s")]
    fn a_duration_has_the_unit_that_fits(#[case] seconds: f64, #[case] text: &str) {
        assert_eq!(duration(seconds), text);
    }

    #[test]
    fn a_long_text_says_how_much_is_missing() {
        assert_eq!(shortened("a\nb", 2, 10), "a\nb");
        assert_eq!(shortened("a\nb\nc\nd", 2, 10), "a\nb\n… 2 more lines");
        assert_eq!(shortened("äöüßéè", 1, 4), "äöü…");
    }

    #[test]
    fn a_text_cannot_steer_the_terminal() {
        assert_eq!(harmless("a\u{1b}[2Jb\nc"), "a\\u{1b}[2Jb\nc");
    }

    #[test]
    fn violated_scenarios_come_before_those_that_were_not_reached() {
        let report = sample::red();
        let order: Vec<_> = failures(&report).iter().map(|(_, scenario)| scenario.verdict).collect();
        assert_eq!(order, [VerdictKind::Violated, VerdictKind::Violated, VerdictKind::NotReached]);
    }

    #[test]
    fn a_scenario_counts_once_for_each_property_that_it_violates() {
        let mut report = sample::red();
        let twice = report.scenarios.iter_mut().find(|it| !it.findings.is_empty()).expect("a failure");
        twice.findings.push(twice.findings[0].clone());
        report.scenarios[0].findings = vec![finding("journal_replay")];
        let counts = by_property(&report);
        assert_eq!(counts, [("journal_replay", 2), ("effect_once", 1), ("exit_code", 1)]);
    }

    fn finding(property: &str) -> super::super::model::Finding {
        let (verdict, why) = (VerdictKind::Violated, String::new());
        super::super::model::Finding { property: property.to_owned(), verdict, why }
    }

    #[test]
    fn what_could_not_be_seen_is_told_once() {
        let mut report = sample::green();
        for scenario in &mut report.scenarios[..2] {
            scenario.note = Some("3 disks here; not reached: blind here: a mapping of `x`".to_owned());
        }
        assert_eq!(blind(&report).into_iter().collect::<Vec<_>>(), ["not reached: blind here: a mapping of `x`"]);
        assert!(blind(&sample::red()).is_empty());
    }

    #[test]
    fn every_outcome_has_a_sentence_that_says_it() {
        assert!(sentence(&sample::green()).starts_with("Held: every property held in "));
        let red = sentence(&sample::red());
        assert!(red.contains("3 of 23 scenarios failed (2 violated, 1 not reached)"), "{red}");
        assert!(red.contains("the gate is shut (2 differences)"), "{red}");
        let mut report = sample::green();
        report.outcome = Conclusion::CutShort;
        report.cut_short = Some("the budget ended".to_owned());
        assert!(
            sentence(&report).contains("does not count as passed") && sentence(&report).contains("the budget ended")
        );
        report.outcome = Conclusion::BaselineFailed;
        assert!(sentence(&report).contains("where nothing is killed"));
        report.outcome = Conclusion::ControlSilent;
        report.controls[0].bit = false;
        assert!(sentence(&report).contains("1 negative control stayed green"));
    }
}

//! Causes, not symptoms: failed scenarios whose first finding is of one property and reads alike have one cause. It is
//! told once, by its simplest scenario, with the number of all.

use std::collections::BTreeMap;

use super::model::{Finding, RunReport, ScenarioReport, VerdictKind};
use super::phrase;

/// What several scenarios failed of.
pub(super) struct Cause<'a> {
    /// The finding of the simplest scenario that the others seem to follow from.
    pub(super) finding: &'a Finding,
    /// The scenario with the fewest kills.
    pub(super) simplest: &'a ScenarioReport,
    /// How many scenarios failed of it.
    pub(super) count: usize,
    /// How many of each method.
    pub(super) methods: Vec<(&'a str, usize)>,
    /// Other properties that these scenarios violate, with how many do.
    pub(super) follows: Vec<(&'a str, usize)>,
}

impl Cause<'_> {
    /// How many scenarios failed of it, and of which methods they are: `3 scenarios: points 2, exhaust 1`.
    pub(super) fn places(&self) -> String {
        format!("{}: {}", phrase::counted(self.count, "scenario"), listed(&self.methods))
    }

    /// What else these scenarios violate: `with it: effect_once 2`; none where that is nothing.
    pub(super) fn with_it(&self) -> Option<String> {
        (!self.follows.is_empty()).then(|| format!("with it: {}", listed(&self.follows)))
    }
}

fn listed(counts: &[(&str, usize)]) -> String {
    let told = counts.iter().map(|(name, count)| format!("{name} {}", phrase::number(*count)));
    told.collect::<Vec<_>>().join(", ")
}

/// The causes of all failures: violations first, of these the one that most scenarios failed of.
pub(super) fn causes(report: &RunReport) -> Vec<Cause<'_>> {
    let mut groups: Vec<(String, Vec<&ScenarioReport>)> = Vec::new();
    for (_, scenario) in phrase::failures(report) {
        let Some(root) = scenario.findings.first() else { continue };
        let key = format!("{:?} {} {}", root.verdict, root.property, shape(&root.why));
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, scenarios)) => scenarios.push(scenario),
            None => groups.push((key, vec![scenario])),
        }
    }
    let mut causes: Vec<Cause<'_>> = groups.iter().filter_map(|(_, scenarios)| cause(scenarios)).collect();
    causes.sort_by_key(|cause| (cause.finding.verdict != VerdictKind::Violated, std::cmp::Reverse(cause.count)));
    causes
}

fn cause<'a>(scenarios: &[&'a ScenarioReport]) -> Option<Cause<'a>> {
    let simplest = *scenarios.iter().min_by_key(|scenario| scenario.schedule.split(", ").count())?;
    let finding = simplest.findings.first()?;
    let others = scenarios.iter().flat_map(|scenario| {
        let names = scenario.findings.iter().map(|finding| finding.property.as_str());
        names.filter(|name| *name != finding.property).collect::<std::collections::BTreeSet<_>>()
    });
    Some(Cause {
        finding,
        simplest,
        count: scenarios.len(),
        methods: counted(scenarios.iter().map(|scenario| scenario.method.as_str())),
        follows: counted(others),
    })
}

/// How often each word is there, the most frequent one first.
fn counted<'a>(words: impl Iterator<Item = &'a str>) -> Vec<(&'a str, usize)> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for word in words {
        *counts.entry(word).or_default() += 1;
    }
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by_key(|&(_, count)| std::cmp::Reverse(count));
    counts
}

/// A finding's first line without what differs from scenario to scenario: numbers, names, what is quoted or in
/// brackets.
fn shape(why: &str) -> String {
    let mut plain = String::new();
    let mut closing = None;
    for char in why.lines().next().unwrap_or_default().chars() {
        match closing {
            Some(end) if end == char => closing = None,
            Some(_) => {}
            None => {
                closing =
                    [('`', '`'), ('(', ')'), ('[', ']'), ('{', '}')].into_iter().find(|it| it.0 == char).map(|it| it.1);
                plain.push(if closing.is_some() { '#' } else { char });
            }
        }
    }
    let differs = |word: &str| word.contains(|c: char| c.is_ascii_digit() || c == '/');
    let words: Vec<&str> = plain.split_whitespace().map(|word| if differs(word) { "#" } else { word }).collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("run 2 of t1 (+3ms): step 1 is `running` now", "run 1 of t1 (none): step 2 is `pending here` now")]
    #[case("interrupted were the steps {1, 2}, listed []", "interrupted were the steps {0}, listed [0]")]
    #[case(
        "EIO at fetch:0/write#1 on a/b: exit 3, saying `no such file`",
        "EIO at open/write#7 on c/d: exit 4, saying `x`"
    )]
    fn two_findings_of_one_kind_read_alike(#[case] one: &str, #[case] other: &str) {
        assert_eq!(shape(one), shape(other));
        assert_ne!(shape(one), shape("something else is wrong"));
    }

    /// A run with one bug told it in twenty scenarios, one after another, with twenty commands to play again.
    #[test]
    fn scenarios_that_fail_alike_are_one_cause_with_the_simplest_of_them() {
        let mut report = sample::large(100, 2);
        let original = report.clone();
        let before = causes(&original);
        let cause = before.iter().find(|cause| cause.finding.property == "effect_once").expect("a cause");
        assert!(cause.count >= 50, "{}", cause.count);
        let of: usize = before.iter().map(|cause| cause.count).sum();
        assert_eq!(of, phrase::failures(&original).len(), "nobody is forgotten");
        let simple =
            report.scenarios.iter_mut().find(|it| it.id == "points/report/before_effect:0").expect("a scenario");
        let failed = before[0].simplest.findings.clone();
        (simple.verdict, simple.findings) = (VerdictKind::Violated, failed);
        assert_eq!(causes(&report)[0].simplest.schedule.split(", ").count(), 1);
    }
}

//! One page that needs nothing but itself: no script is needed to read it, and nothing is loaded from anywhere.

use askama::Template;

use super::causes::causes;
use super::matrix::{Letter, Matrix, legend};
use super::model::{Conclusion, ControlReport, MethodReport, RunReport, ScenarioReport, VerdictKind};
use super::phrase::{self, number, shortened};
use super::timeline::Timeline;
use crate::error::LabError;

/// Above this size, details are left out; browsers and mail get slow there.
const MAX_BYTES: usize = 2_900_000;
/// How many squares pairs of kills may have; a real run has some two thousand.
const MAX_PAIRS: usize = 10_000;
/// How many causes are open and come with a table of their events.
const MAX_OPEN: usize = 20;

/// How much is told of each scenario.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Detail {
    /// No timelines.
    Bare,
    /// Timelines without the times of their marks.
    Letters,
    /// Everything.
    Full,
}

impl Detail {
    /// Lines, and characters in a line, of one finding.
    fn why(self) -> (usize, usize) {
        match self {
            Self::Full => (60, 1000),
            Self::Letters => (12, 240),
            Self::Bare => (3, 160),
        }
    }
}

/// The page, with as many details as keep it handy.
///
/// # Errors
/// A template that cannot be filled.
pub(super) fn document(report: &RunReport) -> Result<String, LabError> {
    let page = render(report, Detail::Full)?;
    if page.len() <= MAX_BYTES {
        return Ok(page);
    }
    let page = render(report, Detail::Letters)?;
    if page.len() <= MAX_BYTES {
        return Ok(page);
    }
    render(report, Detail::Bare)
}

fn render(report: &RunReport, detail: Detail) -> Result<String, LabError> {
    let page = Page::new(report, detail).render();
    page.map_err(|e| LabError::Internal(format!("cannot write the HTML report: {e}")))
}

#[derive(Template)]
#[template(path = "report.html", whitespace = "minimize")]
struct Page<'a> {
    report: &'a RunReport,
    detail: Detail,
    outcome: &'static str,
    tone: &'static str,
    sentence: String,
    facts: Vec<(&'static str, String)>,
    /// One scenario for each cause, the simplest.
    failures: Vec<Card<'a>>,
    /// The scenarios that failed of the same, and causes after [`MAX_OPEN`].
    more: Vec<Card<'a>>,
    properties: Vec<(&'a str, usize)>,
    legend: Vec<Letter>,
    steps: Vec<Matrix>,
    pairs: Vec<Matrix>,
    methods: Vec<Row<'a>>,
    groups: Vec<Group<'a>>,
    style: &'static str,
    script: &'static str,
}

/// A scenario with the number that links lead to.
struct Card<'a> {
    number: usize,
    scenario: &'a ScenarioReport,
    letter: Letter,
    open: bool,
    /// How many scenarios failed of the same, where it stands for them.
    cause: Option<String>,
    findings: Vec<Why<'a>>,
    timeline: Option<Timeline>,
}

/// One finding, cut to what fits.
struct Why<'a> {
    property: &'a str,
    verdict: &'static str,
    text: String,
}

/// One method in numbers.
struct Row<'a> {
    method: &'a MethodReport,
    numbers: Vec<(Letter, String)>,
}

/// The scenarios of one method on one plan.
struct Group<'a> {
    method: &'a str,
    plan: &'a str,
    scenarios: Vec<Card<'a>>,
    held: usize,
}

impl<'a> Page<'a> {
    fn new(report: &'a RunReport, detail: Detail) -> Self {
        let causes = causes(report);
        let of = |scenario: &ScenarioReport| causes.iter().position(|cause| cause.simplest.id == scenario.id);
        let cards = phrase::failures(report).into_iter().map(|(number, scenario)| {
            let place = of(scenario).filter(|place| *place < MAX_OPEN);
            let told = place.map(|place| &causes[place]).map(|cause| {
                let follows = cause.with_it().map_or(String::new(), |follows| format!("; {follows}"));
                format!("failed in {}{follows}", cause.places())
            });
            (place, Card { cause: told, ..Card::new(number, scenario, detail, place.is_some()) })
        });
        let (mut failures, more): (Vec<_>, Vec<_>) = cards.partition(|(place, _)| place.is_some());
        failures.sort_by_key(|(place, _)| *place);
        let [failures, more] = [failures, more].map(|cards| cards.into_iter().map(|(_, card)| card).collect());
        let steps = Matrix::of_steps(report);
        Self {
            report,
            detail,
            outcome: phrase::outcome(report.outcome),
            tone: match report.outcome {
                Conclusion::Held => "H",
                Conclusion::CutShort => "N",
                _ => "V",
            },
            sentence: phrase::sentence(report),
            facts: phrase::facts(report),
            failures,
            more,
            properties: phrase::by_property(report),
            legend: legend(&steps),
            steps,
            pairs: pairs(report),
            methods: report.methods.iter().map(Row::new).collect(),
            groups: groups(report, detail),
            style: include_str!("../../templates/report.css"),
            script: include_str!("../../templates/report.js"),
        }
    }

    fn seed_option(&self) -> String {
        format!("--seed {}", self.report.seed)
    }
}

impl<'a> Card<'a> {
    fn new(number: usize, scenario: &'a ScenarioReport, detail: Detail, open: bool) -> Self {
        let (lines, width) = detail.why();
        let findings = scenario.findings.iter().map(|finding| Why {
            property: &finding.property,
            verdict: phrase::verdict(finding.verdict),
            text: shortened(finding.why.trim_end(), lines, width),
        });
        Self {
            number,
            scenario,
            letter: match scenario.verdict {
                VerdictKind::Holds => Letter::Held,
                VerdictKind::NotReached => Letter::NotReached,
                VerdictKind::Violated => Letter::Violated,
            },
            open,
            cause: None,
            findings: findings.collect(),
            timeline: (detail > Detail::Bare).then(|| Timeline::of(&scenario.timeline)).flatten(),
        }
    }

    fn failed(&self) -> bool {
        self.letter != Letter::Held
    }
}

impl<'a> Row<'a> {
    fn new(method: &'a MethodReport) -> Self {
        let counts = [
            (Letter::Held, method.held),
            (Letter::Violated, method.violated),
            (Letter::NotReached, method.not_reached),
            (Letter::Unreachable, method.unreachable),
        ];
        // A nought needs no colour.
        let plain = |(letter, count)| (if count == 0 { Letter::Unreachable } else { letter }, number(count));
        Self { method, numbers: counts.map(plain).into() }
    }
}

/// Pairs of kills, as many plans of them as the page can bear.
fn pairs(report: &RunReport) -> Vec<Matrix> {
    let mut squares = 0;
    let mut pairs = Matrix::of_pairs(report);
    pairs.retain(|matrix| {
        squares += matrix.rows.len() * matrix.columns.len();
        squares <= MAX_PAIRS
    });
    pairs
}

fn groups(report: &RunReport, detail: Detail) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for (number, scenario) in report.scenarios.iter().enumerate() {
        let own = |group: &Group<'_>| group.method == scenario.method && group.plan == scenario.plan;
        let place = groups.iter().position(own).unwrap_or_else(|| {
            let (method, plan) = (scenario.method.as_str(), scenario.plan.as_str());
            groups.push(Group { method, plan, scenarios: Vec::new(), held: 0 });
            groups.len() - 1
        });
        groups[place].held += usize::from(scenario.verdict == VerdictKind::Holds);
        groups[place].scenarios.push(Card::new(number, scenario, detail, false));
    }
    groups
}

impl Letter {
    /// The class that colours it.
    fn class(self) -> char {
        match self {
            Self::Unreachable => 'U',
            Self::Later => 'V',
            letter => letter.char(),
        }
    }
}

/// What a control was to do and what it did.
fn bite(control: &ControlReport) -> (Letter, &'static str) {
    match (control.must_bite, control.bit) {
        (true, true) => (Letter::Held, "doubled, as it must"),
        (false, false) => (Letter::Held, "once, as it must"),
        (true, false) => (Letter::Violated, "silent: it must double and did not"),
        (false, true) => (Letter::Violated, "doubled outside of its window"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;
    use std::collections::BTreeSet;

    fn page(report: &RunReport) -> String {
        document(report).expect("a page")
    }

    #[test]
    fn every_scenario_is_on_the_page_and_can_be_linked_to() {
        for report in [sample::green(), sample::red()] {
            let page = page(&report);
            for (number, scenario) in report.scenarios.iter().enumerate() {
                assert!(page.contains(&scenario.id), "{}", scenario.id);
                assert_eq!(page.matches(&format!(" id=\"s{number}\"")).count(), 1, "{}", scenario.id);
            }
        }
    }

    #[test]
    fn every_link_leads_somewhere() {
        let page = page(&sample::red());
        let links: Vec<_> = page.split("href=\"#").skip(1).filter_map(|rest| rest.split('"').next()).collect();
        assert!(links.len() > 20, "{links:?}");
        for link in links {
            assert!(page.contains(&format!(" id=\"{link}\"")), "{link}");
        }
    }

    #[test]
    fn what_an_agent_wrote_is_escaped_everywhere() {
        let mut report = sample::red();
        let evil = "<script>alert(1)</script>";
        report.agent = evil.to_owned();
        report.plans.push(evil.to_owned());
        report.methods[0].name = evil.to_owned();
        report.cut_short = Some(evil.to_owned());
        report.controls[0].tool = evil.to_owned();
        if let Some(gate) = &mut report.gate {
            gate.differences.push(evil.to_owned());
        }
        for scenario in &mut report.scenarios {
            for field in [&mut scenario.title, &mut scenario.method, &mut scenario.plan, &mut scenario.schedule] {
                field.push_str(evil);
            }
            scenario.note = Some(evil.to_owned());
            for run in &mut scenario.timeline {
                run.run.push_str("\" onmouseover=\"alert(2)");
                run.ended.push_str(evil);
                run.events.iter_mut().for_each(|event| event.kind.push_str(evil));
            }
        }
        let page = page(&report);
        assert!(page.contains("&#60;script&#62;alert(1)"));
        assert!(!page.contains("<script>alert") && !page.contains("\" onmouseover"));
        // Its own script is the only one.
        assert_eq!(page.matches("<script").count(), 1);
    }

    #[test]
    fn the_page_needs_nothing_from_outside() {
        let page = page(&sample::red());
        for outside in ["http://", "https://", "src=", "url(", "@import", "<link"] {
            assert!(!page.contains(outside), "{outside}");
        }
        assert!(page.contains("default-src 'none'"));
    }

    #[test]
    fn failures_come_first_open_and_with_their_replay_command() {
        let page = page(&sample::red());
        assert_eq!(page.matches("class=\"card ").count(), 3);
        let first = page.find("points/report/after_effect:2").expect("the failure");
        assert!(first < page.find("id=\"matrix\"").expect("the matrix"));
        assert!(page.contains("chaos replay &#39;points/report/after_effect:2&#39; --seed 4711"));
        assert!(!self::page(&sample::green()).contains("class=\"card "));
    }

    #[test]
    fn a_power_cut_shows_what_was_pending_and_what_lay_on_the_disk() {
        use crate::report::model::{DiskReport, PendingReport};
        let mut report = sample::red();
        let failed = report.scenarios.iter_mut().find(|scenario| scenario.verdict != VerdictKind::Holds);
        let [what, at, fate] = ["link artifacts/t1-2.md", "write_artifact:2/linkat#1", "lost"].map(str::to_owned);
        failed.expect("a failure").disk = Some(DiskReport {
            after: "close/exit#1".to_owned(),
            pending: vec![PendingReport { what, at, fate }],
            files: vec![("state.db".to_owned(), 4711)],
        });
        let page = page(&report);
        for text in ["link artifacts/t1-2.md", "write_artifact:2/linkat#1", "class=\"bad\">lost", "4711 bytes"] {
            assert!(page.contains(text), "{text}");
        }
    }

    #[test]
    fn kills_are_gaps_between_the_bars() {
        let page = page(&sample::green());
        let kills: usize =
            sample::green().scenarios.iter().flat_map(|it| &it.timeline).filter(|run| run.killed).count();
        assert_eq!(page.matches("class=\"gap\"").count(), kills);
    }

    #[test]
    fn thousands_of_scenarios_fit_and_the_page_says_what_it_leaves_out() {
        let handy = page(&sample::large(1000, 1001));
        assert!(!handy.contains("left out") && handy.contains("before_effect:2#26"));
        for (extra, nth) in [(2000, 2001), (6000, 6001), (2000, 1)] {
            let report = sample::large(extra, nth);
            let page = page(&report);
            assert!(page.len() < 3_000_000, "{extra} scenarios: {} bytes", page.len());
            let named: BTreeSet<_> = page.split("<code>").filter_map(|rest| rest.split("</code>").next()).collect();
            assert!(report.scenarios.iter().all(|scenario| named.contains(scenario.id.as_str())));
        }
        assert!(page(&sample::large(6000, 6001)).contains("left out"));
    }
}

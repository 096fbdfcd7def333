//! What a run shows while it is at work, on standard error: on a terminal a bar, elsewhere one line a method; and each
//! failure as it happens.

use std::io::IsTerminal as _;
use std::sync::atomic::{AtomicUsize, Ordering};

use indicatif::{ProgressBar, ProgressStyle};

use crate::judge::verdict::VerdictKind;
use crate::report::model::{MethodReport, ScenarioReport};
use crate::run::runner::Progress;

/// A bar, or lines.
pub struct Bar {
    bar: Option<ProgressBar>,
    failed: AtomicUsize,
    place: AtomicUsize,
    of: AtomicUsize,
}

impl Bar {
    /// A bar where standard error is a terminal and nobody says `CI`.
    #[must_use]
    pub fn new() -> Self {
        let wanted = std::io::stderr().is_terminal() && std::env::var_os("CI").is_none();
        let bar = wanted.then(|| ProgressBar::new(0));
        Self { bar, failed: AtomicUsize::default(), place: AtomicUsize::default(), of: AtomicUsize::default() }
    }

    /// Shows what the run tells.
    pub fn tell(&self, told: &Progress<'_>) {
        match told {
            Progress::Preparing(plan) => {
                self.with_bar(|bar| {
                    show_as(bar, PREPARING);
                    bar.set_prefix(format!("prepare {plan}"));
                });
            }
            Progress::Begins(method, (place, of), scenarios) => {
                self.place.store(*place, Ordering::Relaxed);
                self.of.store(*of, Ordering::Relaxed);
                self.with_bar(|bar| {
                    show_as(bar, PLAYING);
                    bar.reset();
                    bar.set_length(*scenarios as u64);
                    bar.set_prefix(format!("method {place} of {of}: {method:<10}"));
                    bar.set_message(self.failures());
                });
            }
            Progress::Played(report) if report.verdict == VerdictKind::Holds => self.with_bar(|bar| bar.inc(1)),
            Progress::Played(report) => {
                self.failed.fetch_add(1, Ordering::Relaxed);
                self.with_bar(|bar| {
                    bar.inc(1);
                    bar.set_message(self.failures());
                });
                self.say(&failure(report));
            }
            Progress::Ended(method, _) if self.bar.is_none() => self.say(&self.line(method)),
            Progress::Ended(..) | Progress::SoFar(_) => {}
        }
    }

    /// Takes the bar away.
    pub fn close(&self) {
        self.with_bar(ProgressBar::finish_and_clear);
    }

    fn with_bar(&self, show: impl FnOnce(&ProgressBar)) {
        if let Some(bar) = &self.bar {
            show(bar);
        }
    }

    fn say(&self, line: &str) {
        match &self.bar {
            Some(bar) => bar.println(line),
            None => anstream::eprintln!("{line}"),
        }
    }

    fn failures(&self) -> String {
        format!("{} failed so far", self.failed.load(Ordering::Relaxed))
    }

    fn line(&self, method: &MethodReport) -> String {
        let (place, of) = (self.place.load(Ordering::Relaxed), self.of.load(Ordering::Relaxed));
        let MethodReport { name, scenarios, held, duration_s, .. } = method;
        format!("method {place} of {of}: {name}, {held} of {scenarios} held, {duration_s:.1} s, {}", self.failures())
    }
}

/// Nobody knows beforehand how long that takes: what is full and has nothing left would be a lie.
const PREPARING: &str = "{prefix}";
const PLAYING: &str = "{prefix} {bar:30} {pos}/{len} {msg}, {eta} left in it";

fn show_as(bar: &ProgressBar, template: &str) {
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
}

/// A failure in one line, for whoever waits.
fn failure(report: &ScenarioReport) -> String {
    let first = report.findings.first();
    let why = first.and_then(|finding| finding.why.lines().next()).unwrap_or_default();
    let what = first.map_or("failed", |finding| finding.property.as_str());
    crate::report::harmless(&format!("failed: {}: {what}: {why}", report.id))
}

impl Default for Bar {
    fn default() -> Self {
        Self::new()
    }
}

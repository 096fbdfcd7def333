//! Crash points: named places where a test may stop the process.
//!
//! They are compiled in always, so that the binary which is tested is the binary which ships. [`Crash`] is a value that
//! travels in the contexts, never a global; while it is off, a point costs one branch.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};

/// The name of a place in the code. Spellings are append-only: schedules in other people's files name them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CrashSite(pub &'static str);

/// The step is marked as running, its tool has not been called.
pub const BEFORE_EFFECT: CrashSite = CrashSite("before_effect");
/// The tool has returned, nothing of it is recorded.
pub const AFTER_EFFECT: CrashSite = CrashSite("after_effect");
/// The step is committed as done.
pub const AFTER_COMMIT: CrashSite = CrashSite("after_commit");
/// The lock is taken and what a killed run left behind is swept; recovery is not committed.
pub const RECOVER_SWEPT: CrashSite = CrashSite("recover.swept");
/// Recovery and `run_started` are committed.
pub const RUN_STARTED: CrashSite = CrashSite("run.started");
/// Every step is done, the task is not.
pub const COMPLETE_READY: CrashSite = CrashSite("complete.ready");
/// `task_done` is committed.
pub const COMPLETE_DONE: CrashSite = CrashSite("complete.done");
/// A transaction is written and not committed.
pub const COMMIT_WRITTEN: CrashSite = CrashSite("commit.written");
/// A transaction is committed, its caller does not know yet.
pub const COMMIT_DONE: CrashSite = CrashSite("commit.done");

/// Sites that every step of a run passes, whatever its tool.
pub const STEP_SITES: &[CrashSite] = &[BEFORE_EFFECT, AFTER_EFFECT, AFTER_COMMIT, COMMIT_WRITTEN, COMMIT_DONE];
/// Sites that a run passes outside its steps.
pub const RUN_SITES: &[CrashSite] =
    &[RECOVER_SWEPT, RUN_STARTED, COMPLETE_READY, COMPLETE_DONE, COMMIT_WRITTEN, COMMIT_DONE];

/// One passage of a site: which step (none where the site is outside the steps), and which time in this process.
///
/// The text form is `site[:step][#hit]`; `#1` is not written.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CrashPoint {
    /// The site's name.
    pub site: String,
    /// The step's index, from 0.
    pub step: Option<u32>,
    /// Which passage of this site in this step within one process, from 1.
    pub hit: u32,
}

impl fmt::Display for CrashPoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.site)?;
        if let Some(step) = self.step {
            write!(f, ":{step}")?;
        }
        if self.hit > 1 {
            write!(f, "#{}", self.hit)?;
        }
        Ok(())
    }
}

/// Why a text names no crash point.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a crash point: {why}; the form is <point>:<step>, e.g. after_effect:2")]
pub struct BadCrashPoint {
    text: String,
    why: &'static str,
}

impl FromStr for CrashPoint {
    type Err = BadCrashPoint;

    fn from_str(text: &str) -> Result<Self, BadCrashPoint> {
        let bad = |why| BadCrashPoint { text: text.to_owned(), why };
        let (rest, hit) = match text.split_once('#') {
            None => (text, 1),
            Some((rest, hit)) => (rest, number(hit).ok_or(bad("the hit after `#` is not a number"))?),
        };
        let (site, step) = match rest.split_once(':') {
            None => (rest, None),
            Some((site, step)) => (site, Some(number(step).ok_or(bad("the step after `:` is not a number"))?)),
        };
        if hit == 0 {
            return Err(bad("hits count from 1"));
        }
        if site.is_empty() {
            return Err(bad("it has no name"));
        }
        Ok(Self { site: site.to_owned(), step, hit })
    }
}

/// Digits only: `u32::from_str` would also take a sign.
fn number(text: &str) -> Option<u32> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) { text.parse().ok() } else { None }
}

/// What happens at crash points: nothing, or a callback that records, kills, or both.
#[derive(Clone, Default)]
pub struct Crash {
    watch: Option<Arc<Watch>>,
}

struct Watch {
    hits: Mutex<Hits>,
    on_pass: Box<dyn Fn(&CrashPoint) + Send + Sync>,
}

/// Passages counted so far. Steps run in order, so only the present step's are kept: watching a plan of any length
/// costs the same memory.
#[derive(Default)]
struct Hits {
    outside: BTreeMap<CrashSite, u32>,
    step: Option<u32>,
    inside: BTreeMap<CrashSite, u32>,
}

impl Hits {
    fn count(&mut self, site: CrashSite, step: Option<u32>) -> u32 {
        if step.is_some() && step != self.step {
            self.step = step;
            self.inside.clear();
        }
        let hits = if step.is_some() { &mut self.inside } else { &mut self.outside };
        let hit = hits.entry(site).or_default();
        *hit += 1;
        *hit
    }
}

impl Crash {
    /// No point does anything.
    #[must_use]
    pub fn off() -> Self {
        Self::default()
    }

    /// `on_pass` is called at every point, on the thread that passes it.
    pub fn watching(on_pass: impl Fn(&CrashPoint) + Send + Sync + 'static) -> Self {
        Self { watch: Some(Arc::new(Watch { hits: Mutex::default(), on_pass: Box::new(on_pass) })) }
    }

    /// The points of one step, or those outside the steps.
    #[must_use]
    pub fn scope(&self, step: Option<u32>) -> CrashScope<'_> {
        CrashScope { crash: self, step }
    }
}

impl fmt::Debug for Crash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.watch.is_some() { "Crash(watching)" } else { "Crash(off)" })
    }
}

/// [`Crash`] with the step that is under way.
#[derive(Clone, Copy, Debug)]
pub struct CrashScope<'a> {
    crash: &'a Crash,
    step: Option<u32>,
}

impl CrashScope<'_> {
    /// Passes `site`. While crash points are off this is one branch.
    #[inline]
    pub fn point(&self, site: CrashSite) {
        if let Some(watch) = &self.crash.watch {
            watch.pass(site, self.step);
        }
    }
}

impl Watch {
    fn pass(&self, site: CrashSite, step: Option<u32>) {
        let hit = self.hits.lock().unwrap_or_else(PoisonError::into_inner).count(site, step);
        (self.on_pass)(&CrashPoint { site: site.0.to_owned(), step, hit });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rstest::rstest;

    proptest! {
        #[test]
        fn the_text_form_round_trips(site in "[a-z_.]{1,12}", step in proptest::option::of(0u32..999), hit in 1u32..99) {
            let point = CrashPoint { site, step, hit };
            prop_assert_eq!(point.to_string().parse::<CrashPoint>(), Ok(point));
        }
    }

    #[rstest]
    #[case("", "no name")]
    #[case(":2", "no name")]
    #[case("after_effect:", "not a number")]
    #[case("after_effect:-1", "not a number")]
    #[case("after_effect:+1", "not a number")]
    #[case("after_effect:2#", "not a number")]
    #[case("after_effect:2#0", "count from 1")]
    #[case("after_effect:99999999999", "not a number")]
    fn a_slip_is_refused_and_named(#[case] text: &str, #[case] why: &str) {
        let error = text.parse::<CrashPoint>().expect_err("must be refused").to_string();
        assert!(error.contains(why), "{error}");
    }

    #[test]
    fn passages_are_counted_for_each_site_and_step() {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&seen);
        let crash = Crash::watching(move |point| log.lock().unwrap().push(point.to_string()));
        crash.scope(Some(0)).point(COMMIT_DONE);
        crash.scope(None).point(COMMIT_DONE);
        crash.scope(Some(0)).point(COMMIT_DONE);
        crash.scope(Some(1)).point(COMMIT_DONE);
        crash.scope(None).point(COMMIT_DONE);
        Crash::off().scope(None).point(RUN_STARTED);
        let expected = ["commit.done:0", "commit.done", "commit.done:0#2", "commit.done:1", "commit.done#2"];
        assert_eq!(*seen.lock().unwrap(), expected);
    }
}

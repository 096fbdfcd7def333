//! `chaos tool`: which effect class a program of the exec protocol has earned.
//!
//! The program is called as an agent would call it, is killed at its system calls and at moments in between, and is
//! called again with the same key. What it did to the world, a probe tells: a command that prints the outcomes, one a
//! line. The lab takes nobody's word for it.

mod call;
mod class;
mod gauge;

use std::fmt::Write as _;

use serde_json::{Value, json};

pub use call::{Check, Program};
pub use class::Class;
pub use gauge::{Gauge, Play, Probe};

/// So many faults of a play are shown to people; they mostly have one cause.
const SHOWN: usize = 3;

/// What was found out about a program.
#[derive(Debug)]
pub struct Measured {
    /// The class that it has earned.
    pub earned: Class,
    /// Why it is that one and no better one.
    pub because: String,
    /// What was played, in order.
    pub plays: Vec<Play>,
}

impl Measured {
    /// From what was played. Without a probe nothing of the world was seen, so nothing is earned.
    #[must_use]
    pub fn of(plays: Vec<Play>, outcomes: Option<usize>, asked: bool) -> Self {
        let fails = |for_class: Class| {
            plays
                .iter()
                .filter(|play| play.judges == for_class)
                .find(|play| !play.faults.is_empty())
                .map(|play| play.name)
        };
        let (earned, because) = match (outcomes, fails(Class::Keyed), fails(Class::Verifiable)) {
            (None, ..) => (Class::Once, "without --probe nothing is known of what it does to the world".to_owned()),
            (Some(0), None, _) => (Class::Pure, "no call left an outcome that the probe sees".to_owned()),
            (Some(_), None, _) => (Class::Keyed, "however often it was called, one key had one outcome".to_owned()),
            (Some(_), Some(play), None) if asked => {
                (Class::Verifiable, format!("its check always tells the truth; no better, see `{play}`"))
            }
            (Some(_), Some(play), None) => (Class::Once, format!("see `{play}`; it has no check that could be asked")),
            (Some(_), Some(play), Some(check)) => (Class::Once, format!("see `{play}` and `{check}`")),
        };
        Self { earned, because, plays }
    }

    /// For people.
    #[must_use]
    pub fn text(&self, claimed: Option<Class>) -> String {
        let mut text = String::new();
        for play in &self.plays {
            let verdict = if play.faults.is_empty() { "held" } else { "FAILED" };
            let _ = writeln!(text, "{:<12}  {verdict:<6}  {}", play.name, play.told);
            for fault in play.faults.iter().take(SHOWN) {
                let _ = writeln!(text, "{:22}{fault}", "");
            }
            if let Some(more) = play.faults.len().checked_sub(SHOWN).filter(|more| *more > 0) {
                let _ = writeln!(text, "{:22}and {more} more like it", "");
            }
        }
        let _ = writeln!(text, "\nearned: {}: {}", self.earned.as_str(), self.because);
        if let Some(claimed) = claimed.filter(|claimed| *claimed > self.earned) {
            let _ = writeln!(text, "claimed: {}, which is more than it has earned", claimed.as_str());
        }
        text
    }

    /// For programs.
    #[must_use]
    pub fn json(&self, claimed: Option<Class>) -> Value {
        let plays: Vec<Value> = self.plays.iter().map(Play::json).collect();
        json!({
            "earned": self.earned.as_str(),
            "claimed": claimed.map(Class::as_str),
            "because": self.because,
            "plays": plays,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn play(judges: Class, name: &'static str, fails: bool) -> Play {
        let faults = fails.then(|| "2 outcomes instead of 1".to_owned()).into_iter().collect();
        Play { judges, name, told: String::new(), faults }
    }

    fn earned(outcomes: Option<usize>, keyed_fails: bool, check_fails: bool, asked: bool) -> Class {
        let plays = vec![play(Class::Keyed, "twice", keyed_fails), play(Class::Verifiable, "asked", check_fails)];
        Measured::of(plays, outcomes, asked).earned
    }

    #[test]
    fn a_class_is_earned_by_what_was_seen() {
        assert_eq!(earned(Some(0), false, false, false), Class::Pure);
        assert_eq!(earned(Some(1), false, false, false), Class::Keyed);
        assert_eq!(earned(Some(1), true, false, true), Class::Verifiable);
        assert_eq!(earned(Some(1), true, true, true), Class::Once);
        assert_eq!(earned(Some(1), true, false, false), Class::Once, "nobody was asked");
        assert_eq!(earned(None, false, false, true), Class::Once, "nothing was seen");
    }

    #[test]
    fn a_claim_that_is_not_earned_is_told() {
        let measured = Measured::of(vec![play(Class::Keyed, "twice", true)], Some(1), false);
        assert!(measured.text(Some(Class::Keyed)).contains("claimed: keyed, which is more than it has earned"));
        assert!(!measured.text(Some(Class::Once)).contains("claimed"));
        assert_eq!(measured.json(None)["earned"], "once");
    }
}

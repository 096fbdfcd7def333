//! The three things that a judge may say.

use serde::{Deserialize, Serialize};

/// What a judge says about one property of one scenario.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The property holds.
    Holds,
    /// The property is violated; the text says why and shows the evidence.
    Violated(String),
    /// The scenario did not get where it wanted to be, so nothing was tested. A failure like the other: a test that
    /// misses its window must not pass.
    NotReached(String),
}

/// A judgement in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VerdictKind {
    /// The property holds.
    Holds,
    /// The scenario did not get where it wanted to be; a failure.
    NotReached,
    /// The property is violated.
    Violated,
}

/// One thing that did not hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// The property's name, e.g. `effect_once`.
    pub property: String,
    /// `violated` or `not_reached`.
    pub verdict: VerdictKind,
    /// Why, with the evidence; may have several lines.
    pub why: String,
}

impl Verdict {
    /// `Holds` where nothing is complained about, else `Violated` with one complaint a line.
    #[must_use]
    pub fn of(complaints: &[String]) -> Self {
        if complaints.is_empty() { Self::Holds } else { Self::Violated(complaints.join("\n")) }
    }

    /// Whether the property holds.
    #[must_use]
    pub fn holds(&self) -> bool {
        matches!(self, Self::Holds)
    }

    /// The verdict as a finding of the judge called `judge`; nothing where it holds.
    #[must_use]
    pub fn finding(self, judge: &str) -> Option<Finding> {
        let (verdict, why) = match self {
            Self::Holds => return None,
            Self::Violated(why) => (VerdictKind::Violated, why),
            Self::NotReached(why) => (VerdictKind::NotReached, why),
        };
        Some(Finding { property: judge.to_owned(), verdict, why })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn complaints_become_a_violation_and_none_becomes_holds() {
        assert!(Verdict::of(&[]).holds());
        let verdict = Verdict::of(&["a".to_owned(), "b".to_owned()]);
        assert_eq!(verdict, Verdict::Violated("a\nb".to_owned()));
        let finding = verdict.finding("judge").expect("a finding");
        assert_eq!(finding.verdict, VerdictKind::Violated);
        assert_eq!(Verdict::Holds.finding("judge"), None);
    }
}

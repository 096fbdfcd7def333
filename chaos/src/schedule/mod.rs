//! When and how the agent is killed, as a value with a one-line text form:
//! `after_effect:2, before_effect:2, +37ms, term@1, write_artifact:2/linkat#1`. The i-th kill belongs to the i-th run
//! of the task; the run after the last kill is left alone.

mod call;
mod kill;
mod parse;
mod point;

pub use call::CallPoint;
pub use kill::{Kill, NONE, Sign};
pub use parse::ParseError;
pub use point::CrashPoint;

use std::fmt;
use std::str::FromStr;
use std::sync::LazyLock;

/// Kills in the order of the runs that they end.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct KillSchedule(pub Vec<Kill>);

impl KillSchedule {
    /// A schedule in which nothing is killed.
    #[must_use]
    pub fn none() -> &'static Self {
        static NONE: LazyLock<KillSchedule> = LazyLock::new(KillSchedule::default);
        &NONE
    }

    /// Kills at these points, one a run.
    #[must_use]
    pub fn points<'a>(points: impl IntoIterator<Item = &'a CrashPoint>) -> Self {
        Self(points.into_iter().cloned().map(Kill::Point).collect())
    }

    /// The place in the matrix: the first kill, where it is a point.
    #[must_use]
    pub fn first_point(&self) -> Option<&CrashPoint> {
        match self.0.first() {
            Some(Kill::Point(point)) => Some(point),
            _ => None,
        }
    }
}

impl fmt::Display for KillSchedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str(NONE);
        }
        for (i, kill) in self.0.iter().enumerate() {
            write!(f, "{}{kill}", if i == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}

impl FromStr for KillSchedule {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        parse::schedule(text).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rstest::rstest;

    fn any_kill() -> impl Strategy<Value = Kill> {
        let point = ("[a-z][a-z0-9_]{0,8}(\\.[a-z][a-z0-9_]{0,8}){0,2}", proptest::option::of(0_usize..100), 1_u32..9)
            .prop_map(|(site, step, hit)| Kill::Point(CrashPoint { site, step, hit }));
        let sign = prop::sample::select(Sign::ALL.to_vec());
        prop_oneof![
            point,
            (0_u64..10_000_000).prop_map(Kill::Delay),
            (sign, any::<bool>(), 0_usize..100).prop_map(|(sign, group, step)| Kill::Signal { sign, group, step }),
            ("[a-z][a-z0-9_]{0,8}(:(0|[1-9][0-9]?))?", "[a-z][a-z0-9_]{0,8}", 1_u32..99)
                .prop_map(|(phase, call, nth)| Kill::Call(CallPoint { phase, call, nth })),
        ]
    }

    proptest! {
        #[test]
        fn a_schedule_comes_back_from_its_text(kills in prop::collection::vec(any_kill(), 0..5)) {
            let schedule = KillSchedule(kills);
            prop_assert_eq!(schedule.to_string().parse::<KillSchedule>(), Ok(schedule));
        }

        #[test]
        fn no_text_makes_the_parser_panic(text in "\\PC*") {
            let _ = text.parse::<KillSchedule>();
        }
    }

    #[rstest]
    #[case("after_effect:2, before_effect:2#2, +37ms")]
    #[case("+250us, term@1, int@0, stop@2, kill@2")]
    #[case("term-group@1, int-group@0")]
    #[case("recover.swept, commit.written:1#3")]
    #[case("write_artifact:2/linkat#1, open/pwrite64#3")]
    #[case("none")]
    fn the_documented_forms_are_read_and_written_alike(#[case] text: &str) {
        assert_eq!(text.parse::<KillSchedule>().expect("read").to_string(), text);
    }

    #[test]
    fn spaces_and_hit_one_are_not_needed() {
        let tight: KillSchedule = "after_effect:2#1,+1000us".parse().expect("read");
        assert_eq!(tight.to_string(), "after_effect:2, +1ms");
    }

    #[rstest]
    #[case("after_effect:x", 13, "step")]
    #[case("after_effect:2, ", 16, "empty")]
    #[case("after_effect:2#0", 15, "hit")]
    #[case("+37", 3, "ms")]
    #[case("+ms", 1, "number")]
    #[case("nap@1", 0, "signal")]
    #[case("term@", 5, "step")]
    #[case("After:1", 0, "site")]
    #[case("close/linkat", 12, "numbered")]
    #[case("close/#1", 6, "call")]
    #[case("close/linkat#0", 13, "numbered")]
    #[case("", 0, "empty")]
    #[case("none, +1ms", 0, "alone")]
    fn a_bad_schedule_is_refused_at_the_place(#[case] text: &str, #[case] at: usize, #[case] word: &str) {
        let error = text.parse::<KillSchedule>().expect_err("refused");
        assert_eq!(error.at, at, "{error}");
        assert!(error.to_string().contains(word), "{error}");
        assert!(error.to_string().ends_with('^'), "{error}");
    }
}

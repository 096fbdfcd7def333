//! Points in time.

/// A point in time, in whole microseconds since the Unix epoch: exact, so that it can stand in a state that is
/// compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

impl Timestamp {
    /// So many microseconds after the epoch.
    #[must_use]
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    /// So many seconds after the epoch, as databases and JSON have them; the nearest microsecond that there is.
    #[must_use]
    pub fn from_seconds(seconds: f64) -> Self {
        Self((seconds * 1e6).round() as i64)
    }

    /// Microseconds since the epoch.
    #[must_use]
    pub fn as_micros(self) -> i64 {
        self.0
    }

    /// Seconds since the epoch. For every time before the year 2105 it is the number that [`Timestamp::from_seconds`]
    /// was given.
    #[must_use]
    pub fn as_seconds(self) -> f64 {
        self.0 as f64 / 1e6
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_time_of_this_era_survives_its_seconds(micros in 0i64..4_290_000_000_000_000) {
            let time = Timestamp::from_micros(micros);
            prop_assert_eq!(Timestamp::from_seconds(time.as_seconds()), time);
        }
    }

    #[test]
    fn what_is_not_a_time_does_no_harm() {
        assert_eq!(Timestamp::from_seconds(f64::NAN), Timestamp::default());
        assert_eq!(Timestamp::from_seconds(f64::INFINITY).as_micros(), i64::MAX);
    }
}

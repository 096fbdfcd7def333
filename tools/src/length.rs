//! Times and lengths of time, as plans spell them.

use std::time::Duration;

use store::model::Timestamp;

use crate::attempt::Due;

/// Longest length: a hundred years.
const MAX_SECONDS: u64 = 100 * 366 * 86_400;

/// What a length of time must be.
pub const LENGTH: &str = "a length of time such as 10ms, 30s, 5m, 2h or 7d";

/// A length of time: a whole number and its unit, `ms`, `s`, `m`, `h` or `d`. None where it is not one.
#[must_use]
pub fn parse_length(text: &str) -> Option<Duration> {
    let (number, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit())?);
    let number: u64 = number.parse().ok()?;
    let length = match unit {
        "ms" => Duration::from_millis(number),
        "s" => Duration::from_secs(number),
        "m" => Duration::from_secs(number.checked_mul(60)?),
        "h" => Duration::from_secs(number.checked_mul(3_600)?),
        "d" => Duration::from_secs(number.checked_mul(86_400)?),
        _ => return None,
    };
    (length <= Duration::from_secs(MAX_SECONDS)).then_some(length)
}

/// What a time must be.
pub const TIME: &str = "a time such as 2026-12-24T18:00:00Z";

/// A time as RFC 3339 has it, with its offset. None where it is not one.
#[must_use]
pub fn parse_time(text: &str) -> Option<Timestamp> {
    let time: jiff::Timestamp = text.parse().ok()?;
    Some(Timestamp::from_micros(time.as_microsecond()))
}

/// A time, or a length of time from now on. None where it is neither.
#[must_use]
pub fn parse_due(text: &str) -> Option<Due> {
    parse_length(text).map(Due::After).or_else(|| parse_time(text).map(Due::At))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("10ms", 10)]
    #[case("30s", 30_000)]
    #[case("5m", 300_000)]
    #[case("2h", 7_200_000)]
    #[case("7d", 604_800_000)]
    #[case("0s", 0)]
    fn a_length_is_a_number_and_its_unit(#[case] text: &str, #[case] millis: u64) {
        assert_eq!(parse_length(text), Some(Duration::from_millis(millis)));
    }

    #[test]
    fn what_is_no_length_is_refused() {
        for text in
            ["", "5", "s", "-1s", "+1s", "1.5h", "5 m", " 5m", "5m ", "5M", "5min", "1h30m", "99999999999999999d"]
        {
            assert_eq!(parse_length(text), None, "{text}");
        }
    }

    #[test]
    fn a_time_has_its_offset() {
        let at = |micros| Some(Timestamp::from_micros(micros));
        assert_eq!(parse_time("1970-01-01T00:00:01Z"), at(1_000_000));
        assert_eq!(parse_time("1970-01-01T01:00:00.5+01:00"), at(500_000));
        assert_eq!(parse_due("5s"), Some(Due::After(Duration::from_secs(5))));
        for text in ["", "1970-01-01", "1970-01-01T00:00:01", "tomorrow", "5"] {
            assert_eq!(parse_due(text), None, "{text}");
        }
    }
}

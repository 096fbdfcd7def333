//! Lengths of time, as plans spell them.

use std::time::Duration;

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
}

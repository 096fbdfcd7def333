//! Whole numbers that JSON can write and no 64 bits can hold.

use super::spot::Spot;

/// Looks through the text of a JSON document, a piece at a time, for whole numbers that do not fit into 64 bits. A
/// parser takes them for decimals without a word, and what comes out is another number.
#[derive(Debug, Default)]
pub(super) struct WholeNumbers {
    place: Place,
    /// Where the next byte is.
    at: Spot,
    /// Where the number begins.
    from: Spot,
    /// The beginning of the number that is being read.
    number: String,
    /// Whether it is written as a decimal.
    decimal: bool,
    found: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Place {
    #[default]
    Between,
    Text,
    /// Right behind a backslash.
    Escape,
    Number,
}

/// As much of a number as a message shows, and more than any that fits has.
const SHOWN: usize = 40;

impl WholeNumbers {
    /// For a text that begins there.
    pub(super) fn from(at: Spot) -> Self {
        Self { at, ..Self::default() }
    }

    /// The next piece. What is not JSON is for the parser to find.
    pub(super) fn feed(&mut self, piece: &[u8]) {
        for &byte in piece {
            self.place = match (self.place, byte) {
                (Place::Escape, _) => Place::Text,
                (Place::Text, b'\\') => Place::Escape,
                (Place::Text, b'"') => Place::Between,
                (Place::Text, _) => Place::Text,
                (Place::Between | Place::Number, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E') => {
                    self.take(byte);
                    Place::Number
                }
                (place, byte) => {
                    if place == Place::Number {
                        self.end();
                    }
                    if byte == b'"' { Place::Text } else { Place::Between }
                }
            };
            self.at.pass(byte);
        }
    }

    /// After the last piece: the first number that does not fit, with its place.
    #[must_use]
    pub(super) fn finish(mut self) -> Option<String> {
        self.end();
        self.found
    }

    fn take(&mut self, byte: u8) {
        if self.place != Place::Number {
            self.number.clear();
            self.decimal = false;
            self.from = self.at;
        }
        self.decimal |= matches!(byte, b'.' | b'e' | b'E');
        if self.number.len() < SHOWN {
            self.number.push(char::from(byte));
        }
    }

    fn end(&mut self) {
        let number = std::mem::take(&mut self.number);
        let whole = !self.decimal && number.ends_with(|last: char| last.is_ascii_digit());
        if whole && number.parse::<i64>().is_err() && number.parse::<u64>().is_err() && self.found.is_none() {
            self.found = Some(self.from.says(&format!("{number} is a whole number beyond 64 bits")));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    fn found(text: &str) -> Option<String> {
        let mut numbers = WholeNumbers::default();
        numbers.feed(text.as_bytes());
        let by_bytes = text.as_bytes().chunks(1).fold(WholeNumbers::default(), |mut numbers, byte| {
            numbers.feed(byte);
            numbers
        });
        let found = numbers.finish();
        assert_eq!(by_bytes.finish(), found, "pieces make no difference");
        found
    }

    #[rstest]
    #[case("18446744073709551615")]
    #[case("[-9223372036854775808, 0, -0, 7]")]
    #[case("18446744073709551616.0")]
    #[case("[1e300, 1E+300, 99999999999999999999e0]")]
    #[case(r#"{"18446744073709551616": "x 18446744073709551616 \" 99999999999999999999 \\", "a": true}"#)]
    #[case("true")]
    #[case("")]
    fn what_fits_or_is_text_or_decimal_is_let_through(#[case] text: &str) {
        assert_eq!(found(text), None);
    }

    #[rstest]
    #[case("18446744073709551616", "18446744073709551616 is a whole number beyond 64 bits at line 1 column 1")]
    #[case("{\"a\":\n [1,-9223372036854775809]}", "-9223372036854775809 is a whole number beyond 64 bits at line 2")]
    #[case(r#"{"\\":99999999999999999999}"#, "99999999999999999999 is")]
    fn what_does_not_fit_is_named_with_its_place(#[case] text: &str, #[case] says: &str) {
        let found = found(text).unwrap();
        assert!(found.contains(says), "{found}");
    }

    #[test]
    fn a_number_without_end_is_shown_in_part() {
        assert!(found(&"9".repeat(1 << 20)).unwrap().len() < 120);
        // Its exponent comes after what is kept; it is a decimal all the same.
        assert_eq!(found(&("9".repeat(100) + "e5")), None);
    }
}

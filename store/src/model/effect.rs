//! What a step changes outside the database, and what an attempt intends.

use std::fmt;
use std::str::FromStr;

use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use super::spelling::{UnknownWord, spelled};

spelled! {
    /// What a tool changes outside the database, and what protects a repeated attempt.
    Effect, "a class of effect" {
        /// Nothing: it may run again freely.
        Pure = "pure",
        /// Something that happens once for one idempotency key, however often it is attempted.
        Keyed = "keyed",
        /// Something of which can be found out whether it has happened: only where it has not, it is attempted again.
        Verifiable = "verifiable",
        /// Something that happens with every attempt, and of which nobody but a person can find out.
        Once = "once",
    }
}

/// The SHA-256 of a rendered input.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest(pub [u8; 32]);

impl Digest {
    /// Of an input, as JSON with sorted keys and no spaces.
    #[must_use]
    pub fn of(input: &Map<String, Value>) -> Self {
        let json = serde_json::to_vec(input).unwrap_or_else(|error| unreachable!("an input is JSON: {error}"));
        Self(Sha256::digest(json).into())
    }

    /// Of a text.
    #[must_use]
    pub fn of_text(text: &str) -> Self {
        Self(Sha256::digest(text).into())
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Digest {
    type Err = UnknownWord;

    fn from_str(text: &str) -> Result<Self, UnknownWord> {
        let bad = || UnknownWord::new(text, "a SHA-256 in lower-case hex");
        if text.len() != 64 || text.bytes().any(|byte| !matches!(byte, b'0'..=b'9' | b'a'..=b'f')) {
            return Err(bad());
        }
        let mut bytes = [0; 32];
        for (at, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&text[2 * at..2 * at + 2], 16).map_err(|_| bad())?;
        }
        Ok(Self(bytes))
    }
}

/// What an attempt is about to do; stored before anything is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Intent {
    /// The digest of the rendered input.
    pub digest: Digest,
    /// The class in force: that of the first attempt, whatever a later plan or program names.
    pub effect: Effect,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_digest_is_that_of_sorted_json_without_spaces() {
        let Value::Object(input) = json!({ "b": [1, 2.5, "é"], "a": null }) else { unreachable!() };
        let digest = Digest::of(&input);
        assert_eq!(digest.0[..], Sha256::digest(r#"{"a":null,"b":[1,2.5,"é"]}"#)[..]);
        assert_eq!(digest.to_string().parse(), Ok(digest));
    }

    #[test]
    fn what_is_no_digest_is_refused() {
        let good = Digest([0xab; 32]).to_string();
        for bad in ["", &good[1..], &good.to_uppercase(), &format!("{good}0"), &good.replace("ab", "g+")] {
            assert!(bad.parse::<Digest>().is_err(), "{bad}");
        }
    }
}

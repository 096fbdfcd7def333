//! The effect classes, as a person claims them and as a program earns them.

use std::str::FromStr;

/// What a repeated call does to the world; the better ones later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// Nobody knows: it may be called once.
    Once,
    /// It can be asked whether its effect happened.
    Verifiable,
    /// The same key has the effect once.
    Keyed,
    /// There is no effect.
    Pure,
}

impl Class {
    const ALL: [Self; 4] = [Self::Once, Self::Verifiable, Self::Keyed, Self::Pure];

    /// Its spelling.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Once => "once",
            Self::Verifiable => "verifiable",
            Self::Keyed => "keyed",
            Self::Pure => "pure",
        }
    }
}

impl FromStr for Class {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|class| class.as_str() == text);
        found.ok_or_else(|| format!("`{text}` is not a class; there are {}", Self::ALL.map(Self::as_str).join(", ")))
    }
}

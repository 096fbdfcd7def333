//! What is promised of an effect after a crash: its class, restated.

/// What is promised of an effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Promise {
    /// There is none, so that a repeated attempt does no harm.
    Pure,
    /// The receiver knows the key.
    Keyed,
    /// It can be asked about.
    Verifiable,
    /// Nothing protects a second attempt but a person's word.
    Once,
}

impl Promise {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Pure, Self::Keyed, Self::Verifiable, Self::Once];

    /// The class as plans spell it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Pure => "pure",
            Self::Keyed => "keyed",
            Self::Verifiable => "verifiable",
            Self::Once => "once",
        }
    }
}

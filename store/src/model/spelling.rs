//! Words that are stored: one table for each kind of them.

/// A stored word that this version does not know.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{word}` is not {what} that this version knows")]
pub struct UnknownWord {
    word: String,
    what: &'static str,
}

impl UnknownWord {
    /// A word that should have been `what`, with its article.
    pub(crate) fn new(word: &str, what: &'static str) -> Self {
        Self { word: word.to_owned(), what }
    }
}

/// Defines an enum together with its spellings, which are fixed: other programs read them.
macro_rules! spelled {
    ($(#[$about:meta])* $name:ident, $what:literal { $($(#[$doc:meta])* $variant:ident = $text:literal),+ $(,)? }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name {
            $($(#[$doc])* $variant),+
        }

        impl $name {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The spelling in the database and in JSON.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $text),+
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::model::UnknownWord;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                let found = Self::ALL.iter().find(|word| word.as_str() == text);
                found.copied().ok_or_else(|| $crate::model::UnknownWord::new(text, $what))
            }
        }
    };
}
pub(super) use spelled;

//! Places in a text.

/// A place in a text, counted from 1 as editors do; columns are bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Spot {
    pub(super) line: usize,
    pub(super) column: usize,
}

impl Default for Spot {
    fn default() -> Self {
        Self { line: 1, column: 1 }
    }
}

impl Spot {
    /// Goes on behind a byte.
    pub(super) fn pass(&mut self, byte: u8) {
        match byte {
            b'\n' => *self = Self { line: self.line + 1, column: 1 },
            _ => self.column += 1,
        }
    }

    pub(super) fn says(self, what: &str) -> String {
        format!("{what} at line {} column {}", self.line, self.column)
    }
}

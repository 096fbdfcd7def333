//! What can become of an action log between two runs: a crash tears its last line, somebody moves it away, other
//! programs write to it.

use crate::case::inbox::LOG;
use crate::error::LabError;
use crate::look::sandbox::Sandbox;

/// Lines that no reader may trip over: two that are JSON and no objects, one that is not JSON, one that is not UTF-8,
/// one of another program, an empty one.
const FOREIGN: &[u8] = b"5\nnull\nthis is not JSON\n\xff\xfe\n{\"level\":\"info\",\"task\":7}\n\n";

/// A damage to the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Damage {
    /// Its last line ends in the middle, inside a character where it has one of several bytes.
    Torn,
    /// It is gone.
    Lost,
    /// Other programs have added lines.
    Foreign,
}

impl Damage {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Torn, Self::Lost, Self::Foreign];

    /// The word in scenario ids.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Torn => "torn",
            Self::Lost => "lost",
            Self::Foreign => "foreign",
        }
    }

    /// For people.
    #[must_use]
    pub fn about(self) -> &'static str {
        match self {
            Self::Torn => "the log's last line torn",
            Self::Lost => "the log removed",
            Self::Foreign => "foreign lines in the log",
        }
    }

    /// Does it to the log of a sandbox in which no process is at work. Where there is no log, there is nothing to
    /// damage.
    ///
    /// # Errors
    /// A log that cannot be read or written.
    pub fn apply(self, sandbox: &Sandbox) -> Result<(), LabError> {
        let Some(log) = sandbox.log()? else { return Ok(()) };
        match self {
            Self::Torn => sandbox.write(LOG, torn(&log)),
            Self::Foreign => sandbox.write(LOG, &[&log, FOREIGN].concat()),
            Self::Lost => {
                let path = sandbox.world().join(LOG);
                std::fs::remove_file(&path).map_err(LabError::io("remove", &path))
            }
        }
    }
}

/// The log without the rest of its last line.
fn torn(log: &[u8]) -> &[u8] {
    let end = log.len() - usize::from(log.ends_with(b"\n"));
    let start = log[..end].iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let inside = log[start..end].iter().position(|byte| byte & 0xc0 == 0x80);
    &log[..start + inside.unwrap_or((end - start) / 2)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::inbox;
    use std::sync::Arc;

    #[test]
    fn a_line_is_torn_inside_a_character_or_in_its_middle() {
        assert_eq!(torn("{\"a\":1}\n{\"ü\":2}\n".as_bytes()), b"{\"a\":1}\n{\"\xc3");
        assert_eq!(torn(b"{\"a\":1}\n{\"b\":2}\n"), b"{\"a\":1}\n{\"b");
        assert_eq!(torn(b""), b"");
    }

    #[test]
    fn each_damage_changes_the_log_and_none_makes_one() {
        let root = tempfile::tempdir().expect("dir");
        let case = Arc::new(inbox::case());
        for damage in Damage::ALL {
            let sandbox = Sandbox::new(root.path(), &case).expect("sandbox");
            damage.apply(&sandbox).expect("damage");
            assert_eq!(sandbox.log().expect("read"), None);
            sandbox.write(LOG, b"{\"event\":\"task_created\"}\n").expect("write");
            damage.apply(&sandbox).expect("damage");
            let left = sandbox.log().expect("read");
            assert_eq!(left.is_none(), damage == Damage::Lost);
            assert_ne!(left.as_deref(), Some(b"{\"event\":\"task_created\"}\n".as_slice()));
        }
    }
}

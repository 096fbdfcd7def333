//! What the commands share.

use std::io::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use crate::error::LabError;

/// A process that takes longer hangs, where nobody chooses.
pub(super) const DEADLINE: &str = "30s";

pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let number: f64 = digits.parse().map_err(|_| "write a number with a unit, such as 90s".to_owned())?;
    let factor = match &text[digits.len()..] {
        "ms" => 0.001,
        "s" | "" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        unit => return Err(format!("`{unit}` is not a unit; there are ms, s, m and h")),
    };
    match Duration::try_from_secs_f64(number * factor) {
        Ok(Duration::ZERO) => Err("no time at all".to_owned()),
        other => other.map_err(|e| e.to_string()),
    }
}

pub(super) fn own_program() -> Result<PathBuf, LabError> {
    let lost = |e| LabError::Internal(format!("this program does not know where it is: {e}"));
    std::env::current_exe().map_err(lost)
}

/// Prints; a reader that has gone away is not the lab's failure.
pub(super) fn print(text: &str) -> Result<(), LabError> {
    crate::agent::live::pass();
    printed(anstream::stdout().write_all(text.as_bytes()))
}

pub(super) fn printed(written: std::io::Result<()>) -> Result<(), LabError> {
    match written {
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => Err(LabError::Internal(format!("cannot print: {e}"))),
        _ => Ok(()),
    }
}

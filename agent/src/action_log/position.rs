//! How far a log need not be read: a hint in the database, verified against the file.
//!
//! It says that the log's first `offset` bytes hold every event of the task up to `seq`. It is trusted only where the
//! bytes right before the offset are those that stood there, and end a line; a log that was cut, replaced, or had a line
//! taken out before the offset fails that, and is read whole.

use std::fmt::Write as _;

use sha2::{Digest, Sha256};
use store::model::TaskId;
use store::{LogPosition, Reader, limits};

use super::LogError;
use super::append::LogFile;

/// The kept position if the log bears it out, else its beginning.
pub(super) fn verified(file: &LogFile, reader: &mut dyn Reader, task: &TaskId) -> Result<LogPosition, LogError> {
    let beginning = LogPosition { seq: 0, offset: 0, digest: String::new() };
    let length = file.length()?;
    if length <= limits::LOG_POSITION_BYTES {
        return Ok(beginning);
    }
    let Some(kept) = reader.log_position(file.name(), task)? else { return Ok(beginning) };
    if kept.offset > length {
        return Ok(beginning);
    }
    Ok(if at(file, kept.offset, kept.seq)?.as_ref() == Some(&kept) { kept } else { beginning })
}

/// The position at `offset`, which must not lie behind the end; `None` where no line ends there.
pub(super) fn at(file: &LogFile, offset: u64, seq: i64) -> Result<Option<LogPosition>, LogError> {
    let tail = offset.min(limits::LOG_TAIL_BYTES);
    let mut bytes = vec![0; usize::try_from(tail).unwrap_or_default()];
    file.read_exact_at(&mut bytes, offset - tail)?;
    if bytes.last() != Some(&b'\n') {
        return Ok(None);
    }
    let digest = Sha256::digest(&bytes).iter().fold(String::new(), |mut text, byte| {
        let _infallible = write!(text, "{byte:02x}");
        text
    });
    Ok(Some(LogPosition { seq, offset, digest }))
}

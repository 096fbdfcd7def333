//! Reading a text file whole.

use std::io::Read;
use std::path::Path;

use store::limits;

use crate::error::ToolError;
use crate::regular::open_regular;

/// The text of a regular file, byte for byte (a byte-order mark stays), which must be UTF-8.
///
/// # Errors
/// A step error that names the file, and the offset of the first byte that is not UTF-8.
pub fn read_text(path: &Path) -> Result<String, ToolError> {
    let failed = |error: std::io::Error| ToolError::step(format!("cannot read {}: {error}", path.display()));
    let file = open_regular(path).map_err(failed)?;
    let length = file.metadata().map_err(failed)?.len();
    let too_long = || ToolError::step(format!("{} has more than {} bytes", path.display(), limits::INPUT_FILE_BYTES));
    if length > limits::INPUT_FILE_BYTES {
        return Err(too_long());
    }
    let mut bytes = Vec::with_capacity(usize::try_from(length.min(limits::INPUT_FILE_BYTES)).unwrap_or_default());
    file.take(limits::INPUT_FILE_BYTES + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > limits::INPUT_FILE_BYTES {
        return Err(too_long());
    }
    String::from_utf8(bytes).map_err(|error| {
        let offset = error.utf8_error().valid_up_to();
        ToolError::step(format!("{} is not UTF-8: invalid byte at offset {offset}", path.display()))
    })
}

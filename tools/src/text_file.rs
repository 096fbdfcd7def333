//! Reading a text file whole.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use store::limits;

use crate::tool::ToolError;

/// The text of a regular file, byte for byte (a byte-order mark stays), which must be UTF-8.
///
/// # Errors
/// A step error that names the file, and the offset of the first byte that is not UTF-8.
pub fn read_text(path: &Path) -> Result<String, ToolError> {
    let failed = |error: std::io::Error| ToolError::step(format!("cannot read {}: {error}", path.display()));
    // Looked at before it is opened: opening a named pipe would wait for a writer that may never come.
    let meta = std::fs::metadata(path).map_err(failed)?;
    if !meta.is_file() {
        let what = if meta.is_dir() { "a folder" } else { "no regular file" };
        return Err(ToolError::step(format!("cannot read {}: it is {what}", path.display())));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(meta.len().min(limits::INPUT_FILE_BYTES)).unwrap_or_default());
    File::open(path)
        .and_then(|file| file.take(limits::INPUT_FILE_BYTES + 1).read_to_end(&mut bytes))
        .map_err(failed)?;
    if bytes.len() as u64 > limits::INPUT_FILE_BYTES {
        let limit = limits::INPUT_FILE_BYTES;
        return Err(ToolError::step(format!("{} has more than {limit} bytes", path.display())));
    }
    String::from_utf8(bytes).map_err(|error| {
        let offset = error.utf8_error().valid_up_to();
        ToolError::step(format!("{} is not UTF-8: invalid byte at offset {offset}", path.display()))
    })
}

//! Opening what must be a file.

use std::fs::{self, File, FileType, OpenOptions};
use std::io;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

use nix::fcntl::OFlag;

/// Opens a regular file for reading. Whatever else stands there is told at once: opening a named pipe would wait for a
/// writer that may never come, and opening a device may do something.
///
/// # Errors
/// There is no file, it may not be read, or it is not a regular file: then the error says what it is.
pub fn open_regular(path: &Path) -> io::Result<File> {
    check_regular(fs::metadata(path)?.file_type())?;
    // Between the two looks it may have become a pipe.
    let file = OpenOptions::new().read(true).custom_flags(OFlag::O_NONBLOCK.bits()).open(path)?;
    check_regular(file.metadata()?.file_type())?;
    Ok(file)
}

/// # Errors
/// It is not a regular file; the error says what it is.
pub fn check_regular(kind: FileType) -> io::Result<()> {
    let what = if kind.is_file() {
        return Ok(());
    } else if kind.is_dir() {
        "a folder"
    } else if kind.is_fifo() {
        "a named pipe"
    } else if kind.is_socket() {
        "a socket"
    } else if kind.is_symlink() {
        "a link"
    } else {
        "a device"
    };
    Err(io::Error::new(io::ErrorKind::InvalidInput, format!("it is {what}, not a file")))
}

/// For what is only appended to: a terminal or `/dev/null` may stand for a file. A pipe without a reader would be
/// waited for.
///
/// # Errors
/// It is neither; the error says what it is.
pub fn check_appendable(kind: FileType) -> io::Result<()> {
    if kind.is_char_device() { Ok(()) } else { check_regular(kind) }
}

//! Reading an agent's folder without waiting for anybody: whatever the agent has put there, a pipe that nobody writes
//! to, a socket or a device, the lab goes on.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use nix::libc;

/// Opens a file for reading; anything else, links not followed, counts as not there.
///
/// # Errors
/// What the system says, and `NotFound` for a pipe, a socket, a device or a link.
pub fn open(path: &Path) -> io::Result<File> {
    let is_file = |meta: std::fs::Metadata| if meta.is_file() { Ok(()) } else { Err(io::ErrorKind::NotFound.into()) };
    std::fs::symlink_metadata(path).and_then(is_file)?;
    // What stands there may be another thing by now.
    OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOFOLLOW).open(path)
}

/// A file's bytes.
///
/// # Errors
/// See [`open`].
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A lab waited for ever for somebody to write into an agent's pipe.
    #[test]
    fn a_file_is_read_and_a_pipe_a_socket_and_a_link_are_not_waited_for() {
        let dir = tempfile::tempdir().expect("dir");
        let path = |name: &str| dir.path().join(name);
        std::fs::write(path("file"), "text").expect("written");
        nix::unistd::mkfifo(&path("pipe"), nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
        std::os::unix::fs::symlink("pipe", path("link")).expect("a link");
        let _listener = std::os::unix::net::UnixListener::bind(path("socket")).expect("a socket");
        assert_eq!(read(&path("file")).expect("read"), b"text");
        for name in ["pipe", "link", "socket", "nothing"] {
            assert!(read(&path(name)).is_err(), "{name}");
        }
    }
}

//! The lock of one task: an exclusive `flock`, which the kernel frees when its holder dies.
//!
//! Other programs lock the same file, so its name is fixed: `<db>.<task>.lock`. Two databases may come to the same
//! name, `s` with the task `a.b` and `s.a` with the task `b`. So a run also locks one byte of the file, which one the
//! length of its database's name says: who finds the file locked, and a byte that is not its own, knows that the holder
//! is at work on another database.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::libc;

use super::beside::beside;
use super::error::io_failed;
use super::place::what;
use crate::error::{ErrorKind, StoreError};
use crate::limits;
use crate::model::TaskId;

/// `<db>.<task>.lock`; see [`TaskId::file_stem`].
#[must_use]
pub fn lock_path(database: &Path, task: &TaskId) -> PathBuf {
    beside(database, &format!(".{}.lock", task.file_stem()))
}

/// Refuses a task whose lock file the file system could not name, before anything is stored.
pub(super) fn check_lock_name(database: &Path, task: &TaskId) -> Result<(), StoreError> {
    let length = name_length(&lock_path(database, task));
    if length > limits::FILE_NAME_BYTES {
        let why = format!(
            "the name of the lock file would have {length} bytes, at most {} are possible: take a shorter task id or database name",
            limits::FILE_NAME_BYTES
        );
        return Err(StoreError::new(ErrorKind::Refused, why));
    }
    Ok(())
}

/// Takes the lock without waiting.
pub(super) fn try_lock(database: &Path, task: &TaskId) -> Result<File, StoreError> {
    try_lock_at(&lock_path(database, task), database, &format!("task `{task}`"))
}

/// Takes the lock at `path`; `what` is run by whoever has it.
pub(super) fn try_lock_at(path: &Path, database: &Path, what_is_run: &str) -> Result<File, StoreError> {
    let held = || {
        let why = format!("another process is running {what_is_run} (it holds {})", path.display());
        StoreError::new(ErrorKind::Held, why)
    };
    loop {
        let (file, kind) = open(path)?;
        let meta = file.metadata().map_err(io_failed("look at", path))?;
        if !meta.is_file() {
            let why = format!("the lock file {} is {}, not a file", path.display(), what(&meta));
            return Err(StoreError::new(ErrorKind::Refused, why));
        }
        let byte = name_length(database);
        if !lock_byte(&file, kind, byte).map_err(io_failed("lock", path))? {
            return Err(held());
        }
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) if is_for_another(&file, byte).map_err(io_failed("lock", path))? => {}
            Err(TryLockError::WouldBlock) => return Err(held()),
            Err(TryLockError::Error(error)) => return Err(io_failed("lock", path)(error)),
        }
        // Somebody may have removed the file between the two calls; a lock on a nameless file excludes nobody.
        match fs::metadata(path) {
            Ok(named) if (named.dev(), named.ino()) == (meta.dev(), meta.ino()) => return Ok(file),
            _ => {}
        }
    }
}

/// Opens the lock file, and says how a byte of it can be locked. What another user made, and this one may only read,
/// can be locked all the same. A pipe must not be waited for.
fn open(path: &Path) -> Result<(File, libc::c_int), StoreError> {
    let nonblocking = |options: &mut OpenOptions| options.custom_flags(OFlag::O_NONBLOCK.bits()).open(path);
    let file = match nonblocking(OpenOptions::new().create(true).truncate(false).write(true)) {
        Ok(file) => Ok((file, libc::F_WRLCK)),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied || error.raw_os_error() == Some(libc::ENXIO) => {
            nonblocking(OpenOptions::new().read(true)).map(|file| (file, libc::F_RDLCK)).map_err(|_| error)
        }
        Err(error) => Err(error),
    };
    file.map_err(io_failed("open the lock file", path))
}

/// Locks one byte until the file is closed; false where another process has locked it.
fn lock_byte(file: &File, kind: libc::c_int, byte: usize) -> io::Result<bool> {
    match fcntl(file, FcntlArg::F_OFD_SETLK(&range(kind, byte, 1))) {
        Ok(_) => Ok(true),
        Err(Errno::EAGAIN | Errno::EACCES) => Ok(false),
        // A file system without such locks has the flock alone.
        Err(Errno::EINVAL | Errno::ENOLCK | Errno::EOPNOTSUPP) => Ok(true),
        Err(error) => Err(error.into()),
    }
}

/// Whether the file is locked by a run of another database, which then has locked another byte.
fn is_for_another(file: &File, own: usize) -> io::Result<bool> {
    for (from, length) in [(0, own), (own + 1, limits::FILE_NAME_BYTES - own)] {
        let mut found = range(libc::F_WRLCK, from, length);
        match fcntl(file, FcntlArg::F_OFD_GETLK(&mut found)) {
            Ok(_) if libc::c_int::from(found.l_type) != libc::F_UNLCK => return Ok(true),
            Ok(_) | Err(Errno::EINVAL | Errno::EOPNOTSUPP) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(false)
}

/// Whether a process, this one included, has the database open with SQLite: then it has locked bytes from the first GiB
/// on (see "File Locking And Concurrency" in SQLite's documentation), in WAL mode for as long as it is connected.
pub(super) fn is_sqlite_at_work(database: &File) -> io::Result<bool> {
    const FROM: usize = 1 << 30;
    const LENGTH: usize = 512;
    let mut found = range(libc::F_WRLCK, FROM, LENGTH);
    match fcntl(database, FcntlArg::F_OFD_GETLK(&mut found)) {
        Ok(_) => Ok(libc::c_int::from(found.l_type) != libc::F_UNLCK),
        Err(Errno::EINVAL | Errno::EOPNOTSUPP) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn range(kind: libc::c_int, from: usize, length: usize) -> libc::flock {
    libc::flock {
        l_type: kind as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: from as libc::off_t,
        l_len: length as libc::off_t,
        l_pid: 0,
    }
}

fn name_length(path: &Path) -> usize {
    path.file_name().map_or(0, OsStr::len)
}

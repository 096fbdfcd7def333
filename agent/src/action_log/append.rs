//! The file: opened durably, locked, sealed, appended to.

use std::fs::{self, File, FileType, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use store::limits;

use tools::Stop;

use super::LogError;

/// What a run does to the file of its log, once it has the file's lock.
pub trait LogSink {
    /// The file, for reading.
    fn file(&self) -> &LogFile;

    /// Gives a torn last line its line break, durably. True where it was torn.
    ///
    /// # Errors
    /// The file cannot be read, written or synced.
    fn seal(&mut self, lock: &LogLock) -> Result<bool, LogError>;

    /// Writes one line, which ends with its line break, in one call. Where a process has died in the middle of a line
    /// since this one last looked, that line is sealed by the same call.
    ///
    /// # Errors
    /// The file cannot be written.
    fn append(&mut self, lock: &LogLock, line: &[u8]) -> Result<(), LogError>;

    /// Makes what was appended durable.
    ///
    /// # Errors
    /// The disk does not say that it is.
    fn sync(&self) -> Result<(), LogError>;
}

/// An open log.
pub struct LogFile {
    path: PathBuf,
    file: Arc<File>,
    /// False for a device, which cannot be read back.
    regular: bool,
    /// Looked at while the lock is waited for.
    stop: Stop,
    /// Its length after the last write or look of this process; whoever finds it longer has to look at the last line.
    end: Option<u64>,
}

/// The lock on a log; while it is held, nobody else seals, reconciles or appends.
pub struct LogLock(Arc<File>);

impl Drop for LogLock {
    fn drop(&mut self) {
        // It would be freed with the process too; and a lock that cannot be freed shows as one that others wait for.
        let _best_effort = self.0.unlock();
    }
}

impl LogFile {
    /// Opens it, or makes it with its folder. Its name is durable then: whether this process made it or one that died
    /// before it could say so, the folder is synced.
    pub(super) fn open(path: &Path, stop: &Stop) -> Result<Self, LogError> {
        let folder = tools::folder_of(path);
        tools::make_folder(folder)?;
        let failed = LogError::io("open", path);
        // Looked at before it is opened, since to open a device may do something, and after, since it may be another
        // one.
        if let Ok(there) = fs::metadata(path) {
            check_kind(path, there.file_type())?;
        }
        let file = OpenOptions::new().read(true).append(true).create(true).open(path).map_err(&failed)?;
        let kind = file.metadata().map_err(&failed)?.file_type();
        check_kind(path, kind)?;
        let regular = kind.is_file();
        if regular {
            tools::sync_folder_of_others(folder)?;
        }
        Ok(Self { path: path.to_owned(), file: Arc::new(file), regular, stop: stop.clone(), end: None })
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Waits for the lock, for a limited time: a process that was stopped while it held it must not stop all others.
    pub(super) fn lock(&self) -> Result<LogLock, LogError> {
        const PAUSE: Duration = Duration::from_millis(1);
        let start = Instant::now();
        loop {
            match self.file.try_lock() {
                Ok(()) => return Ok(LogLock(Arc::clone(&self.file))),
                Err(TryLockError::WouldBlock) if start.elapsed() < limits::LOG_LOCK_WAIT => {
                    // Not given up: what was committed has its line to come. But it counts against the grace.
                    let _seen = self.stop.asked();
                    std::thread::sleep(PAUSE);
                }
                Err(TryLockError::WouldBlock) => return Err(LogError::Busy { path: self.path.clone() }),
                Err(TryLockError::Error(error)) => return Err(LogError::io("lock", &self.path)(error)),
            }
        }
    }

    /// The content up to its present end, to be read at leisure.
    pub(super) fn content(&self) -> Result<Content, LogError> {
        Ok(Content { file: Arc::clone(&self.file), at: 0, end: self.length()? })
    }

    /// Its length; 0 for what is not a regular file.
    ///
    /// # Errors
    /// The file cannot be looked at.
    pub fn length(&self) -> Result<u64, LogError> {
        if !self.regular {
            return Ok(0);
        }
        Ok(self.file.metadata().map_err(LogError::io("look at", &self.path))?.len())
    }

    fn is_torn(&self, length: u64) -> Result<bool, LogError> {
        let Some(last) = length.checked_sub(1) else { return Ok(false) };
        let mut byte = [0];
        self.file.read_exact_at(&mut byte, last).map_err(LogError::io("read", &self.path))?;
        Ok(byte != *b"\n")
    }

    fn write(&mut self, length: u64, text: &[u8]) -> Result<(), LogError> {
        let failed = LogError::io("write to", &self.path);
        // Whatever fails from here on, the next append looks at the last line.
        self.end = None;
        let written = loop {
            match (&*self.file).write(text) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => break result.map_err(&failed)?,
            }
        };
        if written < text.len() {
            let why = format!("only {written} of {} bytes went in, the disk may be full", text.len());
            return Err(failed(io::Error::other(why)));
        }
        self.end = Some(if self.regular { length + text.len() as u64 } else { 0 });
        Ok(())
    }
}

impl LogSink for LogFile {
    fn file(&self) -> &LogFile {
        self
    }

    fn seal(&mut self, _lock: &LogLock) -> Result<bool, LogError> {
        let length = self.length()?;
        self.end = Some(length);
        if !self.is_torn(length)? {
            return Ok(false);
        }
        self.write(length, b"\n")?;
        self.sync()?;
        Ok(true)
    }

    fn append(&mut self, _lock: &LogLock, line: &[u8]) -> Result<(), LogError> {
        let length = self.length()?;
        if self.end != Some(length) && self.is_torn(length)? {
            let sealed: Vec<u8> = b"\n".iter().chain(line).copied().collect();
            return self.write(length, &sealed);
        }
        self.write(length, line)
    }

    fn sync(&self) -> Result<(), LogError> {
        match self.file.sync_all() {
            // A pipe or terminal keeps nothing.
            Err(error) if !self.regular && error.kind() == io::ErrorKind::InvalidInput => Ok(()),
            result => result.map_err(|source| LogError::Sync { path: self.path.clone(), source }),
        }
    }
}

fn check_kind(path: &Path, kind: FileType) -> Result<(), LogError> {
    tools::check_appendable(kind).map_err(|source| LogError::NotAFile { path: path.to_owned(), source })
}

/// A log, for reading; it does not move the file's own offset.
pub(super) struct Content {
    file: Arc<File>,
    at: u64,
    end: u64,
}

impl io::Read for Content {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.end.saturating_sub(self.at)).unwrap_or(usize::MAX);
        let want = left.min(buffer.len());
        let read = self.file.read_at(&mut buffer[..want], self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn log(text: &[u8]) -> (tempfile::TempDir, LogFile) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sub/log.jsonl");
        fs::create_dir(folder.path().join("sub")).unwrap();
        fs::write(&path, text).unwrap();
        let file = LogFile::open(&path, &Stop::default()).unwrap();
        (folder, file)
    }

    fn content(file: &LogFile) -> Vec<u8> {
        fs::read(file.path()).unwrap()
    }

    #[test]
    fn only_a_torn_line_is_sealed_and_only_once() {
        for (text, torn) in [(&b""[..], false), (b"a\n", false), (b"a", true), (b"\n\xe6\x9d", true)] {
            let (_folder, mut file) = log(text);
            let lock = file.lock().unwrap();
            assert_eq!(file.seal(&lock).unwrap(), torn, "{text:?}");
            assert!(!file.seal(&lock).unwrap());
            let due = if torn { [text, b"\n"].concat() } else { text.to_vec() };
            assert_eq!(content(&file), due);
            assert_eq!(file.end, Some(due.len() as u64));
        }
    }

    #[test]
    fn a_line_never_sticks_to_one_that_another_process_tore_meanwhile() {
        let (_folder, mut file) = log(b"a\n");
        let lock = file.lock().unwrap();
        file.append(&lock, b"b\n").unwrap();
        let mut other = OpenOptions::new().append(true).open(file.path()).unwrap();
        other.write_all(b"tor").unwrap();
        file.append(&lock, b"c\n").unwrap();
        other.write_all(b"whole\n").unwrap();
        file.append(&lock, b"d\n").unwrap();
        assert_eq!(content(&file), b"a\nb\ntor\nc\nwhole\nd\n");
        assert_eq!(file.end, Some(content(&file).len() as u64));
    }

    #[test]
    fn the_lock_keeps_others_out_until_it_is_dropped() {
        let (_folder, file) = log(b"");
        let other = File::open(file.path()).unwrap();
        let lock = file.lock().unwrap();
        assert!(matches!(other.try_lock(), Err(TryLockError::WouldBlock)));
        drop(lock);
        other.try_lock().unwrap();
    }

    #[test]
    fn a_full_disk_is_an_error_and_what_follows_looks_at_the_last_line() {
        let mut file = LogFile::open(Path::new("/dev/full"), &Stop::default()).unwrap();
        let lock = file.lock().unwrap();
        assert!(!file.seal(&lock).unwrap());
        let error = file.append(&lock, b"line\n").unwrap_err().to_string();
        assert!(error.contains("/dev/full") && error.contains("No space left"), "{error}");
        assert_eq!(file.end, None);
    }

    #[test]
    fn what_cannot_be_a_log_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        assert!(LogFile::open(folder.path(), &Stop::default()).is_err());
        fs::write(folder.path().join("file"), "").unwrap();
        assert!(LogFile::open(&folder.path().join("file/log"), &Stop::default()).is_err());
    }
}

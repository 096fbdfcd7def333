//! What a program has said on standard error: kept beside the database, up to a limit, and its end for messages.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use store::limits;

use crate::secrets::Secrets;

/// How much of its end stands in the message of an error.
const END_BYTES: usize = 2 << 10;

/// The standard error of one attempt.
pub(super) struct Kept<'a> {
    path: PathBuf,
    secrets: &'a Secrets,
    /// Made when there is something to keep.
    file: Option<File>,
    written: usize,
    /// Not written yet: a secret that came in two pieces would not be seen in either.
    pending: Vec<u8>,
    end: String,
}

impl<'a> Kept<'a> {
    pub(super) fn new(path: PathBuf, secrets: &'a Secrets) -> Self {
        Self { path, secrets, file: None, written: 0, pending: Vec::new(), end: String::new() }
    }

    /// Takes what was said.
    ///
    /// # Errors
    /// It cannot be written.
    pub(super) fn take(&mut self, said: &[u8]) -> io::Result<()> {
        self.pending.extend_from_slice(said);
        // Whole lines are written, since no secret goes beyond one; a line without an end is not waited for.
        match self.pending.iter().rposition(|byte| *byte == b'\n') {
            Some(at) => self.write(at + 1),
            None if self.pending.len() > limits::STDERR_BYTES.max(2 * self.secrets.longest()) => {
                self.write(self.pending.len() - self.secrets.longest())
            }
            None => Ok(()),
        }
    }

    /// Takes what this program has to say of it.
    ///
    /// # Errors
    /// It cannot be written.
    pub(super) fn remark(&mut self, what: &str) -> io::Result<()> {
        self.write(self.pending.len())?;
        self.take(format!("agent: {what}\n").as_bytes())
    }

    /// Writes what is left, and gives the end of all that was said.
    ///
    /// # Errors
    /// It cannot be written.
    pub(super) fn finish(mut self) -> io::Result<String> {
        self.write(self.pending.len())?;
        Ok(self.end)
    }

    fn write(&mut self, bytes: usize) -> io::Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        let said: Vec<u8> = self.pending.drain(..bytes).collect();
        let shown = self.secrets.hide(&String::from_utf8_lossy(&said));
        self.end.push_str(&shown);
        let cut = self.end.len().saturating_sub(END_BYTES);
        let cut = (cut..=self.end.len()).find(|&at| self.end.is_char_boundary(at)).unwrap_or_default();
        self.end.drain(..cut);
        let room = limits::STDERR_BYTES - self.written;
        if room == 0 {
            return Ok(());
        }
        let file = match &mut self.file {
            Some(file) => file,
            empty => empty.insert(OpenOptions::new().create(true).write(true).truncate(true).open(&self.path)?),
        };
        let kept = &shown.as_bytes()[..shown.len().min(room)];
        file.write_all(kept)?;
        self.written += kept.len();
        if self.written == limits::STDERR_BYTES {
            file.write_all(b"\n(what comes after this was not kept)\n")?;
        }
        Ok(())
    }
}

/// The ending of the files that keep standard error.
const ENDING: &str = "stderr";

/// Where the standard error of an attempt is kept; `part` says which program of the step it is, if not the first.
pub(super) fn stderr_path(folder: &Path, key: &str, attempt: u32, part: &str) -> PathBuf {
    folder.join(format!("{key}.{attempt}{part}.{ENDING}"))
}

/// What is kept of the standard error of the attempts of a step, `key` being the file stem of its key: for each program
/// that has said something the attempt, with what it was started for where that is not the step itself, and the file.
///
/// # Errors
/// The folder cannot be read.
pub fn stderr_files(folder: &Path, key: &str) -> io::Result<Vec<(String, PathBuf)>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut found = Vec::new();
    for entry in entries {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str());
        let middle =
            name.and_then(|name| name.strip_prefix(key)?.strip_prefix('.')?.strip_suffix(ENDING)?.strip_suffix('.'));
        if let Some(middle) = middle {
            let (attempt, part) = middle.split_once('.').unwrap_or((middle, ""));
            if let Ok(attempt) = attempt.parse::<u32>() {
                found.push(((attempt, part.to_owned()), path));
            }
        }
    }
    found.sort();
    let shown = |(attempt, part): (u32, String)| {
        if part.is_empty() { attempt.to_string() } else { format!("{attempt} ({part})") }
    };
    Ok(found.into_iter().map(|(which, path)| (shown(which), path)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_that_comes_in_two_pieces_is_hidden() {
        let folder = tempfile::tempdir().unwrap();
        let secrets = Secrets::new(|_| Some("hunter22".to_owned()));
        secrets.value("TOKEN").unwrap();
        let path = stderr_path(folder.path(), "t-0", 1, "");
        let mut kept = Kept::new(path.clone(), &secrets);
        kept.take(b"it is hun").unwrap();
        kept.take(b"ter22\nlast").unwrap();
        assert_eq!(kept.finish().unwrap(), "it is ***TOKEN***\nlast");
        assert_eq!(fs::read_to_string(&path).unwrap(), "it is ***TOKEN***\nlast");
        assert_eq!(stderr_files(folder.path(), "t-0").unwrap(), [("1".to_owned(), path)]);
        assert!(stderr_files(folder.path(), "t").unwrap().is_empty());
    }

    #[test]
    fn a_flood_is_cut_and_its_end_is_known() {
        let folder = tempfile::tempdir().unwrap();
        let secrets = Secrets::default();
        let path = folder.path().join("flood");
        let mut kept = Kept::new(path.clone(), &secrets);
        for _ in 0..3 {
            kept.take(&[b'x'; limits::STDERR_BYTES]).unwrap();
        }
        kept.take("last line ü".as_bytes()).unwrap();
        assert!(kept.finish().unwrap().ends_with("last line ü"));
        let file = fs::read_to_string(path).unwrap();
        assert!(file.len() < limits::STDERR_BYTES + 100 && file.ends_with("was not kept)\n"));
    }

    #[test]
    fn a_program_that_says_nothing_leaves_no_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("none");
        assert_eq!(Kept::new(path.clone(), &Secrets::default()).finish().unwrap(), "");
        assert!(!path.exists());
    }
}

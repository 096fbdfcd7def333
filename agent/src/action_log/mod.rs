//! The action log: the journal of a task as a JSONL file, for audit and shipping.
//!
//! It is one more reader of the journal and never steers anything. Under the task's lease [`ActionLog`] moves a cursor
//! along the journal and writes a line for every event that the log shows. At its start it first writes what the log
//! lacks of the events before, marked as reconciled where another run caused them. So a line that a crash has lost, or
//! a log that was lost whole, comes back in the journal's order, before anything new; and nothing is written twice,
//! since a line carries the run and the `seq` of its event, which say without doubt which event it stands for.
//!
//! * `line`: which event becomes which line;
//! * `append`: one `write` for each line, under the file's lock, so that several tasks can share a log;
//! * `scan`: what the log has already; it skips whatever is not ours and never fails on it. The whole log is read, at
//!   each start: what somebody wrote down about a file is not the file.

mod append;
mod error;
mod line;
mod scan;

pub use append::{LogFile, LogLock, LogSink};
pub use error::LogError;

use std::path::Path;

use store::model::{JournalEntry, RunId, TaskId};
use store::{Crash, CrashSite, Reader, limits};

use tools::{Registry, Stop};

use line::Names;
use scan::Seen;

/// The log is open, its name is durable; it is not read yet.
const OPENED: CrashSite = CrashSite("log.opened");
/// A torn last line has got its line break.
const SEALED: CrashSite = CrashSite("log.sealed");
/// What the log lacks is known, and not written.
const SCANNED: CrashSite = CrashSite("log.scanned");
/// The log has every event that the journal has.
const RECONCILED: CrashSite = CrashSite("log.reconciled");
/// An event is committed, its line is not written. The step is the event's.
const BEFORE_APPEND: CrashSite = CrashSite("log.before_append");
/// The line is written and synced.
const APPENDED: CrashSite = CrashSite("log.appended");

/// Crash points within steps, passed where there is a log.
pub(crate) const STEP_SITES: &[CrashSite] = &[BEFORE_APPEND, APPENDED];
/// Crash points outside steps, passed where there is a log.
pub(crate) const RUN_SITES: &[CrashSite] = &[OPENED, SEALED, SCANNED, RECONCILED, BEFORE_APPEND, APPENDED];

/// The log of one task, as one run writes it.
pub(crate) struct ActionLog {
    sink: Box<dyn LogSink>,
    task: TaskId,
    run: RunId,
    crash: Crash,
    names: Names,
    /// The log has every event up to this `seq`.
    cursor: i64,
}

impl ActionLog {
    /// Opens the log for a run of a task, and makes it where there is none. Nothing is written yet.
    pub(crate) fn open(
        path: &Path,
        task: &TaskId,
        run: &RunId,
        crash: &Crash,
        stop: &Stop,
        tools: &Registry,
        sink: impl FnOnce(LogFile) -> Box<dyn LogSink>,
    ) -> Result<Self, LogError> {
        let sink = sink(LogFile::open(path, stop)?);
        crash.scope(None).point(OPENED);
        let names = Names::new(task.clone(), tools.clone());
        Ok(Self { sink, task: task.clone(), run: run.clone(), crash: crash.clone(), names, cursor: 0 })
    }

    /// Seals the log and reconciles it with the journal. To be called under the task's lease, before the run begins.
    pub(crate) fn start(&mut self, reader: &mut dyn Reader) -> Result<(), LogError> {
        // One lock for all of it: what other tasks write comes before or after, never between the lines.
        let lock = self.sink.file().lock()?;
        if self.sink.seal(&lock)? {
            self.crash.scope(None).point(SEALED);
        }
        if let Some(first) = reader.journal(Some(&self.task), self.cursor, 1)?.pop() {
            // Of what this very run has journaled so far, which is that it made the task, the log has nothing.
            let is_new = first.run == self.run;
            let mut seen = if is_new { Seen::default() } else { scan::scan(self.sink.file(), &self.task)? };
            self.crash.scope(None).point(SCANNED);
            self.reconcile(reader, &lock, &mut seen)?;
        }
        drop(lock);
        self.crash.scope(None).point(RECONCILED);
        Ok(())
    }

    /// Writes the events that the log lacks. They are synced a page at a time, since a lost log may lack very many; a
    /// kill before that costs nothing, what the file then lacks is found again.
    fn reconcile(&mut self, reader: &mut dyn Reader, lock: &LogLock, seen: &mut Seen) -> Result<(), LogError> {
        loop {
            let page = reader.journal(Some(&self.task), self.cursor, limits::JOURNAL_PAGE)?;
            let Some(last) = page.last() else { return Ok(()) };
            let mut written = false;
            for entry in &page {
                let Some(event) = line::event(entry, reader)? else { continue };
                if seen.take(entry, event) {
                    continue;
                }
                let Some(line) = self.line(reader, entry, event)? else { continue };
                self.crash.scope(entry.step).point(BEFORE_APPEND);
                self.sink.append(lock, &line)?;
                written = true;
            }
            if written {
                self.sink.sync()?;
            }
            self.cursor = last.seq;
        }
    }

    /// Writes what was journaled since the last call. After an error the next call begins with the same event.
    pub(crate) fn catch_up(&mut self, reader: &mut dyn Reader) -> Result<(), LogError> {
        loop {
            let page = reader.journal(Some(&self.task), self.cursor, limits::JOURNAL_PAGE)?;
            for entry in &page {
                if let Some(event) = line::event(entry, reader)?
                    && let Some(line) = self.line(reader, entry, event)?
                {
                    self.append(entry.step, &line)?;
                }
                self.cursor = entry.seq;
            }
            if page.len() < limits::JOURNAL_PAGE as usize {
                return Ok(());
            }
        }
    }

    /// Writes that the task was done before. The journal has no such event: nothing has happened.
    pub(crate) fn already_done(&mut self, at: f64) -> Result<(), LogError> {
        let line = line::already_done(&self.task, &self.run, at);
        self.append(None, &line)
    }

    fn append(&mut self, step: Option<u32>, line: &[u8]) -> Result<(), LogError> {
        self.crash.scope(step).point(BEFORE_APPEND);
        let lock = self.sink.file().lock()?;
        self.sink.append(&lock, line)?;
        // Not under the lock: then the syncs of several tasks are one for the disk.
        drop(lock);
        self.sink.sync()?;
        self.crash.scope(step).point(APPENDED);
        Ok(())
    }

    fn line(
        &mut self,
        reader: &mut dyn Reader,
        entry: &JournalEntry,
        event: &str,
    ) -> Result<Option<Vec<u8>>, LogError> {
        let name = match entry.step {
            Some(step) => Some(self.names.of(step, reader)?),
            None => None,
        };
        Ok(line::line(entry, event, name, entry.run != self.run))
    }
}

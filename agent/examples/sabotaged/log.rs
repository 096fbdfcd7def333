//! The action log's file with wrong ways of writing to it.

use std::fs::OpenOptions;
use std::io::{self, Write as _};

use agent::{LogError, LogFile, LogLock, LogSink};
use serde_json::{Value, json};
use store::Reader;
use store::model::Event;

use crate::known::Known;
use crate::plant::Log;
use crate::unit::Unit;

const STEP_DONE: &str = "step_done";

/// The file in the place of the real one.
pub(crate) struct PlantedLog {
    inner: LogFile,
    way: Log,
    /// Whether there was nothing in it when the run began.
    new: bool,
}

impl PlantedLog {
    pub(crate) fn new(inner: LogFile, way: Log, known: &Known) -> Self {
        known.log_is_at(inner.path().to_owned());
        // Where its length cannot be had, the log's own next look says so.
        let new = inner.length().is_ok_and(|length| length == 0);
        Self { inner, way, new }
    }

    /// How often a line is written.
    fn times(&self, event: &str, reconciled: bool) -> usize {
        match self.way {
            Log::Early if event == STEP_DONE && !reconciled => 0,
            Log::NotRebuilt if self.new && reconciled => 0,
            Log::Lines { which, times } if which(event, reconciled) => times,
            _ => 1,
        }
    }

    /// Writes without a look at what stands there.
    fn write(&self, text: &[u8]) -> Result<(), LogError> {
        let path = self.inner.path();
        let written = OpenOptions::new().append(true).open(path).and_then(|mut file| file.write_all(text));
        written.map_err(|source| LogError::Io { op: "write to", path: path.to_owned(), source })
    }

    /// Writes once more whatever stands there.
    fn repeat(&self) -> Result<(), LogError> {
        let path = self.inner.path();
        let text = std::fs::read_to_string(path);
        let text = text.map_err(|source| LogError::Io { op: "read", path: path.to_owned(), source })?;
        let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        lines.filter(Value::is_object).try_for_each(|mut line| {
            line["reconciled"] = true.into();
            self.write(format!("{line}\n").as_bytes())
        })
    }
}

impl LogSink for PlantedLog {
    fn file(&self) -> &LogFile {
        &self.inner
    }

    fn seal(&mut self, lock: &LogLock) -> Result<bool, LogError> {
        if matches!(self.way, Log::Unsealed) {
            return Ok(false);
        }
        let torn = self.inner.seal(lock)?;
        if matches!(self.way, Log::Repeated) {
            self.repeat()?;
        }
        Ok(torn)
    }

    fn append(&mut self, lock: &LogLock, line: &[u8]) -> Result<(), LogError> {
        let mut said: Value = serde_json::from_slice(line).unwrap_or_default();
        let reconciled = said["reconciled"] == true;
        match self.way {
            Log::Unsealed => self.write(line),
            Log::Unmarked if reconciled => {
                said["reconciled"] = false.into();
                self.inner.append(lock, format!("{said}\n").as_bytes())
            }
            _ => {
                let times = self.times(said["event"].as_str().unwrap_or_default(), reconciled);
                (0..times).try_for_each(|_| self.inner.append(lock, line))
            }
        }
    }

    fn sync(&self) -> Result<(), LogError> {
        match self.way {
            Log::Unsynced => Ok(()),
            Log::SyncIgnored => {
                drop(self.inner.sync());
                Ok(())
            }
            _ => self.inner.sync(),
        }
    }
}

/// Tells the log of a step that `unit` will finish, once it is committed.
pub(crate) fn announce(known: &Known, unit: &Unit, reader: &mut dyn Reader) -> io::Result<()> {
    let (Some(path), Some((step, _))) = (known.log(), &unit.output) else { return Ok(()) };
    let task = store::model::TaskId::new(&unit.task).map_err(io::Error::other)?;
    let row = reader.steps(&task, *step, 1).map_err(io::Error::other)?.pop();
    let input = row.and_then(|row| row.input.get("path").and_then(Value::as_str).map(str::to_owned));
    let input = input.unwrap_or_default();
    let name = input.rsplit('/').next().unwrap_or_default();
    let line = json!({
        "event": STEP_DONE, "task": unit.task, "idx": step, "name": name, "ts": unit.at, "run": unit.run,
    });
    let mut file = OpenOptions::new().append(true).open(path)?;
    file.write_all(format!("{line}\n").as_bytes())?;
    file.sync_all()
}

/// Whether `unit` finishes a step.
pub(crate) fn finishes_a_step(unit: &Unit) -> bool {
    unit.has(|event| matches!(event, Event::StepFinished { .. }))
}

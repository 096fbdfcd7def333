//! What the journal knows of the attempts at what stands at the cursor.

use store::model::{Event, FailReason, Failure, JournalEntry, TaskId, Word, codec};
use store::{Reader, StoreError, limits};

use crate::narrate::utc;

/// How far back the first look goes, in rows of the whole journal.
const WINDOW: i64 = 4096;

/// The attempts of one step, or of the completion.
pub(super) struct History {
    /// The events about it, oldest first, from its first attempt on.
    entries: Vec<(JournalEntry, Event)>,
}

impl History {
    /// Reads the journal backwards, as far as the first attempt: what came before costs nothing.
    ///
    /// # Errors
    /// The journal cannot be read.
    pub(super) fn of(reader: &mut dyn Reader, task: &TaskId, step: Option<u32>) -> Result<Self, StoreError> {
        let end = end(reader, task)?;
        let mut window = WINDOW;
        loop {
            let from = end.saturating_sub(window).max(0);
            let history = Self::since(reader, task, step, from)?;
            let whole = history.entries.first().is_some_and(|(_, event)| is_first_attempt(event));
            if whole || from == 0 {
                return Ok(history);
            }
            window = window.saturating_mul(8);
        }
    }

    fn since(reader: &mut dyn Reader, task: &TaskId, step: Option<u32>, mut after: i64) -> Result<Self, StoreError> {
        let mut entries = Vec::new();
        loop {
            let page = reader.journal(Some(task), after, limits::JOURNAL_PAGE)?;
            let Some(last) = page.last() else { return Ok(Self { entries }) };
            after = last.seq;
            for entry in page {
                // What does not decode is for `verify` to find.
                if let Ok(Some(event)) = codec::event_from_entry(&entry)
                    && is_about(&event, step)
                {
                    entries.push((entry, event));
                }
            }
        }
    }

    /// Whether a process ended in an attempt at it.
    pub(super) fn was_interrupted(&self) -> bool {
        self.entries.iter().any(|(_, event)| matches!(event, Event::StepRecovered { .. } | Event::CompletionRecovered))
    }

    /// What is known of the attempts that count since the last fresh budget, a sentence each.
    pub(super) fn known(&self) -> Vec<String> {
        let mut known = Vec::new();
        let mut began: Option<(u32, &JournalEntry)> = None;
        for (entry, event) in &self.entries {
            match event {
                Event::StepStarted { attempt, .. } | Event::CompletionStarted { attempt } => {
                    began = Some((*attempt, entry));
                }
                Event::StepError { failure: Failure { error, .. }, .. } | Event::CompletionError { error } => {
                    known.extend(began.take().map(|(attempt, _)| format!("attempt {attempt} failed: {error}")));
                }
                Event::StepRecovered { .. } | Event::CompletionRecovered => {
                    known.extend(began.take().map(|(attempt, start)| {
                        let (run, at) = (&start.run, utc(start.ts));
                        format!("attempt {attempt} (run {run}) began at {at} and ended with its process")
                    }));
                }
                Event::StepInDoubt { known: seen, .. } => {
                    let attempt = began.take().map_or(String::new(), |(attempt, _)| format!("attempt {attempt} "));
                    known.push(format!("{attempt}may or may not have had its effect: {seen}"));
                }
                Event::AnswerGiven { rejected: true, by, why, .. } => {
                    let why = why.as_ref().map_or(String::new(), |why| format!(": {why}"));
                    known.push(format!("{by} refused{why}"));
                }
                Event::DoubtResolved { word: Word::Abandon, by, why, .. } => {
                    let why = why.as_ref().map_or(String::new(), |why| format!(": {why}"));
                    known.push(format!("{by} gave it up{why}"));
                }
                Event::StepReleased { .. } => began = None,
                Event::TaskRetried { .. } => known.clear(),
                _ => {}
            }
        }
        known
    }

    /// What is known of the last attempt.
    pub(super) fn cause(&self) -> Option<String> {
        self.known().pop()
    }

    /// Why the task failed.
    pub(super) fn reason(&self) -> Option<FailReason> {
        self.entries.iter().rev().find_map(|(_, event)| match event {
            Event::TaskFailed { reason, .. } => Some(reason.clone()),
            _ => None,
        })
    }
}

/// What was said last of a step.
pub(crate) struct Said {
    /// What is in doubt, as far as it is known.
    pub(crate) doubt: Option<String>,
    /// The last word of a person.
    pub(crate) word: Option<JournalEntry>,
}

/// What the journal has of questions, answers and doubts of a step.
///
/// # Errors
/// The journal cannot be read.
pub(crate) fn said(reader: &mut dyn Reader, task: &TaskId, step: u32) -> Result<Said, StoreError> {
    let mut said = Said { doubt: None, word: None };
    for (entry, event) in History::of(reader, task, Some(step))?.entries {
        match event {
            Event::StepInDoubt { known, .. } => said.doubt = Some(known),
            Event::AnswerGiven { .. } | Event::DoubtResolved { .. } => said.word = Some(entry),
            _ => {}
        }
    }
    Ok(said)
}

/// A bound for the `seq` of the last event of a task, found by bisection: a journal has no other way to its end.
fn end(reader: &mut dyn Reader, task: &TaskId) -> Result<i64, StoreError> {
    let (mut there, mut beyond) = (0, 1 << 52);
    while there < beyond {
        let middle = there + (beyond - there) / 2;
        match reader.journal(Some(task), middle, 1)?.pop() {
            Some(entry) => there = entry.seq,
            None => beyond = middle,
        }
    }
    Ok(beyond)
}

fn is_about(event: &Event, step: Option<u32>) -> bool {
    match event {
        Event::CompletionStarted { .. } | Event::CompletionError { .. } | Event::CompletionRecovered => step.is_none(),
        Event::TaskFailed { step: of, .. } | Event::TaskRetried { step: of, .. } => *of == step,
        event => step.is_some() && event.step() == step,
    }
}

fn is_first_attempt(event: &Event) -> bool {
    matches!(event, Event::StepStarted { attempt: 1, .. } | Event::CompletionStarted { attempt: 1 })
}

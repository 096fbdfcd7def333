//! The journal in words.

use store::model::{Event, JournalEntry, Timestamp, codec};

/// What happened, as a sentence for people.
pub(crate) fn sentence(entry: &JournalEntry) -> String {
    match codec::event_from_entry(entry) {
        Ok(Some(event)) => words(&event),
        Ok(None) => format!("{} (a kind of event that this version does not know)", entry.kind),
        Err(bad) => bad.to_string(),
    }
}

fn words(event: &Event) -> String {
    match event {
        Event::TaskCreated { steps, .. } => {
            format!("the task is stored with its plan of {steps} step{}", if *steps == 1 { "" } else { "s" })
        }
        Event::RunStarted { recovered, .. } if recovered.is_empty() => "a run begins".to_owned(),
        Event::RunStarted { recovered, .. } => format!("a new run begins, after recovering {}", steps(recovered)),
        Event::StepRecovered { step } => {
            format!("step {step} was found running though its process is dead, and is set back")
        }
        Event::StepStarted { step, tool, attempt: 1 } => format!("step {step} starts: {tool}"),
        Event::StepStarted { step, tool, attempt } => format!("step {step} starts again, attempt {attempt}: {tool}"),
        Event::StepFinished { step, .. } => format!("step {step} is done, its output is stored"),
        Event::StepError { step, error } => format!("step {step} failed: {error}"),
        Event::StepReleased { step, reason } => format!("step {step} was given up before its effect: {reason}"),
        Event::CompletionStarted { attempt: 1 } => "the completion starts".to_owned(),
        Event::CompletionStarted { attempt } => format!("the completion starts again, attempt {attempt}"),
        Event::CompletionRecovered => {
            "the completion was found running though its process is dead, and is set back".to_owned()
        }
        Event::CompletionError { error } => format!("the completion failed: {error}"),
        Event::TaskFailed { step, reason, .. } => format!("the task fails at {}: {reason}", place(*step)),
        Event::TaskDone => "no step is left, the task is done".to_owned(),
        Event::TaskRetried { step, forgiven } => {
            format!("the task gets a fresh budget: {forgiven} attempts of {} are forgiven", place(*step))
        }
        Event::TaskRebound { .. } => "the task was told where its files are now".to_owned(),
    }
}

fn place(step: Option<u32>) -> String {
    step.map_or_else(|| "its completion".to_owned(), |step| format!("step {step}"))
}

fn steps(list: &[u32]) -> String {
    let numbers: Vec<String> = list.iter().map(u32::to_string).collect();
    format!("step {}", numbers.join(", "))
}

/// A time for people: UTC to the second; the bare number of seconds where it is not a time.
pub(crate) fn utc(at: Timestamp) -> String {
    match jiff::Timestamp::from_microsecond(at.as_micros()) {
        Ok(time) => time.strftime("%F %TZ").to_string(),
        Err(_) => at.as_seconds().to_string(),
    }
}

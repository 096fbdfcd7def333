//! The journal in words.

use store::model::{Event, Failure, JournalEntry, Timestamp, Wait, Word, codec};

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
        Event::StepStarted { step, tool, attempt: 1, .. } => format!("step {step} starts: {tool}"),
        Event::StepStarted { step, tool, attempt, .. } => {
            format!("step {step} starts again, attempt {attempt}: {tool}")
        }
        Event::StepFinished { step, adopted: true, .. } => {
            format!("step {step} is done: its effect was there already, and its output is stored")
        }
        Event::StepFinished { step, .. } => format!("step {step} is done, its output is stored"),
        Event::StepError { step, failure } => failed(*step, failure),
        Event::StepFailed { step, reason, unknown } => {
            format!("step {step} has failed ({reason}{}), and the task goes on without it", perhaps(*unknown))
        }
        Event::StepSkipped { step } => format!("step {step} is left out"),
        Event::StepWaiting { step, wait, .. } => match wait {
            Wait::Until(due) => format!("step {step} waits until {}", utc(*due)),
            Wait::Approval { expires: Some(end) } => {
                format!("step {step} asks, and waits for an answer until {}", utc(*end))
            }
            Wait::Approval { .. } => format!("step {step} asks, and waits for an answer"),
        },
        Event::AnswerGiven { step, answer, rejected, by, why, .. } => {
            let answer = if *rejected { "refuses".to_owned() } else { format!("answers {answer}") };
            format!("{by} {answer} to step {step}{}", because(why.as_deref()))
        }
        Event::StepInDoubt { step, known } => format!("step {step} may or may not have had its effect: {known}"),
        Event::DoubtResolved { step, word, by, why } => {
            let says = match word {
                Word::Happened => "has had its effect",
                Word::Absent => "has not had its effect and will not",
                Word::Abandon => "is to be given up",
            };
            format!("{by} says that step {step} {says}{}", because(why.as_deref()))
        }
        Event::StepCheckpoint { step, checkpoint } => format!("step {step} says how far it is: {checkpoint}"),
        Event::TaskCancelled { by, why } => format!("{by} cancels the task{}", because(why.as_deref())),
        Event::StepReleased { step, reason } => format!("step {step} was given up before its effect: {reason}"),
        Event::CompletionStarted { attempt: 1 } => "the completion starts".to_owned(),
        Event::CompletionStarted { attempt } => format!("the completion starts again, attempt {attempt}"),
        Event::CompletionRecovered => {
            "the completion was found running though its process is dead, and is set back".to_owned()
        }
        Event::CompletionError { error } => format!("the completion failed: {error}"),
        Event::TaskFailed { step, reason, unknown, .. } => {
            format!("the task fails at {}: {reason}{}", place(*step), perhaps(*unknown))
        }
        Event::TaskDone => "no step is left, the task is done".to_owned(),
        Event::TaskRetried { step, forgiven } => {
            format!("the task gets a fresh budget: {forgiven} attempts of {} are forgiven", place(*step))
        }
        Event::TaskRebound { .. } => "the task was told where its files are now".to_owned(),
    }
}

fn failed(step: u32, failure: &Failure) -> String {
    let Failure { error, permanent, unknown, retry_at, .. } = failure;
    let again = retry_at.map_or(String::new(), |at| format!(", and is tried again at {}", utc(at)));
    let how = if *permanent { " for good" } else { "" };
    format!("step {step} failed{how}{}{again}: {error}", perhaps(*unknown))
}

fn perhaps(unknown: bool) -> &'static str {
    if unknown { ", and may have had its effect all the same" } else { "" }
}

fn because(why: Option<&str>) -> String {
    why.map_or(String::new(), |why| format!(": {why}"))
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

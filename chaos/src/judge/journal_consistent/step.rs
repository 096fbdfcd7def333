//! What one step waits for, what is known of its earlier attempts, and what has to come of a word that was said about
//! it. Whose turn it is, and what is open, its parent knows.

use serde_json::Value;

use crate::look::tables::EventRow;

/// What a step may store for its next attempt, in bytes.
const MAX_CHECKPOINT: usize = 64 << 10;

/// Times are written with microseconds at the most.
const ROUNDING: f64 = 0.001;

/// The reasons that only a person's word gives.
const SAID: [&str; 2] = ["abandoned", "rejected"];

/// How a step stands by its events so far.
#[derive(Default)]
pub(super) struct Step {
    /// Whether a person was asked and has not answered.
    asked: bool,
    /// When it may begin at the earliest.
    due: Option<f64>,
    /// Whether it has failed for good and only has to say so.
    must_fail: bool,
    /// The reason that a person's word gives.
    said: Option<&'static str>,
    /// The class of its first attempt, where that was told.
    class: Option<String>,
    /// The digest of the last input that was sent.
    digest: Value,
    /// Whether an earlier attempt may have had its effect.
    unknown: bool,
}

impl Step {
    /// Whether there can be a doubt although nothing is under way.
    pub(super) fn may_have_happened(&self) -> bool {
        self.unknown
    }

    /// Takes an event of this step and says what is wrong with it.
    pub(super) fn read(&mut self, event: &EventRow, wrong: &mut Vec<String>) {
        match event.kind.as_str() {
            "step_started" => self.starts(event, wrong),
            "step_recovered" => self.outcome_unknown("recovers", wrong),
            "step_error" => self.errs(event, wrong),
            "step_in_doubt" => {
                gives(event, "known", wrong);
                if self.class.as_deref() == Some("pure") {
                    wrong.push("doubts a step without any effect".to_owned());
                }
            }
            "doubt_resolved" => self.is_resolved(event, wrong),
            "step_waiting" => self.waits(event, wrong),
            "answer_given" => self.is_answered(event, wrong),
            "step_failed" | "task_failed" => self.fails(event, wrong),
            "step_released" => gives(event, "reason", wrong),
            "step_checkpoint" => match event.field("checkpoint") {
                Value::Null => wrong.push("gives no checkpoint".to_owned()),
                it if it.to_string().len() > MAX_CHECKPOINT => wrong.push("is larger than 64 KiB".to_owned()),
                _ => {}
            },
            "task_retried" => *self = Self { class: self.class.take(), digest: self.digest.take(), ..Self::default() },
            _ => {}
        }
    }

    fn starts(&mut self, event: &EventRow, wrong: &mut Vec<String>) {
        if self.asked {
            wrong.push("begins before its question is answered".to_owned());
        }
        if self.must_fail {
            wrong.push("begins although it has failed for good".to_owned());
        }
        if let Some(due) = self.due.take().filter(|due| event.ts + ROUNDING < *due) {
            wrong.push(format!("begins at {}, and was to wait until {due}", event.ts));
        }
        let (class, digest) = (event.field("effect"), event.field("input_sha256"));
        if let Some(first) = self.class.as_deref().filter(|first| class != *first) {
            wrong.push(format!("is of the class {class}, its first attempt was {first}"));
        }
        if self.class.is_none() {
            self.class = class.as_str().map(str::to_owned);
        }
        // One that can be asked may have been told that nothing has happened.
        if self.unknown && self.class.as_deref() == Some("keyed") && digest != self.digest {
            wrong.push("sends another input than the attempt of which nobody knows the outcome".to_owned());
        }
        self.digest = digest;
    }

    /// An attempt of which nobody knows what became of it ends without a doubt.
    fn outcome_unknown(&mut self, what: &str, wrong: &mut Vec<String>) {
        match self.class.as_deref() {
            Some("once") => wrong.push(format!("{what} an effect that is never repeated, it is in doubt")),
            Some("keyed" | "verifiable") => self.unknown = true,
            _ => {}
        }
    }

    fn errs(&mut self, event: &EventRow, wrong: &mut Vec<String>) {
        gives(event, "error", wrong);
        if event.field("unknown") == true {
            self.outcome_unknown("gives up", wrong);
        }
        self.must_fail = event.field("permanent") == true;
        self.due = event.field("retry_at").as_f64();
        if self.must_fail && self.due.is_some() {
            wrong.push("is permanent and to be tried again".to_owned());
        }
    }

    fn is_resolved(&mut self, event: &EventRow, wrong: &mut Vec<String>) {
        gives(event, "by", wrong);
        let word = event.field("word");
        match word.as_str() {
            Some("happened") => {}
            Some("absent") => self.unknown = false,
            Some("abandon") => (self.must_fail, self.said) = (true, Some("abandoned")),
            _ => wrong.push(format!("says {word}, which is not a word for it")),
        }
    }

    fn waits(&mut self, event: &EventRow, wrong: &mut Vec<String>) {
        if self.asked {
            wrong.push("waits while its question is not answered".to_owned());
        }
        let what = event.field("for");
        self.due = event.field("until").as_f64();
        match what.as_str() {
            Some("time") if self.due.is_none() => wrong.push("waits for a time and does not say until when".to_owned()),
            Some("time" | "children") => {}
            Some("approval") => self.asked = true,
            _ => wrong.push(format!("waits for {what}, which is nothing to wait for")),
        }
    }

    fn is_answered(&mut self, event: &EventRow, wrong: &mut Vec<String>) {
        gives(event, "by", wrong);
        if event.field("answer").is_null() && !event.data.contains("\"answer\"") {
            wrong.push("gives no answer".to_owned());
        }
        if !std::mem::take(&mut self.asked) {
            wrong.push("answers what is not asked".to_owned());
        }
        if event.field("rejected") == true {
            (self.must_fail, self.said) = (true, Some("rejected"));
        }
    }

    fn fails(&mut self, event: &EventRow, wrong: &mut Vec<String>) {
        let reason = event.field("reason");
        let said = self.said.take();
        if said != SAID.into_iter().find(|said| reason == *said) {
            wrong.push(format!("gives the reason {reason}, a person said {}", said.unwrap_or("nothing")));
        }
        if !std::mem::take(&mut self.asked) && reason == "expired" {
            wrong.push("expires without a question".to_owned());
        }
        self.must_fail = false;
    }
}

/// Complains where a field has no text.
pub(super) fn gives(event: &EventRow, field: &str, wrong: &mut Vec<String>) {
    if event.field(field).as_str().is_none_or(str::is_empty) {
        wrong.push(format!("gives no {field}"));
    }
}

#[cfg(test)]
mod tests;

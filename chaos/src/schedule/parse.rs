//! Text to schedule, with errors that point at the place.

use std::fmt;

use super::call::CallPoint;
use super::kill::{GROUP, Kill, NONE, Sign};
use super::point::CrashPoint;

/// Why a text is not a schedule, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct ParseError {
    /// The whole text.
    pub text: String,
    /// Byte offset of the place in `text`.
    pub at: usize,
    /// What is wrong there.
    pub what: &'static str,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let column = self.text[..self.at].chars().count();
        write!(f, "cannot read the kill schedule: {}\n  {}\n  {:column$}^", self.what, self.text, "")
    }
}

/// A part of the text that remembers where it stands in the whole.
#[derive(Clone, Copy)]
struct Part<'a> {
    whole: &'a str,
    start: usize,
    text: &'a str,
}

impl<'a> Part<'a> {
    fn trimmed(self) -> Self {
        let text = self.text.trim_start();
        let start = self.start + self.text.len() - text.len();
        Self { start, text: text.trim_end(), ..self }
    }

    fn split(self, at: char) -> Option<(Self, Self)> {
        let (left, right) = self.text.split_once(at)?;
        let rest = Self { start: self.start + left.len() + at.len_utf8(), text: right, ..self };
        Some((Self { text: left, ..self }, rest))
    }

    fn error(self, what: &'static str) -> ParseError {
        ParseError { text: self.whole.to_owned(), at: self.start, what }
    }

    fn number<T: std::str::FromStr>(self, what: &'static str) -> Result<T, ParseError> {
        // `parse` takes a leading `+`, which would not round-trip.
        if self.text.is_empty() || !self.text.bytes().all(|b| b.is_ascii_digit()) {
            return Err(self.error(what));
        }
        self.text.parse().map_err(|_| self.error(what))
    }
}

pub(super) fn schedule(text: &str) -> Result<Vec<Kill>, ParseError> {
    if text.trim() == NONE {
        return Ok(Vec::new());
    }
    let mut kills = Vec::new();
    let mut start = 0;
    for piece in text.split(',') {
        let part = Part { whole: text, start, text: piece };
        kills.push(kill(part.trimmed())?);
        start += piece.len() + 1;
    }
    Ok(kills)
}

fn kill(part: Part<'_>) -> Result<Kill, ParseError> {
    if part.text.is_empty() {
        return Err(part.error("a kill is empty; write a point, `+37ms`, `term@1` or `none`"));
    }
    if part.text == NONE {
        return Err(part.error("`none` stands alone"));
    }
    if part.text.starts_with('+') {
        return delay(part);
    }
    if let Some((phase, rest)) = part.split('/') {
        return call(phase, rest).map(Kill::Call);
    }
    match part.split('@') {
        Some((word, step)) => signal(word, step),
        None => point(part).map(Kill::Point),
    }
}

fn delay(part: Part<'_>) -> Result<Kill, ParseError> {
    let body = Part { start: part.start + 1, text: &part.text[1..], ..part };
    let digits = body.text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = body.text.split_at(digits);
    let amount: u64 = Part { text: number, ..body }.number("a number is missing after `+`")?;
    let unit = Part { start: body.start + digits, text: unit, ..body };
    let factor = match unit.text {
        "ms" => 1000,
        "us" => 1,
        _ => return Err(unit.error("the unit must be `ms` or `us`")),
    };
    let us = amount.checked_mul(factor);
    us.map(Kill::Delay).ok_or_else(|| body.error("the number is too large"))
}

fn signal(word: Part<'_>, step: Part<'_>) -> Result<Kill, ParseError> {
    let (name, group) = word.text.strip_suffix(GROUP).map_or((word.text, false), |name| (name, true));
    let unknown = "no such signal; there are `kill@`, `term@`, `int@` and `stop@`, and `term-group@` and so on";
    let sign = Sign::ALL.into_iter().find(|sign| sign.word() == name).ok_or_else(|| word.error(unknown))?;
    let step = step.number("a step number is missing after `@`")?;
    Ok(Kill::Signal { sign, group, step })
}

fn call(phase: Part<'_>, rest: Part<'_>) -> Result<CallPoint, ParseError> {
    let end = Part { start: rest.start + rest.text.len(), text: "", ..rest };
    let numbered = "a call is numbered, such as `linkat#1`";
    let (name, nth) = rest.split('#').ok_or_else(|| end.error(numbered))?;
    let nth = nth.number(numbered).and_then(|n| if n == 0 { Err(nth.error(numbered)) } else { Ok(n) })?;
    let known = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_';
    if name.text.is_empty() || !name.text.bytes().all(known) {
        return Err(name.error("a call has small letters, digits and `_` only"));
    }
    // A phase is written like a point: `tool:2` or a word alone.
    let phase = point(phase)?;
    Ok(CallPoint { phase: phase.to_string(), call: name.text.to_owned(), nth })
}

fn point(part: Part<'_>) -> Result<CrashPoint, ParseError> {
    let (part, hit) = match part.split('#') {
        None => (part, 1),
        Some((left, right)) => (left, right.number("the hit must be a number from 1")?),
    };
    if hit == 0 {
        let place = part.start + part.text.len() + 1;
        return Err(Part { start: place, ..part }.error("the hit must be a number from 1"));
    }
    let (site, step) = match part.split(':') {
        None => (part, None),
        Some((left, right)) => (left, Some(right.number("the step must be a number from 0")?)),
    };
    let known = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_' || b == b'.';
    if site.text.is_empty() || !site.text.bytes().all(known) {
        return Err(site.error("a site has small letters, digits, `_` and `.` only"));
    }
    Ok(CrashPoint { site: site.text.to_owned(), step, hit })
}

impl std::str::FromStr for CrashPoint {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        point(Part { whole: text, start: 0, text }.trimmed())
    }
}

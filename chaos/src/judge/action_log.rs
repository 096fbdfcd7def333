//! The action log agrees with the journal, event for event. It is read as a reader of the contract reads it, who skips
//! whatever is not a JSON object about the task, and compared with what the journal has for it:
//!
//! * its lines are those of the journal's events, in order, each once; only of the last commit they may be missing, and
//!   only where the process was killed or stopped by an error;
//! * a line is marked `reconciled` exactly where it stands for an event that was journaled before its run and had none;
//! * a run on a finished task appends `already_done` and nothing else;
//! * what stands in the file stays there, a torn line is ended and not continued, and lines of several tasks never mix.
//!
//! A case without a log holds trivially.

use serde_json::Value;

use crate::agent::process::Ended;
use crate::case::inbox::note_of;
use crate::case::plan::PlanCase;
use crate::judge::verdict::Verdict;
use crate::look::evidence::{Baseline, Evidence};
use crate::look::snapshot::Snapshot;
use crate::look::tables::{EventRow, Tables};

/// Exit codes of a run that a signal has stopped in good order.
const INTERRUPTED: i32 = 130;
const TERMINATED: i32 = 143;

/// Of a run on a finished task; no event of the journal.
const ALREADY: &str = "already_done";

/// Events of the log that the journal calls the same.
const SAME: [&str; 6] = ["task_created", "step_started", "step_error", "task_failed", "task_retried", "task_done"];

pub(super) fn check(evidence: &Evidence, _: &Baseline) -> Verdict {
    if evidence.case.kind.log().is_none() {
        return Verdict::Holds;
    }
    let mut complaints = Vec::new();
    let mut first = 0;
    for (i, run) in evidence.runs.iter().enumerate() {
        let Some(after) = &run.after else { continue };
        let work = Work { evidence, runs: first..i + 1, before: evidence.before(first), after };
        for why in work.judge() {
            complaints.push(format!("after {}: {why}", evidence.label(i)));
        }
        first = i + 1;
    }
    Verdict::of(&complaints)
}

/// An event of the journal in the words of the log.
#[derive(Debug)]
struct Due<'a> {
    event: &'static str,
    step: Option<usize>,
    row: &'a EventRow,
}

impl std::fmt::Display for Due<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.event)?;
        self.step.map_or(Ok(()), |step| write!(f, ":{step}"))
    }
}

/// What the journal has for the log. The first run of a task does not resume it where it has created the task itself.
fn due<'a>(tables: &'a Tables, task: &'a str) -> Vec<Due<'a>> {
    let creator = tables.events_of(task).find(|row| row.kind == "task_created").map(|row| row.run.as_str());
    let mut all = Vec::new();
    for row in tables.events_of(task) {
        let event = match row.kind.as_str() {
            "run_started" if Some(row.run.as_str()) == creator => continue,
            "run_started" => "task_resumed",
            "step_finished" => "step_done",
            kind => match SAME.into_iter().find(|same| *same == kind) {
                Some(same) => same,
                None => continue,
            },
        };
        all.push(Due { event, step: row.step, row });
    }
    all
}

/// A line about a task.
#[derive(Debug, PartialEq)]
struct Line(Value);

impl Line {
    fn event(&self) -> &str {
        self.0["event"].as_str().unwrap_or_default()
    }

    fn step(&self) -> Option<usize> {
        self.0["idx"].as_u64().and_then(|idx| usize::try_from(idx).ok())
    }

    fn is_reconciled(&self) -> bool {
        self.0["reconciled"] == true
    }

    fn shown(&self) -> String {
        self.step().map_or_else(|| self.event().to_owned(), |step| format!("{}:{step}", self.event()))
    }
}

/// The lines of a task, those that the lab knows.
fn lines(log: &[u8], task: &str) -> Vec<Line> {
    let known = |line: &Line| {
        let event = line.event();
        ["task_resumed", "step_done", ALREADY].contains(&event) || SAME.contains(&event)
    };
    let all = log.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice::<Value>(line).ok());
    all.filter(|line| line.is_object() && line["task"] == task).map(Line).filter(known).collect()
}

/// The runs between two looks at the folder: usually one, in a race many.
struct Work<'a> {
    evidence: &'a Evidence,
    runs: std::ops::Range<usize>,
    before: &'a Snapshot,
    after: &'a Snapshot,
}

impl Work<'_> {
    fn judge(&self) -> Vec<String> {
        let (old, new) = (found(self.before), left(self.after));
        let Some(more) = new.strip_prefix(old) else {
            return vec!["what stood in the log was changed or removed".to_owned()];
        };
        let mut wrong = self.mixed(old, more);
        for task in &self.evidence.tasks {
            wrong.extend(self.of_task(task).into_iter().map(|why| format!("{task}: {why}")));
        }
        wrong
    }

    /// Lines that cannot be read are those that a kill or an error has torn, and a torn one gets nothing but its end.
    fn mixed(&self, old: &[u8], more: &[u8]) -> Vec<String> {
        let mut wrong = Vec::new();
        let mut rest = more.split(|byte| *byte == b'\n');
        let torn = old.last().is_some_and(|byte| *byte != b'\n');
        if torn && rest.next().is_some_and(|stuck| !stuck.is_empty()) {
            wrong.push("something sticks to the torn last line".to_owned());
        }
        let is_line = |line: &&[u8]| serde_json::from_slice::<Value>(line).is_ok_and(|line| line.is_object());
        let unreadable = rest.filter(|line| !line.is_empty() && !is_line(line)).count();
        let cuts = self.runs.clone().filter(|&i| self.was_cut(i)).count();
        if unreadable > cuts {
            wrong.push(format!("{unreadable} new lines are not JSON objects, after {cuts} kills and errors"));
        }
        wrong
    }

    fn of_task(&self, task: &str) -> Vec<String> {
        let mut wrong = Vec::new();
        let (was_due, is_due) = (due(&self.before.tables, task), due(&self.after.tables, task));
        let (old, new) = (lines(found(self.before), task), lines(left(self.after), task));
        let events: Vec<&Line> = new.iter().filter(|line| line.event() != ALREADY).collect();
        for (at, line) in events.iter().enumerate() {
            match is_due.get(at) {
                Some(due) if (due.event, due.step) == (line.event(), line.step()) => {
                    wrong.extend(fields(line, due, &self.evidence.case));
                }
                other => {
                    let must = other.map_or_else(|| "nothing more".to_owned(), ToString::to_string);
                    wrong.push(format!("event {} of the log is {}, the journal has {must}", at + 1, line.shown()));
                    return wrong;
                }
            }
        }
        wrong.extend(self.missing(task, &is_due, was_due.len(), events.len()));
        let known = old.iter().filter(|line| line.event() != ALREADY).count();
        match self.of(task).count() {
            0 if new.len() > old.len() => wrong.push("the log has new lines, and no run wrote them".to_owned()),
            1 => wrong.extend(marks(&events, known, was_due.len())),
            _ => {}
        }
        wrong.extend(self.already(task, &old, &new));
        wrong
    }

    /// Nothing may be journaled while the log lacks an earlier commit; and a process that ends by itself leaves nothing
    /// out.
    fn missing(&self, task: &str, due: &[Due<'_>], before: usize, there: usize) -> Option<String> {
        let lacks = &due[there..];
        let last = lacks.first()?;
        let names: Vec<String> = lacks.iter().map(ToString::to_string).collect();
        let names = names.join(", ");
        if self.of(task).any(|i| matches!(self.evidence.runs[i].outcome.ended, Ended::Exited(0 | 2))) {
            return Some(format!("the log lacks {names}, although a run came to its end"));
        }
        // A step's last error and the end of its task are one commit.
        let one_commit = lacks.len() == 1 || (lacks.len() == 2 && last.event == "step_error");
        let not_reconciled = there < before && due.len() == before;
        let nobody = self.of(task).next().is_none();
        if one_commit && there >= before || not_reconciled || nobody {
            return None;
        }
        Some(format!("the log lacks {names}, and the task went on"))
    }

    /// A run on a finished task says so, and no other run does.
    fn already(&self, task: &str, old: &[Line], new: &[Line]) -> Option<String> {
        let count = |lines: &[Line]| lines.iter().filter(|line| line.event() == ALREADY).count();
        if let Some(at) = new.iter().position(|line| line.event() == ALREADY) {
            let later = new[at..].iter().find(|line| line.event() != ALREADY);
            if let Some(later) = later {
                return Some(format!("{} comes after {ALREADY}", later.shown()));
            }
        }
        let said = count(new) - count(old);
        let ended = |code| self.of(task).filter(move |&i| self.evidence.runs[i].outcome.ended == Ended::Exited(code));
        let was_done = self.before.tables.task(task).is_some_and(|row| row.status == "done");
        let is_done = self.after.tables.task(task).is_some_and(|row| row.status == "done");
        // Of several runs one has brought it to its end.
        let least = ended(0).count().saturating_sub(usize::from(!was_done));
        let cut = self.of(task).filter(|&i| is_done && self.was_cut(i)).count();
        if (least..=least + cut).contains(&said) {
            return None;
        }
        Some(format!("{said} new lines say {ALREADY}, must be {least}"))
    }

    /// The runs of a task among these.
    fn of<'b>(&'b self, task: &'b str) -> impl Iterator<Item = usize> + 'b {
        self.runs.clone().filter(move |&i| self.evidence.runs[i].task == task && !self.was_refused(i))
    }

    fn was_refused(&self, run: usize) -> bool {
        self.evidence.runs[run].outcome.ended == Ended::Exited(3)
    }

    /// Whether it was killed, or stopped by an error such as a full disk.
    fn was_cut(&self, run: usize) -> bool {
        !matches!(self.evidence.runs[run].outcome.ended, Ended::Exited(0 | 2 | 3 | INTERRUPTED | TERMINATED))
    }
}

/// The log as the processes before a look have left it.
fn left(look: &Snapshot) -> &[u8] {
    look.log.as_deref().unwrap_or_default()
}

/// The log as the next process finds it.
fn found(look: &Snapshot) -> &[u8] {
    look.damaged_log.as_deref().unwrap_or_else(|| left(look))
}

/// Marked is what had been journaled before the run, and nothing else.
fn marks(events: &[&Line], known: usize, journaled: usize) -> Vec<String> {
    let new = events.iter().enumerate().skip(known);
    let wrong = new.filter(|(at, line)| line.is_reconciled() != (*at < journaled));
    wrong
        .map(|(at, line)| match at < journaled {
            true => format!("{} was journaled by an earlier run and is not marked as reconciled", line.shown()),
            false => format!("{} is marked as reconciled, and no crash has lost it", line.shown()),
        })
        .collect()
}

/// What a line says of its event. Fields that the contract does not ask for must be right where they are there.
fn fields(line: &Line, due: &Due<'_>, case: &PlanCase) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut must = |name: &str, must: Value| {
        if line.0[name] != must {
            wrong.push(format!("{} says `{name}` {}, must be {must}", line.shown(), line.0[name]));
        }
    };
    if let Some(step) = due.step {
        must("name", note_of(case, step).into());
    }
    if due.event == "task_created" {
        must("steps", case.steps.len().into());
    }
    if line.0.get("seq").is_some() {
        must("seq", due.row.seq.into());
    }
    if line.0.get("run").is_some() {
        must("run", due.row.run.clone().into());
    }
    if line.0["ts"].as_f64().is_none() {
        wrong.push(format!("{} has no time", line.shown()));
    }
    wrong
}

#[cfg(test)]
mod tests;

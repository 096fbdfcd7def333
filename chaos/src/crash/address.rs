//! Names for the moments of a run that outlive a change of the binary.

use std::collections::BTreeMap;

use crate::look::tables::Tables;
use crate::schedule::CallPoint;

/// Gives each call of one process its address.
pub struct Addresses<'a> {
    task: &'a str,
    /// Whether the process stores the task; else it runs it.
    creates: bool,
    /// The tables as the process found them.
    found: &'a Tables,
    counts: BTreeMap<(String, &'static str), u32>,
}

impl<'a> Addresses<'a> {
    /// For a process that works on `task` and found these tables.
    #[must_use]
    pub fn new(task: &'a str, creates: bool, found: &'a Tables) -> Self {
        Self { task, creates, found, counts: BTreeMap::new() }
    }

    /// The address of the next call, made while the tables stood like this.
    pub fn next(&mut self, tables: &Tables, call: &'static str) -> CallPoint {
        let phase = if self.creates { "create".to_owned() } else { phase(self.task, self.found, tables) };
        let count = self.counts.entry((phase.clone(), call)).or_default();
        *count += 1;
        CallPoint { phase, call: call.to_owned(), nth: *count }
    }
}

/// Where the task stands for a run that found the tables `found`.
fn phase(task: &str, found: &Tables, now: &Tables) -> String {
    if now.task(task).is_some_and(|row| row.status == "done" || row.status == "failed") {
        return "close".to_owned();
    }
    let begun = |tables: &Tables| tables.events_of(task).filter(|event| event.kind == "run_started").count();
    if begun(now) <= begun(found) {
        return "open".to_owned();
    }
    if let Some(row) = now.steps_of(task).find(|row| row.status == "running") {
        return format!("{}:{}", row.tool, row.idx);
    }
    match now.steps_of(task).find(|row| row.status != "done") {
        Some(row) => format!("next:{}", row.idx),
        None => "finish".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Story;

    #[test]
    fn a_call_is_counted_within_its_phase() {
        let mut story = Story::killed_at("after_effect:1");
        let found = story.evidence.created.tables.clone();
        let killed = story.after(0).tables.clone();
        let mut addresses = Addresses::new("t1", false, &found);
        let all = [&found, &found, &killed, &killed].map(|tables| addresses.next(tables, "pwrite64").to_string());
        assert_eq!(all, ["open/pwrite64#1", "open/pwrite64#2", "summarize:1/pwrite64#1", "summarize:1/pwrite64#2"]);
        let done = story.last().tables.clone();
        assert_eq!(addresses.next(&done, "fsync").to_string(), "close/fsync#1");
        assert_eq!(phase("t1", &killed, &killed), "open", "a resume begins anew");
    }

    #[test]
    fn all_calls_of_create_are_one_phase() {
        let mut story = Story::clean();
        let found = Tables::default();
        let mut addresses = Addresses::new("t1", true, &found);
        assert_eq!(addresses.next(&story.last().tables.clone(), "fsync").to_string(), "create/fsync#1");
    }
}

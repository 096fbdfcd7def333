//! The checker: does a log, read leniently, agree with the journal, event for event?
//!
//! It restates what the log must show, from the journal as `export` prints it, and knows nothing of how the agent does
//! it.

use serde_json::Value;

/// An event of the log: its name, its step, the name of that step.
pub(crate) type Event = (String, Option<u64>, Option<String>);

/// A line of the log.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Line {
    pub(crate) event: Event,
    pub(crate) ts: f64,
    pub(crate) reconciled: bool,
}

/// What a log says of a task. Whatever is not a JSON object about it is skipped.
pub(crate) fn read(bytes: &[u8], task: &str) -> Vec<Line> {
    let lines = bytes.split(|&byte| byte == b'\n').filter_map(|line| serde_json::from_slice::<Value>(line).ok());
    let lines = lines.filter(|line| line.is_object() && line["task"] == task);
    lines
        .map(|line| {
            let name = line["name"].as_str().map(str::to_owned);
            Line {
                event: (line["event"].as_str().unwrap().to_owned(), line["idx"].as_u64(), name),
                ts: line["ts"].as_f64().unwrap(),
                reconciled: line.get("reconciled") == Some(&Value::Bool(true)),
            }
        })
        .collect()
}

/// What the journal of an inbox task has for the log, in order.
fn due(journal: &[Value]) -> Vec<(String, Option<u64>, f64)> {
    let creator = &journal[0]["run"];
    let events = journal.iter().filter_map(|entry| {
        let event = match entry["kind"].as_str().unwrap() {
            "run_started" if entry["run"] == *creator => return None,
            "run_started" => "task_resumed",
            "step_recovered" | "completion_started" | "completion_recovered" => return None,
            "step_finished" => "step_done",
            other => other,
        };
        Some((event.to_owned(), entry["step"].as_u64(), entry["ts"].as_f64().unwrap()))
    });
    events.collect()
}

/// Whether the log has exactly the journal's events, in its order, at its times. `already_done` is not an event of the
/// journal, and may only come last.
pub(crate) fn agree(journal: &[Value], log: &[Line]) -> Result<(), String> {
    let shown = log.iter().filter(|line| line.event.0 != "already_done");
    let shown: Vec<_> = shown.map(|line| (line.event.0.clone(), line.event.1, line.ts)).collect();
    let due = due(journal);
    if let Some(at) = (0..due.len().max(shown.len())).find(|&at| due.get(at) != shown.get(at)) {
        return Err(format!("event {at}: the journal has {:?}, the log {:?}", due.get(at), shown.get(at)));
    }
    let last = log.iter().rposition(|line| line.event.0 != "already_done");
    let first = log.iter().position(|line| line.event.0 == "already_done");
    if matches!((first, last), (Some(first), Some(last)) if first < last) {
        return Err("something happened after `already_done`".to_owned());
    }
    match log.iter().find(|line| line.event.1.is_some() != line.event.2.is_some()) {
        Some(line) => Err(format!("{line:?} must have a name if and only if it has a step")),
        None => Ok(()),
    }
}

/// What the contract says of a task that was killed `kills` times while it ran, and resumed each time.
pub(crate) fn counts(log: &[Line], steps: u64, kills: usize) -> Result<(), String> {
    let count =
        |event: &str, step| log.iter().filter(|line| (line.event.0.as_str(), line.event.1) == (event, step)).count();
    let expect = |event: &str, step, due: std::ops::RangeInclusive<usize>| match count(event, step) {
        times if due.contains(&times) => Ok(times),
        times => Err(format!("{event} of {step:?}: {times} times, not {due:?}")),
    };
    expect("task_created", None, 1..=1)?;
    expect("task_resumed", None, 0..=kills)?;
    expect("task_done", None, 1..=1)?;
    let mut repeated = 0;
    for step in 0..steps {
        expect("step_done", Some(step), 1..=1)?;
        repeated += expect("step_started", Some(step), 1..=1 + kills)? - 1;
    }
    if repeated > kills { Err(format!("{repeated} steps were started again after {kills} kills")) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::Lab;
    use rstest::rstest;

    #[test]
    fn a_log_with_any_fault_is_rejected() {
        let lab = Lab::killed_at("before_effect:1");
        lab.inbox().exits(0);
        let (journal, log) = (lab.journal("t"), lab.log("t"));
        assert_eq!(agree(&journal, &log), Ok(()));
        assert_eq!(counts(&log, 3, 1), Ok(()));
        assert!(log.len() > 8);
        for at in 0..log.len() {
            let mut lacking = log.clone();
            let line = lacking.remove(at);
            assert!(agree(&journal, &lacking).is_err(), "without {line:?}");

            let mut twice = log.clone();
            twice.push(line.clone());
            assert!(agree(&journal, &twice).is_err(), "twice {line:?}");

            let mut moved = lacking.clone();
            moved.insert((at + 1) % log.len(), line.clone());
            assert!(agree(&journal, &moved).is_err(), "moved {line:?}");

            let mut late = log.clone();
            late[at].ts += 1.0;
            assert!(agree(&journal, &late).is_err(), "late {line:?}");
        }
        let mut early = log.clone();
        early.insert(3, Line { event: ("already_done".to_owned(), None, None), ..log[0].clone() });
        assert!(agree(&journal, &early).is_err());
        let mut nameless = log.clone();
        nameless[1].event.2 = None;
        assert!(agree(&journal, &nameless).is_err());
    }

    #[rstest]
    #[case("task_created", None)]
    #[case("task_resumed", None)]
    #[case("task_done", None)]
    #[case("step_done", Some(2))]
    #[case("step_started", Some(0))]
    fn a_count_that_is_off_is_rejected(#[case] event: &str, #[case] step: Option<u64>) {
        let lab = Lab::killed_at("before_effect:1");
        lab.inbox().exits(0);
        let mut log = lab.log("t");
        let line = log.iter().find(|line| (line.event.0.as_str(), line.event.1) == (event, step)).unwrap().clone();
        log.push(line);
        assert!(counts(&log, 3, 1).is_err());
    }
}

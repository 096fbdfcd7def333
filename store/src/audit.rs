//! The journal against the tables.
//!
//! [`audit`] replays every journal from its start through [`crate::machine::evolve`] and compares what comes out with
//! the rows. It only reads. What it finds is data: a database that is out of order is not an error of the audit.

use std::collections::BTreeMap;

use crate::commit::settles_as;
use crate::error::{ErrorKind, StoreError, line};
use crate::limits;
use crate::machine::evolve;
use crate::model::{Event, JournalEntry, RunId, StepState, StepStatus, TaskId, TaskState, Wait, codec};
use crate::store::{Reader, StepRow, TaskRow};

/// Something that does not add up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The task, or none where the fault lies in the storage as a whole.
    pub task: Option<TaskId>,
    /// The step, where it is one step's.
    pub step: Option<u32>,
    /// What is wrong, one line.
    pub what: String,
}

/// Audits one task, or all of them. An empty list says that storage, journal and tables agree. Runs may be at work
/// meanwhile: all is read from one state.
///
/// # Errors
/// The database cannot be read at all. `ErrorKind::NoTask` where `task` names a task that is not there.
pub fn audit(reader: &mut dyn Reader, task: Option<&TaskId>) -> Result<Vec<Finding>, StoreError> {
    let mut findings = Vec::new();
    reader.snapshot(&mut |reader| {
        findings = audit_state(reader, task)?;
        Ok(())
    })?;
    Ok(findings)
}

fn audit_state(reader: &mut dyn Reader, task: Option<&TaskId>) -> Result<Vec<Finding>, StoreError> {
    let storage = reader.integrity()?;
    let mut findings: Vec<Finding> =
        storage.into_iter().map(|what| Finding { task: None, step: None, what: format!("storage: {what}") }).collect();
    let found = match task {
        None => audit_all(reader),
        Some(task) => audit_one(reader, task),
    };
    // What the storage's own check has found explains why it cannot be read on.
    findings.extend(or_finding(None, found)?);
    Ok(findings)
}

/// A value that does not decode is a finding about its task; what else goes wrong is an error.
fn or_finding(task: Option<&TaskId>, found: Result<Vec<Finding>, StoreError>) -> Result<Vec<Finding>, StoreError> {
    match found {
        Err(error) if error.kind() == ErrorKind::Corrupt => {
            Ok(vec![Finding { task: task.cloned(), step: None, what: line(&error) }])
        }
        found => found,
    }
}

fn audit_one(reader: &mut dyn Reader, task: &TaskId) -> Result<Vec<Finding>, StoreError> {
    let Some(row) = reader.task(task)? else {
        return Err(StoreError::new(ErrorKind::NoTask, format!("there is no task `{task}`")));
    };
    let replay = replay(reader, Some(task))?.remove(task).unwrap_or_default();
    compare(reader, &row, replay)
}

fn audit_all(reader: &mut dyn Reader) -> Result<Vec<Finding>, StoreError> {
    let (mut findings, mut rows) = (Vec::new(), Vec::new());
    for row in reader.tasks()? {
        match row {
            Ok(row) => rows.push(row),
            Err(error) => findings.extend(or_finding(None, Err(error))?),
        }
    }
    match replay(reader, None) {
        Ok(mut replays) => {
            for row in &rows {
                let found = compare(reader, row, replays.remove(&row.id).unwrap_or_default());
                findings.extend(or_finding(Some(&row.id), found)?);
            }
            let orphans = replays.into_keys().filter(|task| matches!(reader.task(task), Ok(None)));
            findings.extend(orphans.map(|orphan| Finding {
                task: Some(orphan),
                step: None,
                what: "the journal speaks of it, the tables do not have it".to_owned(),
            }));
        }
        // One row of the journal that does not decode must not hide what there is to say of other tasks.
        Err(error) if error.kind() == ErrorKind::Corrupt => {
            for TaskRow { id, .. } in &rows {
                let found = audit_one(reader, id);
                findings.extend(or_finding(Some(id), found)?);
            }
            let what = line(&error);
            if findings.iter().all(|finding| finding.what != what) {
                findings.push(Finding { task: None, step: None, what });
            }
        }
        Err(error) => return Err(error),
    }
    Ok(findings)
}

/// Replays the journal of one task, or of all.
fn replay(reader: &mut dyn Reader, task: Option<&TaskId>) -> Result<BTreeMap<TaskId, Replay>, StoreError> {
    let mut replays: BTreeMap<TaskId, Replay> = BTreeMap::new();
    let mut after = 0;
    loop {
        let page = reader.journal(task, after, limits::JOURNAL_PAGE)?;
        let Some(last) = page.last() else { return Ok(replays) };
        after = last.seq;
        for entry in &page {
            replays.entry(entry.task.clone()).or_default().take(entry);
        }
    }
}

/// A journal as it is replayed.
#[derive(Default)]
struct Replay {
    state: Option<TaskState>,
    /// Where the steps stand that the task is past, the one at the cursor aside.
    settled: Vec<StepState>,
    /// Steps recovered since the last `run_started`; the next one must follow at once, and name them.
    recovered: Vec<u32>,
    /// The run that began last: only it may work on the steps.
    run: Option<RunId>,
    /// The person, by the id of their command, who spoke in the event before: what comes of it is theirs too.
    hand: Option<RunId>,
    faults: Vec<(Option<u32>, String)>,
}

impl Replay {
    fn take(&mut self, entry: &JournalEntry) {
        match codec::event_from_entry(entry) {
            Ok(None) => {}
            Ok(Some(event)) => {
                let order = self.order(&event, &entry.run);
                for why in [order, self.step(&event)].into_iter().filter_map(Result::err) {
                    self.faults.push((event.step(), format!("journal row {} ({}): {why}", entry.seq, entry.kind)));
                }
            }
            Err(bad) => self.faults.push((entry.step, bad.to_string())),
        }
    }

    /// What the state does not show: which run an event belongs to, and that recovery is announced.
    fn order(&mut self, event: &Event, run: &RunId) -> Result<(), String> {
        match event {
            Event::RunStarted { .. } | Event::StepRecovered { .. } | Event::CompletionRecovered => {}
            // Nobody goes on with what is cancelled.
            Event::TaskCancelled { .. } => self.recovered.clear(),
            _ => self.unannounced(),
        }
        let hand = self.hand.take();
        match event {
            Event::RunStarted { .. } => self.run = Some(run.clone()),
            Event::AnswerGiven { .. } | Event::DoubtResolved { .. } => self.hand = Some(run.clone()),
            Event::TaskCreated { .. }
            | Event::TaskRetried { .. }
            | Event::TaskRebound { .. }
            | Event::TaskCancelled { .. }
            | Event::StepRecovered { .. }
            | Event::StepInDoubt { .. }
            | Event::CompletionRecovered => {}
            Event::TaskFailed { .. } | Event::StepFailed { .. } if hand.as_ref() == Some(run) => {}
            _ if self.run.as_ref() == Some(run) => {}
            _ => return Err(format!("it is of run {run}, which has not begun or is over")),
        }
        Ok(())
    }

    /// Recoveries without the `run_started` that belongs to them.
    fn unannounced(&mut self) {
        for step in std::mem::take(&mut self.recovered) {
            self.faults.push((Some(step), "it was recovered, and no run_started says so".to_owned()));
        }
    }

    fn step(&mut self, event: &Event) -> Result<(), String> {
        let Some(state) = self.state else {
            let Event::TaskCreated { steps, .. } = *event else {
                return Err("it stands before `task_created`".to_owned());
            };
            self.state = Some(TaskState::created(steps));
            return Ok(());
        };
        let next = evolve(state, event).map_err(|illegal| illegal.to_string())?;
        self.state = Some(next);
        if next.cursor > state.cursor {
            self.settled.push(state.current.settled(settles_as(event)));
        }
        match event {
            Event::StepRecovered { step } => self.recovered.push(*step),
            Event::RunStarted { recovered, .. } => {
                let found = std::mem::take(&mut self.recovered);
                if found != *recovered {
                    return Err(format!("it names {recovered:?} as recovered, the journal has {found:?}"));
                }
            }
            _ => {}
        }
        Ok(())
    }
}

fn compare(reader: &mut dyn Reader, row: &TaskRow, mut replay: Replay) -> Result<Vec<Finding>, StoreError> {
    replay.unannounced();
    let replay = &replay;
    let finding = |step, what| Finding { task: Some(row.id.clone()), step, what };
    let mut findings: Vec<Finding> = replay.faults.iter().map(|(step, what)| finding(*step, what.clone())).collect();
    let Some(state) = replay.state else {
        findings.push(finding(None, "the journal has no `task_created`".to_owned()));
        return Ok(findings);
    };
    let said = if state.no_step_left() { state.current } else { StepState::default() };
    if row.completion != said {
        let what = format!("the journal says of the completion {said:?}, the table {:?}", row.completion);
        findings.push(finding(None, what));
    }
    if state.status != row.status {
        let what = format!("the journal says that the task is {}, the table that it is {}", state.status, row.status);
        findings.push(finding(None, what));
    }
    let mut count = 0;
    loop {
        let page = reader.steps(&row.id, count, limits::STEP_PAGE)?;
        if page.is_empty() {
            break;
        }
        for step in &page {
            findings.extend(compare_step(&state, replay, count, step).map(|what| finding(Some(step.idx), what)));
            if step.state.status == StepStatus::Done
                && step.has_output
                && let Err(error) = reader.output(&row.id, step.idx)
            {
                findings.push(finding(Some(step.idx), line(&error)));
            }
            count += 1;
        }
    }
    if count != state.steps {
        findings.push(finding(None, format!("it was created with {} steps, the table has {count}", state.steps)));
    }
    Ok(findings)
}

fn compare_step<'a>(
    state: &'a TaskState,
    replay: &'a Replay,
    due: u32,
    row: &'a StepRow,
) -> impl Iterator<Item = String> + use<'a> {
    let told = match row.idx {
        idx if idx == state.cursor => state.current,
        idx => replay.settled.get(idx as usize).copied().unwrap_or_default(),
    };
    let StepState { status, attempts, forgiven, .. } = told;
    let rest = |state: StepState| StepState { status, attempts, forgiven, ..state };
    let done = row.state.status == StepStatus::Done;
    [
        (row.idx != due).then(|| format!("step {due} is missing from the table")),
        (row.state.status != status).then(|| format!("the journal says {status}, the table says {}", row.state.status)),
        (row.state.attempts != attempts)
            .then(|| format!("started {attempts} times in the journal, {} attempts in the table", row.state.attempts)),
        (row.state.forgiven != forgiven)
            .then(|| format!("{forgiven} attempts forgiven in the journal, {} in the table", row.state.forgiven)),
        (rest(row.state) != told).then(|| format!("{}, {} in the table", in_words(&told), in_words(&row.state))),
        (done && !row.has_output).then(|| "done without an output".to_owned()),
        (!done && row.has_output).then(|| format!("{} and yet with an output", row.state.status)),
    ]
    .into_iter()
    .flatten()
}

/// What an attempt of a step goes by, beside its count.
fn in_words(state: &StepState) -> String {
    let StepState { wait, intent, unknown, answered, .. } = state;
    let wait = match wait {
        None => "waits for nothing".to_owned(),
        Some(Wait::Until(due)) => format!("waits until {}", due.as_seconds()),
        Some(Wait::Approval { expires: None }) => "waits for an answer".to_owned(),
        Some(Wait::Approval { expires: Some(end) }) => format!("waits for an answer until {}", end.as_seconds()),
    };
    let intent = intent.map_or("nothing".to_owned(), |intent| format!("{} {}", intent.effect, intent.digest));
    let known = if *unknown { "unknown" } else { "known" };
    let answer = if *answered { ", was answered" } else { "" };
    format!("{wait}, intends {intent}, earlier outcome {known}{answer}")
}

//! The properties of a journal, written down a second time and without the machine: plain counts for each step.

use store::model::{Event, StepStatus, TaskState, TaskStatus};

/// One event, with the number of the transaction that stored it.
pub(crate) type Row = (u32, Event);

#[derive(Clone, Copy, Default)]
struct Step {
    open: bool,
    finished: bool,
    starts: u32,
    forgiven: u32,
}

/// What the journal amounts to.
struct Account {
    steps: Vec<Step>,
    limit: u32,
    failed: Option<u32>,
    done: bool,
    begun: bool,
    /// Recovered in this transaction.
    recovered: Vec<(u32, u32)>,
}

/// Checks the whole journal of a task of `steps` steps, run with `limit` attempts, against the stored state.
pub(crate) fn check(journal: &[Row], steps: u32, limit: u32, state: &TaskState) -> Result<(), String> {
    let mut account = Account {
        steps: vec![Step::default(); steps as usize],
        limit,
        failed: None,
        done: false,
        begun: false,
        recovered: Vec::new(),
    };
    for (at, (transaction, event)) in journal.iter().enumerate() {
        account.take(*transaction, event).map_err(|why| format!("row {at}, {event:?}: {why}"))?;
    }
    if !account.recovered.is_empty() {
        return Err("a recovery that no run announced".to_owned());
    }
    account.compare(state)
}

fn ensure(holds: bool, why: &str) -> Result<(), String> {
    if holds { Ok(()) } else { Err(why.to_owned()) }
}

impl Account {
    fn take(&mut self, transaction: u32, event: &Event) -> Result<(), String> {
        ensure(!self.done, "it comes after task_done")?;
        ensure(self.failed.is_none() || matches!(event, Event::TaskRetried { .. }), "it comes after task_failed")?;
        ensure(
            self.recovered.is_empty() || matches!(event, Event::StepRecovered { .. } | Event::RunStarted { .. }),
            "it comes between a recovery and its run_started",
        )?;
        match event {
            Event::TaskCreated { .. } => Err("a second creation".to_owned()),
            Event::RunStarted { recovered, terms } => self.run_started(transaction, recovered, terms.max_attempts),
            Event::StepRecovered { step } => {
                self.close(*step)?;
                self.recovered.push((transaction, *step));
                Ok(())
            }
            Event::StepStarted { step, attempt, .. } => self.started(*step, *attempt),
            Event::StepFinished { step, .. } => {
                self.close(*step)?;
                self.steps[*step as usize].finished = true;
                Ok(())
            }
            Event::StepError { step, .. } => self.close(*step),
            Event::TaskFailed { step: Some(step), .. } => {
                ensure(!self.any_open(), "a step is open")?;
                let charged = self.charged(*step);
                ensure(charged == self.limit, &format!("failed after {charged} attempts of {}", self.limit))?;
                self.failed = Some(*step);
                Ok(())
            }
            Event::TaskRetried { step: Some(step), forgiven } => {
                ensure(self.failed.take() == Some(*step), "it retries what had not failed")?;
                let it = &mut self.steps[*step as usize];
                ensure(*forgiven == it.starts, "a retry gives exactly one fresh budget")?;
                it.forgiven = *forgiven;
                Ok(())
            }
            Event::TaskDone => {
                ensure(self.steps.iter().all(|step| step.finished && !step.open), "steps are left")?;
                self.done = true;
                Ok(())
            }
            other => Err(format!("nobody has asked for {other:?}")),
        }
    }

    fn run_started(&mut self, transaction: u32, recovered: &[u32], limit: Option<u32>) -> Result<(), String> {
        ensure(!self.any_open(), "a step that was found running was not recovered")?;
        let found: Vec<(u32, u32)> = recovered.iter().map(|step| (transaction, *step)).collect();
        ensure(found == std::mem::take(&mut self.recovered), "it announces other recoveries than there were")?;
        ensure(limit == Some(self.limit), "it announces another limit")?;
        self.begun = true;
        Ok(())
    }

    fn started(&mut self, step: u32, attempt: u32) -> Result<(), String> {
        ensure(self.begun, "no run has begun")?;
        ensure(!self.any_open(), "a step is open")?;
        ensure((step as usize) < self.steps.len(), "there is no such step")?;
        ensure(!self.steps[step as usize].finished, "a committed step runs again")?;
        ensure(self.steps[..step as usize].iter().all(|step| step.finished), "an earlier step is left")?;
        ensure(self.charged(step) < self.limit, "its attempts are used up")?;
        let it = &mut self.steps[step as usize];
        it.starts += 1;
        it.open = true;
        ensure(attempt == it.starts, "its attempt is not the count of its starts")
    }

    fn close(&mut self, step: u32) -> Result<(), String> {
        let it = self.steps.get_mut(step as usize).ok_or("there is no such step")?;
        ensure(std::mem::take(&mut it.open), "it closes what was not open")
    }

    fn any_open(&self) -> bool {
        self.steps.iter().any(|step| step.open)
    }

    fn charged(&self, step: u32) -> u32 {
        self.steps[step as usize].starts - self.steps[step as usize].forgiven
    }

    fn compare(&self, state: &TaskState) -> Result<(), String> {
        let cursor = u32::try_from(self.steps.iter().take_while(|step| step.finished).count()).unwrap();
        ensure(state.cursor == cursor, &format!("the state is at {}, the journal at {cursor}", state.cursor))?;
        if let Some(step) = self.steps.get(cursor as usize) {
            let status = match self.failed {
                Some(_) => StepStatus::Failed,
                None if step.open => StepStatus::Running,
                None => StepStatus::Pending,
            };
            ensure(
                state.current.status == status,
                &format!("the state has {}, the journal {status}", state.current.status),
            )?;
            let attempts = state.current.attempts;
            ensure(attempts == step.starts, &format!("{attempts} attempts, {} starts", step.starts))?;
            ensure(state.current.forgiven == step.forgiven, "other attempts are forgiven in the state")?;
        }
        ensure((state.status == TaskStatus::Done) == self.done, "the state is done, or the journal, and not both")?;
        ensure((state.status == TaskStatus::Failed) == self.failed.is_some(), "one says failed, the other not")
    }
}

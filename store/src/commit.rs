//! The unit of writing: state changes and their events, inseparable.

use crate::lease::Lease;
use crate::machine::{Illegal, evolve};
use crate::model::{Event, StepState, StepStatus, TaskState, TaskStatus};

/// One transaction on one task. It can only be built from events, so there is no way to change a state without
/// journaling it; and it carries the state before, so that a backend can refuse it where the rows differ.
#[derive(Debug)]
pub struct Commit<'a> {
    lease: &'a Lease,
    at: f64,
    events: Vec<Event>,
    output: Option<String>,
    steps: Vec<StepChange>,
    task: Option<TaskChange>,
    next: TaskState,
}

/// How one step's row changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepChange {
    /// The step.
    pub step: u32,
    /// The row that must be there.
    pub from: StepState,
    /// The row that will be there.
    pub to: StepState,
}

/// How the task's row changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskChange {
    /// The status that must be there.
    pub from: TaskStatus,
    /// The status that will be there.
    pub to: TaskStatus,
}

impl<'a> Commit<'a> {
    /// The transaction that takes `before` through `events` at the time `at` (seconds since the epoch). `output` is
    /// the JSON text of the output of the step that finishes in it.
    ///
    /// # Errors
    /// The events cannot follow each other from that state.
    pub fn new(
        lease: &'a Lease,
        at: f64,
        before: TaskState,
        events: Vec<Event>,
        output: Option<String>,
    ) -> Result<Self, Illegal> {
        let mut next = before;
        let mut steps: Vec<StepChange> = Vec::new();
        for event in &events {
            let from = next.current;
            next = evolve(next, event)?;
            let Some(step) = event.step() else { continue };
            let to = if next.cursor > step { StepState { status: StepStatus::Done, ..from } } else { next.current };
            match steps.iter_mut().find(|change| change.step == step) {
                Some(change) => change.to = to,
                None => steps.push(StepChange { step, from, to }),
            }
        }
        let task = (before.status != next.status).then_some(TaskChange { from: before.status, to: next.status });
        Ok(Self { lease, at, events, output, steps, task, next })
    }

    /// The lease that permits it.
    #[must_use]
    pub fn lease(&self) -> &Lease {
        self.lease
    }

    /// Seconds since the epoch.
    #[must_use]
    pub fn at(&self) -> f64 {
        self.at
    }

    /// What happens, in order.
    #[must_use]
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// The step rows to change.
    #[must_use]
    pub fn steps(&self) -> &[StepChange] {
        &self.steps
    }

    /// The change of the task's row, if it changes.
    #[must_use]
    pub fn task(&self) -> Option<TaskChange> {
        self.task
    }

    /// The JSON text of the output of the step that becomes done in it.
    #[must_use]
    pub fn output(&self) -> Option<&str> {
        self.output.as_deref()
    }

    /// What has happened, once it is stored.
    #[must_use]
    pub fn into_events(self) -> Vec<Event> {
        self.events
    }

    /// The state after it.
    #[must_use]
    pub fn next(&self) -> TaskState {
        self.next
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lease::FencingToken;
    use crate::model::{RunId, TaskId};

    fn lease() -> Lease {
        Lease::new(TaskId::new("t").unwrap(), RunId::from_stored("r"), FencingToken(1), Box::new(()))
    }

    #[test]
    fn changes_are_what_the_events_do() {
        let lease = lease();
        let started = StepState { status: StepStatus::Running, attempts: 1, forgiven: 0 };
        let event = Event::StepStarted { step: 0, tool: "echo".into(), attempt: 1 };
        let commit = Commit::new(&lease, 0.0, TaskState::created(2), vec![event], None).unwrap();
        assert_eq!(commit.steps(), [StepChange { step: 0, from: StepState::default(), to: started }]);
        assert_eq!(commit.task(), Some(TaskChange { from: TaskStatus::Pending, to: TaskStatus::Running }));

        let event = Event::StepFinished { step: 0, tool: "echo".into() };
        let commit = Commit::new(&lease, 0.0, commit.next(), vec![event], Some("{}".into())).unwrap();
        let done = StepState { status: StepStatus::Done, ..started };
        assert_eq!(commit.steps(), [StepChange { step: 0, from: started, to: done }]);
        assert_eq!(commit.task(), None);
        assert_eq!(commit.next().cursor, 1);
    }

    #[test]
    fn an_event_that_cannot_happen_makes_no_commit() {
        let lease = lease();
        let event = Event::StepFinished { step: 0, tool: "echo".into() };
        assert!(Commit::new(&lease, 0.0, TaskState::created(2), vec![event], None).is_err());
    }
}

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
    steps: Vec<StepChange>,
    task: Option<TaskChange>,
    places: Places,
    next: TaskState,
}

/// How one step's row changes, or what is kept of the completion's attempts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepChange {
    /// The step; none for the completion.
    pub step: Option<u32>,
    /// What must be there.
    pub from: StepState,
    /// What will be there.
    pub to: StepState,
    /// The JSON text of the output that a step which becomes done has.
    pub output: Option<String>,
}

/// How the task's row changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskChange {
    /// The status that must be there.
    pub from: TaskStatus,
    /// The status that will be there.
    pub to: TaskStatus,
}

/// Where the task's files are, as far as that changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Places {
    /// The home; see [`crate::TaskRow::home`].
    pub home: Option<String>,
    /// The folder of the artifacts; see [`crate::TaskRow::artifacts`].
    pub artifacts: Option<String>,
    /// The completion, as a JSON object.
    pub completion: Option<String>,
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
        let (mut next, mut output) = (before, output);
        let mut steps: Vec<StepChange> = Vec::new();
        let mut places = Places::default();
        for event in &events {
            let (at, from) = (next.step(), next.current);
            next = evolve(next, event)?;
            places.take(event);
            let finished = next.step() != at;
            let to = if finished { StepState { status: StepStatus::Done, ..from } } else { next.current };
            let output = if finished { output.take() } else { None };
            match steps.iter_mut().find(|change| change.step == at) {
                Some(change) => (change.to, change.output) = (to, output),
                None => steps.push(StepChange { step: at, from, to, output }),
            }
        }
        steps.retain(|change| change.from != change.to);
        let task = (before.status != next.status).then_some(TaskChange { from: before.status, to: next.status });
        Ok(Self { lease, at, events, steps, task, places, next })
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

    /// Where the task's files are from then on, as far as that changes.
    #[must_use]
    pub fn places(&self) -> &Places {
        &self.places
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

impl Places {
    /// True where nothing changes.
    #[must_use]
    pub fn are_unchanged(&self) -> bool {
        *self == Self::default()
    }

    fn take(&mut self, event: &Event) {
        let (home, artifacts, completion) = match event {
            Event::RunStarted { terms, .. } => (&terms.home, &terms.artifacts, &None),
            Event::TaskRebound { home, completion } => (home, &None, completion),
            _ => return,
        };
        for (place, new) in
            [(&mut self.home, home), (&mut self.artifacts, artifacts), (&mut self.completion, completion)]
        {
            if new.is_some() {
                place.clone_from(new);
            }
        }
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
        assert_eq!(
            commit.steps(),
            [StepChange { step: Some(0), from: StepState::default(), to: started, output: None }]
        );
        assert_eq!(commit.task(), Some(TaskChange { from: TaskStatus::Pending, to: TaskStatus::Running }));

        let event = Event::StepFinished { step: 0, tool: "echo".into() };
        let commit = Commit::new(&lease, 0.0, commit.next(), vec![event], Some("{}".into())).unwrap();
        let done = StepState { status: StepStatus::Done, ..started };
        assert_eq!(commit.steps(), [StepChange { step: Some(0), from: started, to: done, output: Some("{}".into()) }]);
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

//! The unit of writing: state changes and their events, inseparable.

use std::sync::Arc;

use serde_json::Value;

use crate::lease::Fence;
use crate::machine::{Illegal, evolve};
use crate::model::{Event, PlanSource, StepState, StepStatus, TaskState, TaskStatus, Timestamp, codec};

/// One transaction on one task, its creation among them. It can only be built from events, so there is no way to change
/// a state without journaling it; and it carries the state before, so that a backend can refuse it where the rows
/// differ. It owns all that it needs: a backend may hand it to another thread, or put several into one transaction.
#[derive(Clone, Debug)]
pub struct Commit {
    fence: Fence,
    at: Timestamp,
    created: Option<Arc<dyn PlanSource>>,
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
    /// What the next attempt is to know, as JSON, where that changes.
    pub checkpoint: Option<String>,
    /// A person's answer, as JSON, where one is given.
    pub answer: Option<String>,
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

impl Commit {
    /// The transaction that stores a task with its plan, frozen from here on, and its home.
    #[must_use]
    pub fn create(fence: Fence, at: Timestamp, plan: Arc<dyn PlanSource>, home: Option<String>) -> Self {
        let next = TaskState::created(plan.count());
        let completion = plan.completion().map(|completion| Value::Object(completion.clone()).to_string());
        let places = Places { home: home.clone(), artifacts: None, completion };
        let events = vec![Event::TaskCreated { steps: next.steps, home }];
        Self { fence, at, created: Some(plan), events, steps: Vec::new(), task: None, places, next }
    }

    /// The transaction that takes `before` through `events`. `output` is the JSON text of the output of the step that
    /// finishes in it.
    ///
    /// # Errors
    /// The events cannot follow each other from that state.
    pub fn new(
        fence: Fence,
        at: Timestamp,
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
            let to = if next.step() == at { next.current } else { from.settled(settles_as(event)) };
            if steps.iter().all(|change| change.step != at) {
                steps.push(StepChange::none(at, from));
            }
            if let Some(change) = steps.iter_mut().find(|change| change.step == at) {
                change.to = to;
                change.take(event);
                if to.status == StepStatus::Done && at.is_some() {
                    change.output = output.take();
                }
            }
        }
        steps.retain(|change| !change.is_empty());
        let task = (before.status != next.status).then_some(TaskChange { from: before.status, to: next.status });
        Ok(Self { fence, at, created: None, events, steps, task, places, next })
    }

    /// Who writes it, and by which right.
    #[must_use]
    pub fn fence(&self) -> &Fence {
        &self.fence
    }

    /// The plan of the task, where it is created.
    #[must_use]
    pub fn created(&self) -> Option<&dyn PlanSource> {
        self.created.as_deref()
    }

    /// When it happens.
    #[must_use]
    pub fn at(&self) -> Timestamp {
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

/// How a step ends that the task is past after this event.
pub(crate) fn settles_as(event: &Event) -> StepStatus {
    match event {
        Event::StepFailed { .. } => StepStatus::Failed,
        Event::StepSkipped { .. } => StepStatus::Skipped,
        _ => StepStatus::Done,
    }
}

impl StepChange {
    /// Nothing changes yet.
    fn none(step: Option<u32>, from: StepState) -> Self {
        Self { step, from, to: from, output: None, checkpoint: None, answer: None }
    }

    fn is_empty(&self) -> bool {
        self.from == self.to && self.output.is_none() && self.checkpoint.is_none() && self.answer.is_none()
    }

    fn take(&mut self, event: &Event) {
        match event {
            Event::StepCheckpoint { checkpoint, .. } => self.checkpoint = Some(checkpoint.clone()),
            Event::AnswerGiven { answer, by, why, .. } => self.answer = Some(codec::answer(answer, by, why.as_deref())),
            _ => {}
        }
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
    use crate::model::{FailReason, RunId, TaskId};

    fn fence() -> Fence {
        Fence { task: TaskId::new("t").unwrap(), run: RunId::from_stored("r"), token: FencingToken(1) }
    }

    #[test]
    fn changes_are_what_the_events_do() {
        let started = StepState { status: StepStatus::Running, attempts: 1, ..StepState::default() };
        let event = Event::StepStarted { step: 0, tool: "echo".into(), attempt: 1, intent: None };
        let commit = Commit::new(fence(), Timestamp::default(), TaskState::created(2), vec![event], None).unwrap();
        let change = StepChange { to: started, ..StepChange::none(Some(0), StepState::default()) };
        assert_eq!(commit.steps(), [change]);
        assert_eq!(commit.task(), Some(TaskChange { from: TaskStatus::Pending, to: TaskStatus::Running }));

        let event = Event::StepFinished { step: 0, tool: "echo".into(), adopted: false };
        let commit = Commit::new(fence(), Timestamp::default(), commit.next(), vec![event], Some("{}".into())).unwrap();
        let done = StepState { status: StepStatus::Done, ..started };
        let change = StepChange { to: done, output: Some("{}".into()), ..StepChange::none(Some(0), started) };
        assert_eq!(commit.steps(), [change]);
        assert_eq!(commit.task(), None);
        assert_eq!(commit.next().cursor, 1);
    }

    /// A step that the task goes on without looks in its row like one that failed the task; it is the row that counts.
    #[test]
    fn a_step_that_is_left_behind_has_failed_and_the_task_is_past_it() {
        let steps = [
            Event::StepSkipped { step: 0 },
            Event::StepFailed { step: 1, reason: FailReason::MaxAttempts, unknown: false },
        ];
        let commit = Commit::new(fence(), Timestamp::default(), TaskState::created(3), steps.to_vec(), None).unwrap();
        let statuses: Vec<_> = commit.steps().iter().map(|change| (change.step, change.to.status)).collect();
        assert_eq!(statuses, [(Some(0), StepStatus::Skipped), (Some(1), StepStatus::Failed)]);
        assert_eq!((commit.next().cursor, commit.task()), (2, None));
    }

    #[test]
    fn what_an_attempt_says_of_itself_is_kept_without_a_change_of_state() {
        let current = StepState { status: StepStatus::Running, attempts: 1, ..StepState::default() };
        let before = TaskState { status: TaskStatus::Running, current, ..TaskState::created(1) };
        let event = Event::StepCheckpoint { step: 0, checkpoint: "3".into() };
        let commit = Commit::new(fence(), Timestamp::default(), before, vec![event], None).unwrap();
        assert_eq!(commit.steps()[0].checkpoint.as_deref(), Some("3"));
        assert_eq!(commit.next(), before);
    }

    /// A group of commits that is written by another thread takes them as they are.
    #[test]
    fn a_commit_can_travel() {
        fn travels<T: Send + 'static>() {}
        travels::<Commit>();
    }

    #[test]
    fn an_event_that_cannot_happen_makes_no_commit() {
        let event = Event::StepFinished { step: 0, tool: "echo".into(), adopted: false };
        assert!(Commit::new(fence(), Timestamp::default(), TaskState::created(2), vec![event], None).is_err());
    }
}

//! State and events: together or not at all.

use serde_json::json;
use store::machine::{Command, Refused};
use store::model::{Event, StepState, StepStatus, TaskState, TaskStatus};
use store::{Commit, ErrorKind, Lease, SessionError, Store};

use crate::support::{
    Backend, Ticking, at, begin, create, everything, journal, kinds, object, run, run_steps, run_to_end, session, start,
};

fn started(step: u32, attempt: u32) -> Event {
    Event::StepStarted { step, tool: "echo".to_owned(), attempt, intent: None }
}

fn finished(step: u32) -> Event {
    Event::StepFinished { step, tool: "echo".to_owned(), adopted: false }
}

/// Commits under a fresh lease and gives the kind of the refusal.
fn refusal(store: &mut dyn Store, lease: &Lease, before: TaskState, events: Vec<Event>) -> ErrorKind {
    let output = events.iter().any(|event| matches!(event, Event::StepFinished { .. })).then(|| "{}".to_owned());
    let commit = Commit::new(lease.fence().clone(), at(1.0), before, events, output).unwrap();
    store.commit(&commit).unwrap_err().kind()
}

pub(crate) fn a_commit_writes_state_and_events_together(backend: &dyn Backend) {
    let mut store = backend.connect();
    let task = create(&mut *store, "t", 2);
    let clock = Ticking::from(200.0);
    let mut other = backend.connect();
    let mut session = session(&mut *store, &clock, &task, "r");

    session.apply(&begin()).unwrap();
    session.apply(&start(0)).unwrap();
    assert_eq!(kinds(&journal(&mut *other, Some(&task))), ["task_created", "run_started", "step_started"]);
    let step = other.steps(&task, 0, 1).unwrap().remove(0);
    assert_eq!(step.state, StepState { status: StepStatus::Running, attempts: 1, ..StepState::default() });
    let row = other.task(&task).unwrap().unwrap();
    assert_eq!((row.status, row.created_at, row.updated_at), (TaskStatus::Running, at(100.0), at(202.0)));

    session.finish(0, "echo", object(json!({ "value": 7 }))).unwrap();
    assert_eq!(kinds(&journal(&mut *other, Some(&task))).last(), Some(&"step_finished"));
    let step = other.steps(&task, 0, 1).unwrap().remove(0);
    assert_eq!((step.state.status, step.state.attempts, step.has_output), (StepStatus::Done, 1, true));
    assert_eq!(other.load(&task).unwrap(), Some(session.state()));
}

pub(crate) fn a_commit_on_other_rows_is_a_conflict_and_changes_nothing(backend: &dyn Backend) {
    let mut store = backend.connect();
    let task = create(&mut *store, "t", 3);
    let clock = Ticking::from(200.0);
    {
        let mut session = session(&mut *store, &clock, &task, "r");
        session.apply(&begin()).unwrap();
        run_steps(&mut session, 1);
        session.apply(&start(1)).unwrap();
    }
    let lease = store.acquire(&task, &run("r2")).unwrap();
    let now = store.load(&task).unwrap().unwrap();
    let before = everything(&mut *store);

    let pending = StepState::default();
    let with = |current| TaskState { current, ..now };
    let cases = [
        ("the step's status", with(pending), started(1, 1)),
        ("the step's attempts", with(StepState { attempts: 2, ..now.current }), finished(1)),
        ("the step's forgiven", with(StepState { forgiven: 1, ..now.current }), finished(1)),
        ("a step that is done", TaskState { cursor: 0, current: pending, ..now }, started(0, 1)),
        ("a step that is not there", TaskState { cursor: 3, steps: 4, current: pending, ..now }, started(3, 1)),
        (
            "the task's status",
            TaskState { status: TaskStatus::Pending, cursor: 2, current: pending, ..now },
            started(2, 1),
        ),
    ];
    for (what, believed, event) in cases {
        assert_eq!(refusal(&mut *store, &lease, believed, vec![event]), ErrorKind::Conflict, "{what}");
        assert_eq!(everything(&mut *store), before, "{what}");
    }
    // And the same handle goes on with what is true.
    let commit = Commit::new(lease.fence().clone(), at(1.0), now, vec![finished(1)], Some("{}".to_owned())).unwrap();
    store.commit(&commit).unwrap();
    assert_eq!(store.load(&task).unwrap(), Some(commit.next()));
}

pub(crate) fn a_commit_whose_second_step_differs_changes_nothing_of_the_first(backend: &dyn Backend) {
    let mut store = backend.connect();
    let task = create(&mut *store, "t", 1);
    let lease = store.acquire(&task, &run("r")).unwrap();
    let before = everything(&mut *store);
    // Two steps are believed in, one is there: the first half of the commit could go through.
    let events = vec![started(0, 1), finished(0), started(1, 1)];
    assert_eq!(refusal(&mut *store, &lease, TaskState::created(2), events), ErrorKind::Conflict);
    assert_eq!(everything(&mut *store), before);
}

pub(crate) fn a_task_is_not_done_while_a_row_is_open(backend: &dyn Backend) {
    let mut store = backend.connect();
    let task = create(&mut *store, "t", 2);
    let lease = store.acquire(&task, &run("r")).unwrap();
    let before = everything(&mut *store);
    let believed = TaskState { cursor: 2, ..TaskState::created(2) };
    assert_eq!(refusal(&mut *store, &lease, believed, vec![Event::TaskDone]), ErrorKind::Conflict);
    assert_eq!(everything(&mut *store), before);
}

pub(crate) fn a_command_that_is_refused_stores_nothing(backend: &dyn Backend) {
    let mut store = backend.connect();
    let task = create(&mut *store, "t", 2);
    let before = everything(&mut *store);
    let clock = Ticking::from(0.0);
    let mut session = session(&mut *store, &clock, &task, "r");
    for (command, why) in [
        (start(1), Refused::NotNext { at: Some(1), due: Some(0) }),
        (Command::Complete, Refused::StepsLeft(0)),
        (Command::Retry, Refused::NotFailed(TaskStatus::Pending)),
    ] {
        match session.apply(&command).unwrap_err() {
            SessionError::Refused(refused) => assert_eq!(refused, why),
            SessionError::Store(error) => panic!("{error}"),
        }
    }
    assert_eq!(session.state(), TaskState::created(2));
    drop(session);
    assert_eq!(everything(&mut *store), before);
}

/// A killed process is, for the storage, a handle that goes away between two commits.
pub(crate) fn a_session_that_is_dropped_in_a_step_leaves_the_step_running_for_the_next(backend: &dyn Backend) {
    let mut store = backend.connect();
    let task = create(&mut *store, "t", 3);
    let clock = Ticking::from(0.0);
    {
        let mut session = session(&mut *store, &clock, &task, "killed");
        session.apply(&begin()).unwrap();
        run_steps(&mut session, 1);
        session.apply(&start(1)).unwrap();
    }
    drop(store);

    let mut store = backend.connect();
    assert_eq!(store.load(&task).unwrap().unwrap().running(), Some(1));
    assert_eq!(store.output(&task, 0).unwrap(), Some(object(json!({ "value": 0 }))));
    // Recovery that does not get to commit is made again, and once it has committed it is over.
    for _ in 0..3 {
        drop(session(&mut *store, &clock, &task, "killed before its first commit"));
        assert_eq!(store.load(&task).unwrap().unwrap().running(), Some(1));
    }
    let mut session = session(&mut *store, &clock, &task, "next");
    assert_eq!(run_to_end(&mut session), [1]);
    drop(session);
    let attempts: Vec<u32> = store.steps(&task, 0, 9).unwrap().iter().map(|step| step.state.attempts).collect();
    assert_eq!(attempts, [1, 2, 1]);
    assert_eq!(store::audit::audit(&mut *store, None).unwrap(), []);
}

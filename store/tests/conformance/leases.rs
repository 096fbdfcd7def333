//! One run at a time for each task.

use std::sync::Barrier;
use std::thread;

use store::machine::{Command, Refused};
use store::model::{StepStatus, TaskId, TaskStatus};
use store::{ErrorKind, SessionError, TaskSession};

use crate::support::{
    Backend, Ticking, begin, create, everything, fail_at_once, id, journal, kinds, run, run_steps, session, start,
    store_kind,
};

/// A refused second runner had once "recovered" the running step of the first, since recovery came before the lock.
pub(crate) fn a_second_lease_is_held_and_changes_nothing(backend: &dyn Backend) {
    let (mut store, mut other) = (backend.connect(), backend.connect());
    let task = create(&mut *store, "t", 2);
    let clock = Ticking::from(0.0);
    let mut session = session(&mut *store, &clock, &task, "first");
    session.apply(&begin()).unwrap();
    session.apply(&start(0)).unwrap();
    let before = everything(&mut *other);

    for _ in 0..3 {
        let error = other.acquire(&task, &run("second")).unwrap_err();
        assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::Held, true));
        let error = TaskSession::open(&mut *other, &Ticking::from(0.0), &task, &run("second")).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Held);
    }
    assert_eq!(everything(&mut *other), before);
    // The holder is not fenced off by those who were refused.
    session.finish(0, "echo", serde_json::Map::new()).unwrap();
    run_steps(&mut session, 1);
}

pub(crate) fn a_lease_is_held_against_other_threads_too(backend: &dyn Backend) {
    let mut store = backend.connect();
    let task = create(&mut *store, "t", 1);
    let lease = store.acquire(&task, &run("first")).unwrap();
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let error = backend.connect().acquire(&task, &run("second")).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Held);
            });
        }
    });
    drop(lease);
    let moved = store.acquire(&task, &run("third")).unwrap();
    thread::scope(|scope| {
        scope.spawn(move || drop(moved));
    });
    store.acquire(&task, &run("fourth")).unwrap();
}

pub(crate) fn dropping_a_lease_gives_it_back(backend: &dyn Backend) {
    let (mut store, mut other) = (backend.connect(), backend.connect());
    let task = create(&mut *store, "t", 1);
    for _ in 0..3 {
        let lease = store.acquire(&task, &run("r")).unwrap();
        assert_eq!((lease.task(), lease.run()), (&task, &run("r")));
        assert_eq!(other.acquire(&task, &run("s")).unwrap_err().kind(), ErrorKind::Held);
        drop(lease);
        drop(other.acquire(&task, &run("s")).unwrap());
    }
    // The lease outlives neither a session nor a command that was refused in it.
    let clock = Ticking::from(0.0);
    let mut refused = session(&mut *store, &clock, &task, "r");
    refused.apply(&Command::Retry).unwrap_err();
    drop(refused);
    other.acquire(&task, &run("s")).unwrap();
}

pub(crate) fn leases_of_two_tasks_do_not_meet(backend: &dyn Backend) {
    let (mut store, mut other) = (backend.connect(), backend.connect());
    let (one, two) = (create(&mut *store, "one", 1), create(&mut *store, "two", 1));
    let _one = store.acquire(&one, &run("r")).unwrap();
    let _two = other.acquire(&two, &run("r")).unwrap();
    assert_eq!(store.acquire(&two, &run("r")).unwrap_err().kind(), ErrorKind::Held);
}

pub(crate) fn an_unknown_task_has_no_lease(backend: &dyn Backend) {
    let mut store = backend.connect();
    create(&mut *store, "t", 1);
    let before = everything(&mut *store);
    for _ in 0..2 {
        assert_eq!(store.acquire(&id("unknown"), &run("r")).unwrap_err().kind(), ErrorKind::NoTask);
    }
    assert_eq!(everything(&mut *store), before);
    // The refusal leaves nothing behind that would stand in the way of a task of that name.
    let task = create(&mut *store, "unknown", 1);
    store.acquire(&task, &run("r")).unwrap();
}

pub(crate) fn a_session_of_an_unknown_task_is_missing(backend: &dyn Backend) {
    let mut store = backend.connect();
    let clock = Ticking::from(0.0);
    let error = TaskSession::open(&mut *store, &clock, &id("unknown"), &run("r")).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::NoTask);
}

pub(crate) fn eight_retries_at_once_give_one_fresh_budget(backend: &dyn Backend) {
    const RETRIES: usize = 8;
    let mut store = backend.connect();
    let task = create(&mut *store, "t", 1);
    let clock = Ticking::from(0.0);
    fail_at_once(&mut session(&mut *store, &clock, &task, "r"));

    let gate = Barrier::new(RETRIES);
    let retry = || {
        let mut store = backend.connect();
        gate.wait();
        retry_once(&mut *store, &task)
    };
    let won: Vec<bool> = thread::scope(|scope| {
        let threads: Vec<_> = (0..RETRIES).map(|_| scope.spawn(retry)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(won.iter().filter(|won| **won).count(), 1);
    let entries = journal(&mut *store, Some(&task));
    assert_eq!(kinds(&entries).iter().filter(|kind| **kind == "task_retried").count(), 1);

    // Fresh is one attempt here, and not one more.
    let mut session = session(&mut *store, &clock, &task, "after");
    assert_eq!((session.state().status, session.state().current.forgiven), (TaskStatus::Pending, 1));
    fail_at_once(&mut session);
    assert_eq!((session.state().current.status, session.state().current.attempts), (StepStatus::Failed, 2));
    drop(session);
    assert_eq!(store::audit::audit(&mut *store, None).unwrap(), []);
}

/// True for the winner; a loser is told that somebody is at it, or that there is nothing to retry any more.
fn retry_once(store: &mut dyn store::Store, task: &TaskId) -> bool {
    let clock = Ticking::from(0.0);
    let mut session = match TaskSession::open(store, &clock, task, &run("retry")) {
        Ok(session) => session,
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::Held);
            return false;
        }
    };
    match session.apply(&Command::Retry) {
        Ok(_) => true,
        Err(SessionError::Refused(refused)) => {
            assert_eq!(refused, Refused::NotFailed(TaskStatus::Pending));
            false
        }
        Err(error) => panic!("{:?}", store_kind(error)),
    }
}

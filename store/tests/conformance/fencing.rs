//! Old leases are refused, whatever their holder believes.

use store::model::Event;
use store::model::Terms;
use store::{Commit, ErrorKind, FencingToken, Lease};

use crate::support::{Backend, Ticking, at, begin, create, everything, run, session, stale, start};

pub(crate) fn each_lease_has_a_higher_token(backend: &dyn Backend) {
    let mut store = backend.connect();
    let task = create(&mut *store, "t", 1);
    let mut tokens = Vec::new();
    for _ in 0..3 {
        tokens.push(store.acquire(&task, &run("r")).unwrap().fence().token);
        tokens.push(backend.connect().acquire(&task, &run("r")).unwrap().fence().token);
    }
    assert!(tokens.is_sorted_by(|one, two| one < two), "{tokens:?}");
}

pub(crate) fn a_commit_under_an_old_token_is_fenced_and_changes_nothing(backend: &dyn Backend) {
    let mut store = backend.connect();
    let task = create(&mut *store, "t", 2);
    let old = store.acquire(&task, &run("old")).unwrap().fence().token;
    let clock = Ticking::from(0.0);
    {
        let mut session = session(&mut *store, &clock, &task, "new");
        session.apply(&begin()).unwrap();
    }
    let before = everything(&mut *store);
    let state = store.load(&task).unwrap().unwrap();
    let newest = store.acquire(&task, &run("newest")).unwrap();

    // The rows are just as the old run believes; only its token is not.
    let future = FencingToken(newest.fence().token.0 + 1);
    for token in [old, FencingToken(0), FencingToken(-1), future] {
        for event in [
            Event::StepStarted { step: 0, tool: "echo".to_owned(), attempt: 1, intent: None },
            Event::RunStarted { recovered: Vec::new(), terms: Terms::limit(3) },
        ] {
            let commit = Commit::new(stale(&task, token), at(1.0), state, vec![event], None).unwrap();
            assert_eq!(store.commit(&commit).unwrap_err().kind(), ErrorKind::Fenced, "{token:?}");
            assert_eq!(everything(&mut *store), before);
        }
    }
    drop(newest);
    session(&mut *store, &clock, &task, "last").apply(&start(0)).unwrap();
}

pub(crate) fn tokens_of_two_tasks_count_apart(backend: &dyn Backend) {
    let mut store = backend.connect();
    let (one, two) = (create(&mut *store, "one", 1), create(&mut *store, "two", 1));
    let lease = store.acquire(&one, &run("r")).unwrap();
    let state = store.load(&two).unwrap().unwrap();
    let before = everything(&mut *store);
    let forged = stale(&two, lease.fence().token);
    let event = Event::StepStarted { step: 0, tool: "echo".to_owned(), attempt: 1, intent: None };
    let commit = Commit::new(forged, at(1.0), state, vec![event], None).unwrap();
    assert_eq!(store.commit(&commit).unwrap_err().kind(), ErrorKind::Fenced);
    assert_eq!(everything(&mut *store), before);
}

pub(crate) fn a_lease_can_be_renewed_until_it_is_lost(backend: &dyn Backend) {
    let mut store = backend.connect();
    let task = create(&mut *store, "t", 1);
    let lease = store.acquire(&task, &run("old")).unwrap();
    store.renew(&lease).unwrap();
    let fence = lease.fence().clone();
    store.release(lease).unwrap();
    let newer = backend.connect().acquire(&task, &run("new")).unwrap();
    let before = everything(&mut *store);
    let lost = Lease::new(fence, Box::new(()));
    assert_eq!(store.renew(&lost).unwrap_err().kind(), ErrorKind::Fenced);
    store.renew(&newer).unwrap();
    assert_eq!(everything(&mut *store), before);
}

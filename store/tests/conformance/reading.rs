//! Reading back.

use serde_json::json;
use store::audit::audit;
use store::machine::Command;
use store::model::Failure;

use crate::support::{
    Backend, Ticking, begin, create, creation, everything, id, journal, object, plan, run_steps, run_to_end, session,
    start,
};

pub(crate) fn an_empty_storage_has_nothing_and_says_so(backend: &dyn Backend) {
    let mut store = backend.connect();
    let task = id("t");
    assert!(store.tasks().unwrap().is_empty());
    assert_eq!(store.load(&task).unwrap(), None);
    assert_eq!(store.journal(None, 0, 10).unwrap(), []);
    assert_eq!(store.integrity().unwrap(), Vec::<String>::new());
    assert_eq!(audit(&mut *store, None).unwrap(), []);
}

pub(crate) fn an_unknown_task_is_none_and_no_error(backend: &dyn Backend) {
    let mut store = backend.connect();
    create(&mut *store, "t", 1);
    let unknown = id("T");
    assert_eq!(store.task(&unknown).unwrap(), None);
    assert_eq!(store.load(&unknown).unwrap(), None);
    assert_eq!(store.steps(&unknown, 0, 10).unwrap(), []);
    assert_eq!(store.output(&unknown, 0).unwrap(), None);
    assert_eq!(store.journal(Some(&unknown), 0, 10).unwrap(), []);
    assert_eq!(audit(&mut *store, Some(&unknown)).unwrap_err().kind(), store::ErrorKind::NoTask);
}

pub(crate) fn tasks_come_oldest_first(backend: &dyn Backend) {
    let mut store = backend.connect();
    for (name, at) in [("b", 300.0), ("c", 100.0), ("a", 200.0)] {
        store.commit(&creation(&id(name), plan(1), "r", at)).unwrap();
    }
    let names: Vec<String> = store.tasks().unwrap().into_iter().map(|row| row.unwrap().id.to_string()).collect();
    assert_eq!(names, ["c", "a", "b"]);
}

pub(crate) fn steps_come_in_pages(backend: &dyn Backend) {
    let mut store = backend.connect();
    let task = create(&mut *store, "t", 7);
    create(&mut *store, "other", 9);
    let mut page = |from, limit| -> Vec<u32> {
        store.steps(&task, from, limit).unwrap().into_iter().map(|step| step.idx).collect()
    };
    assert_eq!(page(0, 3), [0, 1, 2]);
    assert_eq!(page(3, 3), [3, 4, 5]);
    assert_eq!(page(6, 3), [6]);
    assert_eq!(page(7, 3), [0; 0]);
    assert_eq!(page(u32::MAX, 3), [0; 0]);
    assert_eq!(page(0, 0), [0; 0]);
}

pub(crate) fn an_output_is_readable_when_its_step_is_done_and_not_before(backend: &dyn Backend) {
    let mut store = backend.connect();
    let task = create(&mut *store, "t", 2);
    let clock = Ticking::from(0.0);
    let mut other = backend.connect();
    assert_eq!(other.output(&task, 0).unwrap(), None);

    let mut session = session(&mut *store, &clock, &task, "r");
    session.apply(&begin()).unwrap();
    session.apply(&start(0)).unwrap();
    assert_eq!(other.output(&task, 0).unwrap(), None);
    assert!(!other.steps(&task, 0, 1).unwrap()[0].has_output);

    let output = object(json!({ "text": "日本\u{1F600}\n\"", "empty": {} }));
    session.finish(0, "echo", output.clone()).unwrap();
    assert_eq!(session.reader().output(&task, 0).unwrap(), Some(output.clone()));
    assert_eq!(other.output(&task, 0).unwrap(), Some(output.clone()));
    assert!(other.steps(&task, 0, 1).unwrap()[0].has_output);

    // What comes later does not touch it: an error in the next step, and the end of the session.
    session.apply(&start(1)).unwrap();
    session.apply(&Command::Fail { step: 1, failure: Failure::plain("no"), goes_on: false }).unwrap();
    drop(session);
    assert_eq!(other.output(&task, 0).unwrap(), Some(output));
    assert_eq!(other.output(&task, 1).unwrap(), None);
    assert_eq!(other.output(&task, 2).unwrap(), None, "a step past the plan");
}

/// Recovery of one task once set the running steps of every other back as well.
pub(crate) fn two_tasks_do_not_touch_each_other(backend: &dyn Backend) {
    let mut store = backend.connect();
    let (one, two) = (create(&mut *store, "one", 3), create(&mut *store, "two", 3));
    let clock = Ticking::from(0.0);
    for task in [&one, &two] {
        let mut session = session(&mut *store, &clock, task, "killed");
        session.apply(&begin()).unwrap();
        run_steps(&mut session, 1);
        session.apply(&start(1)).unwrap();
    }
    let state = store.load(&two).unwrap();
    let rows = (store.task(&two).unwrap(), store.steps(&two, 0, 9).unwrap(), journal(&mut *store, Some(&two)));

    assert_eq!(run_to_end(&mut session(&mut *store, &clock, &one, "next")), [1]);
    assert_eq!(store.load(&two).unwrap(), state);
    assert_eq!(rows, (store.task(&two).unwrap(), store.steps(&two, 0, 9).unwrap(), journal(&mut *store, Some(&two))));
    assert_eq!(run_to_end(&mut session(&mut *store, &clock, &two, "next")), [1]);
    assert_eq!(audit(&mut *store, None).unwrap(), []);
}

pub(crate) fn what_one_handle_commits_another_reads(backend: &dyn Backend) {
    let (mut writer, mut reader) = (backend.connect(), backend.connect());
    assert_eq!(everything(&mut *reader), everything(&mut *writer));
    let task = create(&mut *writer, "t", 2);
    assert_eq!(everything(&mut *reader), everything(&mut *writer));
    let clock = Ticking::from(0.0);
    let mut session = session(&mut *writer, &clock, &task, "r");
    session.apply(&begin()).unwrap();
    for _ in 0..2 {
        run_steps(&mut session, 1);
        assert_eq!(reader.load(&task).unwrap(), Some(session.state()));
    }
}

pub(crate) fn a_snapshot_does_not_move(backend: &dyn Backend) {
    let (mut writer, mut reader) = (backend.connect(), backend.connect());
    let task = create(&mut *writer, "t", 2);
    let clock = Ticking::from(0.0);
    let mut session = session(&mut *writer, &clock, &task, "r");
    session.apply(&begin()).unwrap();
    reader
        .snapshot(&mut |snapshot| {
            let before = everything(snapshot);
            run_steps(&mut session, 1);
            assert_eq!(everything(snapshot), before);
            Ok(())
        })
        .unwrap();
    assert_eq!(reader.load(&task).unwrap(), Some(session.state()));
    // It is over with the call also where the call fails.
    let stop = || store::StoreError::new(store::ErrorKind::Io, "stop");
    assert!(reader.snapshot(&mut |_| Err(stop())).is_err());
    run_steps(&mut session, 1);
    assert_eq!(reader.load(&task).unwrap(), Some(session.state()));
}

pub(crate) fn a_sound_storage_has_no_findings(backend: &dyn Backend) {
    let mut store = backend.connect();
    let clock = Ticking::from(0.0);
    create(&mut *store, "untouched", 2);
    for (name, steps) in [("short", 1), ("long", 300)] {
        let task = create(&mut *store, name, steps);
        run_to_end(&mut session(&mut *store, &clock, &task, "r"));
    }
    assert_eq!(store.integrity().unwrap(), Vec::<String>::new());
    assert_eq!(audit(&mut *store, None).unwrap(), []);
    assert_eq!(audit(&mut *store, Some(&id("long"))).unwrap(), []);
}

//! The journal's order, times and pages.

use store::machine::Command;
use store::model::JournalEntry;

use crate::support::{Backend, Ticking, create, fail_at_once, journal, kinds, run, run_to_end, session};

const WHOLE_RUN: [&str; 9] = [
    "task_created",
    "run_started",
    "step_started",
    "step_finished",
    "step_started",
    "step_finished",
    "step_started",
    "step_finished",
    "task_done",
];

pub(crate) fn the_journal_has_the_order_and_times_of_the_commits(backend: &dyn Backend) {
    let mut store = backend.connect();
    let task = create(&mut *store, "t", 3);
    let clock = Ticking::from(200.0);
    run_to_end(&mut session(&mut *store, &clock, &task, "r"));

    let entries = journal(&mut *store, Some(&task));
    assert_eq!(kinds(&entries), WHOLE_RUN);
    assert!(entries.is_sorted_by(|one, two| one.seq < two.seq));
    assert!(entries[0].seq > 0, "`after: 0` means from the start");
    let times: Vec<f64> = entries.iter().map(|entry| entry.ts.as_seconds()).collect();
    assert_eq!(times, [100.0, 201.0, 202.0, 203.0, 204.0, 205.0, 206.0, 207.0, 208.0]);
    let steps: Vec<Option<u32>> = entries.iter().map(|entry| entry.step).collect();
    assert_eq!(steps, [None, None, Some(0), Some(0), Some(1), Some(1), Some(2), Some(2), None]);
    assert_eq!(store.task(&task).unwrap().unwrap().updated_at.as_seconds(), 208.0);
}

fn pages(mut page: impl FnMut(i64) -> Vec<JournalEntry>) -> Vec<Vec<JournalEntry>> {
    let mut after = 0;
    let mut pages = Vec::new();
    loop {
        let found = page(after);
        let Some(last) = found.last() else { return pages };
        after = last.seq;
        pages.push(found);
    }
}

pub(crate) fn the_journal_of_one_task_comes_in_pages(backend: &dyn Backend) {
    let mut store = backend.connect();
    let (task, other) = (create(&mut *store, "t", 3), create(&mut *store, "other", 1));
    let clock = Ticking::from(0.0);
    run_to_end(&mut session(&mut *store, &clock, &other, "r"));
    run_to_end(&mut session(&mut *store, &clock, &task, "r"));

    let whole = journal(&mut *store, Some(&task));
    assert!(whole.iter().all(|entry| entry.task == task));
    let found = pages(|after| store.journal(Some(&task), after, 4).unwrap());
    assert_eq!(found.iter().map(Vec::len).collect::<Vec<_>>(), [4, 4, 1]);
    assert_eq!(found.concat(), whole);
    assert_eq!(store.journal(Some(&task), i64::MAX, 4).unwrap(), []);
    assert_eq!(store.journal(Some(&task), 0, 0).unwrap(), []);
}

pub(crate) fn the_journal_of_all_tasks_comes_in_pages(backend: &dyn Backend) {
    let mut store = backend.connect();
    let clock = Ticking::from(0.0);
    let tasks = [create(&mut *store, "one", 3), create(&mut *store, "two", 3)];
    for task in &tasks {
        run_to_end(&mut session(&mut *store, &clock, task, "r"));
    }
    let whole = journal(&mut *store, None);
    assert_eq!(whole.len(), 2 * WHOLE_RUN.len());
    assert!(whole.is_sorted_by(|one, two| one.seq < two.seq));
    assert_eq!(pages(|after| store.journal(None, after, 5).unwrap()).concat(), whole);
    for task in &tasks {
        let own: Vec<_> = whole.iter().filter(|entry| entry.task == *task).cloned().collect();
        assert_eq!(journal(&mut *store, Some(task)), own);
    }
}

pub(crate) fn every_event_carries_the_run_that_wrote_it(backend: &dyn Backend) {
    let mut store = backend.connect();
    let task = create(&mut *store, "t", 1);
    let clock = Ticking::from(0.0);
    fail_at_once(&mut session(&mut *store, &clock, &task, "one"));
    session(&mut *store, &clock, &task, "two").apply(&Command::Retry).unwrap();
    run_to_end(&mut session(&mut *store, &clock, &task, "three"));

    let entries = journal(&mut *store, None);
    let mut runs: Vec<_> = entries.iter().map(|entry| entry.run.clone()).collect();
    runs.dedup();
    assert_eq!(runs, ["maker", "one", "two", "three"].map(run));
    let retried = entries.iter().find(|entry| entry.kind == "task_retried").unwrap();
    assert_eq!((retried.step, retried.data["forgiven"].as_u64()), (Some(0), Some(1)));
    let begun: Vec<_> = entries.iter().filter(|entry| entry.kind == "run_started").collect();
    assert_eq!(begun.iter().map(|entry| entry.data["max_attempts"].as_u64()).collect::<Vec<_>>(), [Some(1), Some(3)]);
}

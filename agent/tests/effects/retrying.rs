//! Errors that pass, errors that do not, and what the task does about them.

use std::sync::Mutex;
use std::time::Duration;

use agent::{Exit, run_with};
use rstest::rstest;
use serde_json::json;
use store::model::{Event, JournalEntry, RunId, StepStatus, TaskId, TaskState, TaskStatus};
use store::sqlite::SqliteStore;
use store::{Commit, ErrorKind, Lease, Question, Reader, StepRow, Store, StoreError, TaskRow};

use crate::lab::{Act, Lab, TASK};

/// `Retry-After` of an hour was held in memory and lost at a restart.
#[test]
fn a_time_to_wait_for_survives_the_process_and_is_not_cut_short() {
    let lab = Lab::of("keyed", [Act::Transient(Some(Duration::from_secs(3600)))]);
    assert_eq!(lab.run(), Exit::NotDue);
    let before = lab.kinds();
    assert_eq!(before, ["run_started", "step_started", "step_error"]);
    assert_eq!(lab.run(), Exit::NotDue);
    assert_eq!(lab.kinds(), before, "a run that comes too early writes nothing");
    let state = lab.reader().load(&TaskId::new(TASK).unwrap()).unwrap().unwrap();
    assert_eq!((state.status, state.current.status), (TaskStatus::Waiting, StepStatus::Waiting));
    let due = lab.last("step_error")["retry_at"].as_f64().unwrap();
    assert_eq!(state.current.due().unwrap().as_seconds(), due);
    assert_eq!(lab.effects(), 0);
    lab.is_sound();
}

#[test]
fn a_run_waits_until_it_is_due_and_goes_on() {
    let lab = Lab::of("keyed", [Act::Transient(Some(Duration::from_millis(60))), Act::Done]);
    assert_eq!(lab.run(), Exit::NotDue);
    assert_eq!(lab.run_and_wait(), Exit::Done);
    assert_eq!(
        lab.kinds(),
        ["run_started", "step_started", "step_error", "run_started", "step_started", "step_finished", "task_done"]
    );
    let lab = Lab::of("nap", []);
    assert_eq!((lab.run_and_wait(), lab.effects()), (Exit::Done, 1));
    assert_eq!(lab.kinds()[..3], ["run_started", "step_waiting", "step_started"]);
    lab.is_sound();
}

#[test]
fn a_plan_says_how_it_is_tried_again() {
    let retry = json!({ "retry": { "max_attempts": 2, "backoff": "10ms", "max_backoff": "20ms" } });
    let lab = Lab::new(&[("keyed", retry)], [Act::Step, Act::Step, Act::Done]);
    assert_eq!(lab.run_and_wait(), Exit::TaskFailed);
    let errors: Vec<_> = lab.events().into_iter().filter(|(kind, _)| kind == "step_error").collect();
    assert!(errors[0].1["retry_at"].is_f64() && errors[1].1["retry_at"].is_null(), "{errors:?}");
    let lab = Lab::of("keyed", [Act::Step, Act::Step, Act::Done]);
    assert_eq!(lab.run(), Exit::Done, "the plain rule: at once");
    lab.is_sound();
}

#[test]
fn the_task_goes_on_without_a_step_where_its_plan_says_so() {
    let goes_on = json!({ "on_error": "continue" });
    let steps = [("pure", goes_on.clone()), ("pure", goes_on), ("summarize", json!({}))];
    let lab = Lab::new(&steps, [Act::Permanent, Act::Step, Act::Step, Act::Step]);
    assert_eq!(lab.run(), Exit::TaskFailed, "its third step takes nothing that there is");
    let failed: Vec<_> = lab.events().into_iter().filter(|(kind, _)| kind == "step_failed").collect();
    assert_eq!(failed[0].1, json!({ "reason": "permanent" }));
    assert_eq!(failed[1].1, json!({ "reason": "max_attempts" }));
    lab.is_sound();
}

#[test]
fn a_checkpoint_is_handed_to_the_next_attempt() {
    let (three, large) = (json!({ "page": 3 }), json!("x".repeat(70_000)));
    let lab = Lab::of("once", [Act::Checkpoint(three.clone()), Act::Checkpoint(large), Act::Done]);
    assert_eq!(lab.run(), Exit::TaskFailed, "what is too large is an error for good");
    let told = lab.seen.lock().unwrap().attempts.clone();
    assert_eq!((&told[0]["checkpoint"], &told[1]["checkpoint"]), (&json!(null), &three));
    assert_eq!(lab.last("step_checkpoint"), json!({ "checkpoint": three }));
    assert!(lab.last("step_error")["error"].as_str().unwrap().contains("at most 65536 are kept"));
    lab.is_sound();
}

/// A store that fails the first commits of an end, as a disk without room does.
struct Failing {
    inner: SqliteStore,
    left: &'static Mutex<u32>,
    kind: ErrorKind,
}

impl Reader for Failing {
    fn snapshot(&mut self, read: &mut dyn FnMut(&mut dyn Reader) -> Result<(), StoreError>) -> Result<(), StoreError> {
        self.inner.snapshot(read)
    }

    fn tasks(&mut self) -> Result<Vec<Result<TaskRow, StoreError>>, StoreError> {
        self.inner.tasks()
    }

    fn task(&mut self, task: &TaskId) -> Result<Option<TaskRow>, StoreError> {
        self.inner.task(task)
    }

    fn source(&mut self, task: &TaskId) -> Result<Option<String>, StoreError> {
        self.inner.source(task)
    }

    fn questions(&mut self) -> Result<Vec<Result<Question, StoreError>>, StoreError> {
        self.inner.questions()
    }

    fn load(&mut self, task: &TaskId) -> Result<Option<TaskState>, StoreError> {
        self.inner.load(task)
    }

    fn steps(&mut self, task: &TaskId, from: u32, limit: u32) -> Result<Vec<StepRow>, StoreError> {
        self.inner.steps(task, from, limit)
    }

    fn output(
        &mut self,
        task: &TaskId,
        step: u32,
    ) -> Result<Option<serde_json::Map<String, serde_json::Value>>, StoreError> {
        self.inner.output(task, step)
    }

    fn completion(&mut self, task: &TaskId) -> Result<Option<serde_json::Map<String, serde_json::Value>>, StoreError> {
        self.inner.completion(task)
    }

    fn journal(&mut self, task: Option<&TaskId>, after: i64, limit: u32) -> Result<Vec<JournalEntry>, StoreError> {
        self.inner.journal(task, after, limit)
    }

    fn integrity(&mut self) -> Result<Vec<String>, StoreError> {
        self.inner.integrity()
    }
}

impl Store for Failing {
    fn acquire(&mut self, task: &TaskId, run: &RunId) -> Result<Lease, StoreError> {
        self.inner.acquire(task, run)
    }

    fn reserve(&mut self, task: &TaskId, run: &RunId) -> Result<Lease, StoreError> {
        self.inner.reserve(task, run)
    }

    fn renew(&mut self, lease: &Lease) -> Result<(), StoreError> {
        self.inner.renew(lease)
    }

    fn release(&mut self, lease: Lease) -> Result<(), StoreError> {
        self.inner.release(lease)
    }

    fn commit(&mut self, commit: &Commit) -> Result<(), StoreError> {
        let mut left = self.left.lock().unwrap();
        let ends = commit.events().iter().any(|event| matches!(event, Event::StepFinished { .. }));
        if ends && *left > 0 {
            *left -= 1;
            return Err(StoreError::new(self.kind, "no room"));
        }
        self.inner.commit(commit)
    }
}

/// Its effect was done, its commit failed, and its effect was repeated.
#[rstest]
#[case(ErrorKind::Full, 3, Some(Exit::Done), "step_finished")]
#[case(ErrorKind::Busy, 2, Some(Exit::Done), "step_finished")]
// It stays without room. Whether the effect is to be had again is then not the agent's to say.
#[case(ErrorKind::Full, 99, None, "step_in_doubt")]
#[case(ErrorKind::Io, 1, None, "step_started")]
fn a_commit_that_fails_after_the_effect_is_repeated_and_the_effect_is_not(
    #[case] kind: ErrorKind,
    #[case] failures: u32,
    #[case] exit: Option<Exit>,
    #[case] last: &str,
) {
    let left: &'static Mutex<u32> = Box::leak(Box::new(Mutex::new(failures)));
    let lab = Lab::of("once", []);
    let store = |inner| -> Box<dyn Store> { Box::new(Failing { inner, left, kind }) };
    let ran = lab.with(true, &store, |config, parts| run_with(&lab.db(), TASK, config, parts));
    assert_eq!(ran.ok(), exit);
    assert_eq!(lab.effects(), 1);
    assert!(lab.kinds().contains(&last.to_owned()), "{:?}", lab.kinds());
    let again = lab.run();
    assert_eq!(again, exit.unwrap_or(Exit::Person), "and no later run has it again");
    assert_eq!(lab.effects(), 1);
    lab.is_sound();
}

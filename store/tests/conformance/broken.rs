//! Backends with one planted fault each, and the check that must reject it.

use std::panic::{AssertUnwindSafe, catch_unwind};

use rstest::rstest;
use serde_json::{Map, Value};
use store::model::{JournalEntry, RunId, StepStatus, TaskId, TaskState};
use store::{Commit, ErrorKind, Fence, FencingToken, Lease, Question, Reader, StepRow, Store, StoreError, TaskRow};

use crate::sqlite::Sqlite;
use crate::support::Backend;
use crate::{atomicity, creating, fencing, journal, leases, reading, waiting};

#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    /// Everybody gets the lease.
    NoLock,
    /// The lease never comes back.
    LockKept,
    /// Commits under any token.
    NoFence,
    /// Says that it stored what it did not store.
    LostCommit,
    /// Commits on whatever rows are there, after making them fit.
    LastWriterWins,
    /// Says that a second task of the same id was stored.
    QuietDuplicate,
    /// Gives the journal of every task where that of one is asked for.
    MixedJournal,
    /// Ignores where a page begins.
    SamePage,
    /// Orders tasks by name.
    ByName,
    /// Shows outputs of steps that are not done.
    EarlyOutput,
    /// Forgets what is to be done at the end.
    NoCompletion,
    /// Who creates a task does not hold it.
    CreatorWithoutLock,
    /// Puts off the end of a lease that another run has.
    RenewsTheLost,
    /// Lets what is committed meanwhile show in a snapshot.
    NoSnapshot,
    /// Keeps due times in memory, and so not at all.
    ForgetsTheWait,
    /// Forgets that an earlier attempt may have had its effect.
    ForgetsTheDoubt,
    /// Takes the step that a task was left with for the one that failed it.
    StopsAtFailures,
    /// Lists what waits for a time too.
    ListsEveryWait,
    /// Keeps no more of a plan than goal and steps.
    NoOrigin,
}

struct Broken(Sqlite, Fault);

impl Backend for Broken {
    fn connect(&self) -> Box<dyn Store> {
        Box::new(BrokenStore { inner: self.0.connect(), fault: self.1, leases: 0 })
    }
}

struct BrokenStore {
    inner: Box<dyn Store>,
    fault: Fault,
    leases: i64,
}

impl Reader for BrokenStore {
    fn snapshot(&mut self, read: &mut dyn FnMut(&mut dyn Reader) -> Result<(), StoreError>) -> Result<(), StoreError> {
        if self.fault == Fault::NoSnapshot { read(self) } else { self.inner.snapshot(read) }
    }

    fn tasks(&mut self) -> Result<Vec<Result<TaskRow, StoreError>>, StoreError> {
        let mut rows = self.inner.tasks()?;
        if self.fault == Fault::ByName {
            rows.sort_by_key(|row| row.as_ref().ok().map(|row| row.id.clone()));
        }
        Ok(rows)
    }

    fn task(&mut self, task: &TaskId) -> Result<Option<TaskRow>, StoreError> {
        self.inner.task(task)
    }

    fn load(&mut self, task: &TaskId) -> Result<Option<TaskState>, StoreError> {
        let Some(mut state) = self.inner.load(task)? else { return Ok(None) };
        match self.fault {
            Fault::ForgetsTheWait => state.current.wait = None,
            Fault::ForgetsTheDoubt => state.current.unknown = false,
            Fault::StopsAtFailures => {
                let rows = self.inner.steps(task, 0, u32::MAX)?;
                if let Some(failed) = rows.into_iter().find(|row| row.state.status == StepStatus::Failed) {
                    (state.cursor, state.current) = (failed.idx, failed.state);
                }
            }
            _ => {}
        }
        Ok(Some(state))
    }

    fn source(&mut self, task: &TaskId) -> Result<Option<String>, StoreError> {
        Ok(self.inner.source(task)?.filter(|_| self.fault != Fault::NoOrigin))
    }

    fn questions(&mut self) -> Result<Vec<Result<Question, StoreError>>, StoreError> {
        if self.fault != Fault::ListsEveryWait {
            return self.inner.questions();
        }
        let mut all = Vec::new();
        for task in self.inner.tasks()?.into_iter().flatten() {
            let rows = self.inner.steps(&task.id, 0, u32::MAX)?;
            let waits = [StepStatus::Waiting, StepStatus::InDoubt];
            let step = rows.into_iter().find(|row| waits.contains(&row.state.status));
            all.extend(step.map(|step| Ok(Question { task, step })));
        }
        Ok(all)
    }

    fn steps(&mut self, task: &TaskId, from: u32, limit: u32) -> Result<Vec<StepRow>, StoreError> {
        self.inner.steps(task, if self.fault == Fault::SamePage { 0 } else { from }, limit)
    }

    fn output(&mut self, task: &TaskId, step: u32) -> Result<Option<Map<String, Value>>, StoreError> {
        match self.inner.output(task, step)? {
            None if self.fault == Fault::EarlyOutput => Ok(Some(Map::new())),
            output => Ok(output),
        }
    }

    fn completion(&mut self, task: &TaskId) -> Result<Option<Map<String, Value>>, StoreError> {
        Ok(self.inner.completion(task)?.filter(|_| self.fault != Fault::NoCompletion))
    }

    fn journal(&mut self, task: Option<&TaskId>, after: i64, limit: u32) -> Result<Vec<JournalEntry>, StoreError> {
        self.inner.journal(task.filter(|_| self.fault != Fault::MixedJournal), after, limit)
    }

    fn integrity(&mut self) -> Result<Vec<String>, StoreError> {
        self.inner.integrity()
    }
}

impl Store for BrokenStore {
    fn acquire(&mut self, task: &TaskId, run: &RunId) -> Result<Lease, StoreError> {
        let lease = match self.inner.acquire(task, run) {
            Err(error) if self.fault == Fault::NoLock && error.kind() == ErrorKind::Held => {
                self.leases += 1;
                let fence = Fence { task: task.clone(), run: run.clone(), token: FencingToken(self.leases) };
                return Ok(Lease::new(fence, Box::new(())));
            }
            other => other?,
        };
        if self.fault == Fault::LockKept {
            let fence = lease.fence().clone();
            std::mem::forget(lease);
            return Ok(Lease::new(fence, Box::new(())));
        }
        Ok(lease)
    }

    fn reserve(&mut self, task: &TaskId, run: &RunId) -> Result<Lease, StoreError> {
        let lease = self.inner.reserve(task, run)?;
        if self.fault == Fault::CreatorWithoutLock {
            return Ok(Lease::new(lease.fence().clone(), Box::new(())));
        }
        Ok(lease)
    }

    fn renew(&mut self, lease: &Lease) -> Result<(), StoreError> {
        if self.fault == Fault::RenewsTheLost { Ok(()) } else { self.inner.renew(lease) }
    }

    fn release(&mut self, lease: Lease) -> Result<(), StoreError> {
        self.inner.release(lease)
    }

    fn commit(&mut self, commit: &Commit) -> Result<(), StoreError> {
        match self.fault {
            Fault::LostCommit if commit.created().is_none() => Ok(()),
            Fault::QuietDuplicate => match self.inner.commit(commit) {
                Err(error) if error.kind() == ErrorKind::Exists => Ok(()),
                other => other,
            },
            Fault::NoFence => match self.inner.commit(commit) {
                Err(error) if error.kind() == ErrorKind::Fenced => Ok(()),
                other => other,
            },
            Fault::LastWriterWins => match self.inner.commit(commit) {
                Err(error) if error.kind() == ErrorKind::Conflict => Ok(()),
                other => other,
            },
            _ => self.inner.commit(commit),
        }
    }
}

type Check = fn(&dyn Backend);

#[rstest]
#[case(Fault::NoLock, leases::a_second_lease_is_held_and_changes_nothing)]
#[case(Fault::NoLock, leases::a_lease_is_held_against_other_threads_too)]
#[case(Fault::LockKept, leases::dropping_a_lease_gives_it_back)]
#[case(Fault::NoFence, fencing::a_commit_under_an_old_token_is_fenced_and_changes_nothing)]
#[case(Fault::RenewsTheLost, fencing::a_lease_can_be_renewed_until_it_is_lost)]
#[case(Fault::LostCommit, atomicity::a_commit_writes_state_and_events_together)]
#[case(Fault::LostCommit, reading::what_one_handle_commits_another_reads)]
#[case(Fault::LastWriterWins, atomicity::a_commit_on_other_rows_is_a_conflict_and_changes_nothing)]
#[case(Fault::LastWriterWins, atomicity::a_task_is_not_done_while_a_row_is_open)]
#[case(Fault::QuietDuplicate, creating::an_id_is_given_once_and_the_second_plan_is_not_stored)]
#[case(Fault::CreatorWithoutLock, creating::who_creates_a_task_under_lease_holds_it_from_the_first_moment)]
#[case(Fault::MixedJournal, journal::the_journal_of_one_task_comes_in_pages)]
#[case(Fault::MixedJournal, reading::two_tasks_do_not_touch_each_other)]
#[case(Fault::SamePage, reading::steps_come_in_pages)]
#[case(Fault::ByName, reading::tasks_come_oldest_first)]
#[case(Fault::EarlyOutput, reading::an_output_is_readable_when_its_step_is_done_and_not_before)]
#[case(Fault::NoCompletion, creating::a_completion_is_kept_and_a_plan_without_one_has_none)]
#[case(Fault::NoSnapshot, reading::a_snapshot_does_not_move)]
#[case(Fault::ForgetsTheWait, waiting::every_state_comes_back_as_it_was_committed)]
#[case(Fault::ForgetsTheDoubt, waiting::every_state_comes_back_as_it_was_committed)]
#[case(Fault::StopsAtFailures, waiting::the_cursor_is_found_among_steps_that_have_failed)]
#[case(Fault::ListsEveryWait, waiting::what_waits_for_a_person_is_listed_and_nothing_else)]
#[case(Fault::LastWriterWins, waiting::a_commit_on_another_wait_or_intent_is_a_conflict)]
#[case(Fault::NoOrigin, waiting::what_a_plan_file_says_is_kept)]
fn a_backend_with_this_fault_is_rejected(#[case] fault: Fault, #[case] check: Check) {
    check(&Sqlite::new());
    let verdict = catch_unwind(AssertUnwindSafe(|| check(&Broken(Sqlite::new(), fault))));
    assert!(verdict.is_err(), "{fault:?} went unnoticed");
}

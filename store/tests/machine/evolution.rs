//! What each event makes of each state, and which events cannot happen.

use rstest::rstest;
use store::machine::{Illegal, evolve};
use store::model::{Event, FailReason, Failure, StepState, StepStatus, TaskState, TaskStatus, Terms};

/// A task of two steps at step 0.
fn at(task: TaskStatus, step: StepStatus, attempts: u32, forgiven: u32) -> TaskState {
    TaskState {
        status: task,
        steps: 2,
        cursor: 0,
        current: StepState { status: step, attempts, forgiven, ..StepState::default() },
    }
}

fn new() -> TaskState {
    TaskState::created(2)
}

fn running() -> TaskState {
    at(TaskStatus::Running, StepStatus::Running, 1, 0)
}

fn set_back() -> TaskState {
    at(TaskStatus::Running, StepStatus::Pending, 1, 0)
}

fn failed() -> TaskState {
    at(TaskStatus::Failed, StepStatus::Failed, 3, 0)
}

fn retried() -> TaskState {
    at(TaskStatus::Pending, StepStatus::Pending, 3, 3)
}

fn after(cursor: u32) -> TaskState {
    TaskState { status: TaskStatus::Running, steps: 2, cursor, current: StepState::default() }
}

fn done() -> TaskState {
    TaskState { status: TaskStatus::Done, ..after(2) }
}

fn run_started() -> Event {
    Event::RunStarted { recovered: vec![], terms: Terms::default() }
}

fn started(step: u32, attempt: u32) -> Event {
    Event::StepStarted { step, tool: "echo".into(), attempt, intent: None }
}

fn finished(step: u32) -> Event {
    Event::StepFinished { step, tool: "echo".into(), adopted: false }
}

fn error(step: u32) -> Event {
    Event::StepError { step, failure: Failure::plain("no") }
}

fn task_failed(step: u32) -> Event {
    Event::TaskFailed {
        step: Some(step),
        reason: FailReason::Other("asteroid".into()),
        known: Vec::new(),
        unknown: false,
    }
}

#[rstest]
#[case::a_run_changes_nothing(set_back(), run_started(), set_back())]
#[case::a_start_is_counted(new(), started(0, 1), running())]
#[case::a_further_start_too(set_back(), started(0, 2), at(TaskStatus::Running, StepStatus::Running, 2, 0))]
#[case::a_start_keeps_what_is_forgiven(retried(), started(0, 4), at(TaskStatus::Running, StepStatus::Running, 4, 3))]
#[case::recovery_keeps_the_attempt(running(), Event::StepRecovered { step: 0 }, set_back())]
#[case::an_error_keeps_the_attempt(running(), error(0), set_back())]
#[case::a_finish_moves_on(running(), finished(0), after(1))]
#[case::the_last_finish_leaves_the_task_running(
    TaskState { current: running().current, ..after(1) }, finished(1), after(2)
)]
#[case::a_failure_ends_the_task(at(TaskStatus::Running, StepStatus::Pending, 3, 0), task_failed(0), failed())]
#[case::a_retry_forgives(failed(), Event::TaskRetried { step: Some(0), forgiven: 3 }, retried())]
#[case::the_end(after(2), Event::TaskDone, done())]
fn an_event_leads_to_this_state(#[case] before: TaskState, #[case] event: Event, #[case] after: TaskState) {
    assert_eq!(evolve(before, &event), Ok(after));
}

fn was(step: u32, was: StepStatus) -> Illegal {
    Illegal::WrongStatus { at: Some(step), was }
}

#[rstest]
#[case::creation_twice(new(), Event::TaskCreated { steps: 2, home: None }, Illegal::CreatedTwice)]
#[case::creation_of_what_is_over(done(), Event::TaskCreated { steps: 2, home: None }, Illegal::CreatedTwice)]
#[case::a_run_that_did_not_recover(running(), run_started(), was(0, StepStatus::Running))]
#[case::recovery_of_a_pending_step(set_back(), Event::StepRecovered { step: 0 }, was(0, StepStatus::Pending))]
#[case::recovery_of_another_step(running(), Event::StepRecovered { step: 1 }, Illegal::OutOfOrder { at: Some(1), due: Some(0) })]
#[case::a_start_within_a_start(running(), started(0, 2), was(0, StepStatus::Running))]
#[case::a_start_out_of_order(new(), started(1, 1), Illegal::OutOfOrder { at: Some(1), due: Some(0) })]
#[case::a_start_of_a_step_that_is_done(after(1), started(0, 2), Illegal::OutOfOrder { at: Some(0), due: Some(1) })]
#[case::a_start_past_the_plan(after(2), started(2, 1), Illegal::OutOfOrder { at: Some(2), due: None })]
#[case::a_start_that_skips_a_count(set_back(), started(0, 3), Illegal::WrongCount { counted: 3, expected: 2 })]
#[case::a_start_that_counts_again(set_back(), started(0, 1), Illegal::WrongCount { counted: 1, expected: 2 })]
#[case::a_start_that_forgets_the_forgiven(retried(), started(0, 1), Illegal::WrongCount { counted: 1, expected: 4 })]
#[case::a_finish_without_a_start(new(), finished(0), was(0, StepStatus::Pending))]
#[case::a_finish_twice(after(1), finished(0), Illegal::OutOfOrder { at: Some(0), due: Some(1) })]
#[case::an_error_without_a_start(new(), error(0), was(0, StepStatus::Pending))]
#[case::a_failure_in_a_step(running(), task_failed(0), was(0, StepStatus::Running))]
#[case::the_end_before_the_end(after(1), Event::TaskDone, Illegal::StepsLeft(1))]
#[case::the_end_in_a_step(running(), Event::TaskDone, Illegal::StepsLeft(0))]
#[case::a_retry_of_what_runs(set_back(), Event::TaskRetried { step: Some(0), forgiven: 1 }, Illegal::WrongTaskStatus(TaskStatus::Running))]
#[case::a_retry_of_what_is_done(done(), Event::TaskRetried { step: Some(1), forgiven: 1 }, Illegal::WrongTaskStatus(TaskStatus::Done))]
#[case::a_retry_of_another_step(failed(), Event::TaskRetried { step: Some(1), forgiven: 3 }, Illegal::OutOfOrder { at: Some(1), due: Some(0) })]
#[case::a_retry_that_forgives_too_little(failed(), Event::TaskRetried { step: Some(0), forgiven: 2 }, Illegal::WrongCount { counted: 2, expected: 3 })]
#[case::a_retry_that_forgives_too_much(failed(), Event::TaskRetried { step: Some(0), forgiven: 4 }, Illegal::WrongCount { counted: 4, expected: 3 })]
fn an_event_that_cannot_happen_is_refused(#[case] before: TaskState, #[case] event: Event, #[case] why: Illegal) {
    assert_eq!(evolve(before, &event), Err(why));
}

#[rstest]
fn nothing_happens_to_a_task_that_is_over(
    #[values(
        run_started(), started(0, 4), finished(0), error(0), task_failed(0), Event::TaskDone,
        Event::StepRecovered { step: 0 }
    )]
    event: Event,
) {
    for state in [done(), failed()] {
        assert_eq!(evolve(state, &event), Err(Illegal::WrongTaskStatus(state.status)));
    }
}

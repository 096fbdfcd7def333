//! What each command does in each state.

use rstest::rstest;
use store::machine::{Budget, Command, Next, Refused, decide, next};
use store::model::{Event, FailReason, Failure, StepState, StepStatus, TaskState, TaskStatus, Terms, Timestamp};

const LIMIT: u32 = 3;
const NOW: Timestamp = Timestamp::from_micros(0);

/// A task of three steps at step 1.
fn at(task: TaskStatus, step: StepStatus, attempts: u32, forgiven: u32) -> TaskState {
    TaskState {
        status: task,
        steps: 3,
        cursor: 1,
        current: StepState { status: step, attempts, forgiven, ..StepState::default() },
    }
}

fn pending() -> TaskState {
    at(TaskStatus::Running, StepStatus::Pending, 0, 0)
}

fn running() -> TaskState {
    at(TaskStatus::Running, StepStatus::Running, 1, 0)
}

/// Running its third attempt.
fn last_attempt() -> TaskState {
    at(TaskStatus::Running, StepStatus::Running, 3, 0)
}

fn used_up() -> TaskState {
    at(TaskStatus::Running, StepStatus::Pending, 3, 0)
}

fn failed() -> TaskState {
    at(TaskStatus::Failed, StepStatus::Failed, 3, 0)
}

fn failed_again() -> TaskState {
    at(TaskStatus::Failed, StepStatus::Failed, 6, 3)
}

fn retried() -> TaskState {
    at(TaskStatus::Pending, StepStatus::Pending, 3, 3)
}

fn no_step_left() -> TaskState {
    TaskState { status: TaskStatus::Running, steps: 3, cursor: 3, current: StepState::default() }
}

fn done() -> TaskState {
    TaskState { status: TaskStatus::Done, ..no_step_left() }
}

fn begin() -> Command {
    Command::Begin(Terms::limit(LIMIT))
}

fn start(step: u32) -> Command {
    Command::Start { step, tool: "echo".into(), budget: Budget::of(LIMIT), intent: None }
}

fn finish(step: u32) -> Command {
    Command::Finish { step, tool: "echo".into(), adopted: false }
}

fn fail(step: u32) -> Command {
    Command::Fail { step, failure: Failure::plain("no"), goes_on: false }
}

fn run_started(recovered: &[u32]) -> Event {
    Event::RunStarted { recovered: recovered.to_vec(), terms: Terms::limit(LIMIT) }
}

fn started(step: u32, attempt: u32) -> Event {
    Event::StepStarted { step, tool: "echo".into(), attempt, intent: None }
}

fn task_failed(step: u32) -> Event {
    Event::TaskFailed { step: Some(step), reason: FailReason::MaxAttempts, known: Vec::new(), unknown: false }
}

#[rstest]
#[case::of_a_new_task(TaskState::created(3), begin(), vec![run_started(&[])])]
#[case::of_a_task_between_steps(pending(), begin(), vec![run_started(&[])])]
#[case::of_a_killed_step(running(), begin(), vec![Event::StepRecovered { step: 1 }, run_started(&[1])])]
#[case::of_a_kill_in_the_last_attempt(last_attempt(), begin(), vec![Event::StepRecovered { step: 1 }, run_started(&[1])])]
#[case::of_attempts_used_up(used_up(), begin(), vec![run_started(&[])])]
#[case::of_a_retried_task(retried(), begin(), vec![run_started(&[])])]
#[case::before_the_end(no_step_left(), begin(), vec![run_started(&[])])]
#[case::start_of_the_first_step(TaskState::created(3), start(0), vec![started(0, 1)])]
#[case::start_of_a_later_step(pending(), start(1), vec![started(1, 1)])]
#[case::start_of_the_second_attempt(at(TaskStatus::Running, StepStatus::Pending, 1, 0), start(1), vec![started(1, 2)])]
#[case::start_of_the_last_attempt(at(TaskStatus::Running, StepStatus::Pending, 2, 0), start(1), vec![started(1, 3)])]
#[case::start_after_the_last_attempt(used_up(), start(1), vec![task_failed(1)])]
#[case::start_after_a_retry(retried(), start(1), vec![started(1, 4)])]
#[case::start_of_the_last_attempt_after_a_retry(at(TaskStatus::Running, StepStatus::Pending, 5, 3), start(1), vec![started(1, 6)])]
#[case::start_after_the_last_attempt_after_a_retry(at(TaskStatus::Running, StepStatus::Pending, 6, 3), start(1), vec![task_failed(1)])]
#[case::start_under_a_lower_limit_than_before(at(TaskStatus::Running, StepStatus::Pending, 9, 0), start(1), vec![task_failed(1)])]
#[case::finish_of_a_running_step(running(), finish(1), vec![Event::StepFinished { step: 1, tool: "echo".into(), adopted: false }])]
#[case::finish_in_the_last_attempt(last_attempt(), finish(1), vec![Event::StepFinished { step: 1, tool: "echo".into(), adopted: false }])]
#[case::failure_of_a_running_step(running(), fail(1), vec![Event::StepError { step: 1, failure: Failure::plain("no") }])]
#[case::failure_in_the_last_attempt(last_attempt(), fail(1), vec![Event::StepError { step: 1, failure: Failure::plain("no") }])]
#[case::completion(no_step_left(), Command::Complete, vec![Event::TaskDone])]
#[case::retry_of_a_failed_task(failed(), Command::Retry, vec![Event::TaskRetried { step: Some(1), forgiven: 3 }])]
#[case::a_second_retry(failed_again(), Command::Retry, vec![Event::TaskRetried { step: Some(1), forgiven: 6 }])]
fn a_legal_command_has_these_events(#[case] state: TaskState, #[case] command: Command, #[case] events: Vec<Event>) {
    assert_eq!(decide(&state, &command, NOW), Ok(events.clone()));
    let mut after = state;
    for event in &events {
        after = store::machine::evolve(after, event).expect("what is decided can happen");
    }
}

fn wrong(step: u32, status: StepStatus) -> Refused {
    Refused::WrongStatus { at: Some(step), status }
}

fn past(step: u32) -> Refused {
    Refused::NotNext { at: Some(step), due: None }
}

fn not_next(step: u32, cursor: u32) -> Refused {
    Refused::NotNext { at: Some(step), due: Some(cursor) }
}

#[rstest]
#[case::start_of_a_running_step(running(), start(1), wrong(1, StepStatus::Running))]
#[case::start_of_a_step_that_is_done(pending(), start(0), not_next(0, 1))]
#[case::start_of_a_step_too_early(pending(), start(2), not_next(2, 1))]
#[case::start_past_the_plan(no_step_left(), start(3), past(3))]
#[case::finish_of_a_pending_step(pending(), finish(1), wrong(1, StepStatus::Pending))]
#[case::finish_of_a_step_that_is_done(running(), finish(0), not_next(0, 1))]
#[case::finish_of_another_step(running(), finish(2), not_next(2, 1))]
#[case::finish_past_the_plan(no_step_left(), finish(3), past(3))]
#[case::failure_of_a_pending_step(pending(), fail(1), wrong(1, StepStatus::Pending))]
#[case::failure_of_a_step_that_is_done(running(), fail(0), not_next(0, 1))]
#[case::completion_before_the_first_step(TaskState::created(3), Command::Complete, Refused::StepsLeft(0))]
#[case::completion_in_a_step(running(), Command::Complete, Refused::StepsLeft(1))]
#[case::retry_of_a_new_task(TaskState::created(3), Command::Retry, Refused::NotFailed(TaskStatus::Pending))]
#[case::retry_of_a_running_task(running(), Command::Retry, Refused::NotFailed(TaskStatus::Running))]
#[case::retry_of_a_retried_task(retried(), Command::Retry, Refused::NotFailed(TaskStatus::Pending))]
#[case::retry_of_a_task_that_is_done(done(), Command::Retry, Refused::NotFailed(TaskStatus::Done))]
fn an_illegal_command_is_refused(#[case] state: TaskState, #[case] command: Command, #[case] refused: Refused) {
    assert_eq!(decide(&state, &command, NOW), Err(refused));
}

#[rstest]
fn nothing_but_a_retry_is_legal_when_the_task_is_over(
    #[values(begin(), start(1), start(3), finish(1), fail(1), Command::Complete)] command: Command,
) {
    assert_eq!(decide(&done(), &command, NOW), Err(Refused::Over(TaskStatus::Done)));
    assert_eq!(decide(&failed(), &command, NOW), Err(Refused::Over(TaskStatus::Failed)));
}

#[rstest]
#[case(TaskState::created(3), Next::Step(0))]
#[case(pending(), Next::Step(1))]
#[case(running(), Next::Step(1))]
#[case(used_up(), Next::Step(1))]
#[case(retried(), Next::Step(1))]
#[case(no_step_left(), Next::Complete)]
#[case(done(), Next::Over(TaskStatus::Done))]
#[case(failed(), Next::Over(TaskStatus::Failed))]
fn next_is_a_function_of_the_state(#[case] state: TaskState, #[case] what: Next) {
    assert_eq!(next(&state, NOW), what);
}

/// The limit in force is in the journal, so a reader can repeat every decision.
#[rstest]
fn a_run_announces_its_limit(#[values(0, 1, 3, u32::MAX)] max_attempts: u32) {
    let events = decide(&running(), &Command::Begin(Terms::limit(max_attempts)), NOW).unwrap();
    assert_eq!(events.last(), Some(&Event::RunStarted { recovered: vec![1], terms: Terms::limit(max_attempts) }));
}

#[test]
fn counts_do_not_overflow() {
    let start = Command::Start { step: 1, tool: "echo".into(), budget: Budget::of(u32::MAX), intent: None };
    let nearly = at(TaskStatus::Running, StepStatus::Pending, u32::MAX - 1, 0);
    assert_eq!(decide(&nearly, &start, NOW), Ok(vec![started(1, u32::MAX)]));
    let full = at(TaskStatus::Running, StepStatus::Pending, u32::MAX, 0);
    assert_eq!(decide(&full, &start, NOW), Ok(vec![task_failed(1)]));
}

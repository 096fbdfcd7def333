//! Waits for a time and for a person, steps that are left out, and what an attempt says of itself.

use rstest::rstest;
use store::machine::{Budget, Command, Illegal, Next, Refused, decide, evolve, next};
use store::model::{
    Digest, Effect, Event, FailReason, Failure, Intent, StepStatus, TaskState, TaskStatus, Terms, Timestamp, Wait,
};

const NOW: Timestamp = Timestamp::from_micros(1_000);
const DUE: Timestamp = Timestamp::from_micros(2_000);
const SHOWN: Digest = Digest([1; 32]);
const OTHER: Digest = Digest([2; 32]);

fn begin() -> Command {
    Command::Begin(Terms::limit(3))
}

fn start(shown: Digest) -> Command {
    let intent = Some(Intent { digest: shown, effect: Effect::Pure });
    Command::Start { step: 0, tool: "approval".into(), budget: Budget::of(3), intent }
}

fn wait(wait: Wait, shown: Option<Digest>) -> Command {
    Command::Wait { step: 0, wait, shown }
}

fn answer(answer: Option<&str>, shown: Digest) -> Command {
    let answer = answer.map(str::to_owned);
    Command::Answer { step: 0, answer, by: "ada".into(), why: None, shown: Some(shown), goes_on: false }
}

fn play(state: TaskState, command: &Command, now: Timestamp) -> TaskState {
    let events = decide(&state, command, now).expect("it is legal");
    events.iter().fold(state, |state, event| evolve(state, event).expect("what is decided can happen"))
}

fn sleeping() -> TaskState {
    play(TaskState::created(1), &wait(Wait::Until(DUE), None), NOW)
}

fn asked(expires: Option<Timestamp>) -> TaskState {
    play(TaskState::created(1), &wait(Wait::Approval { expires }, Some(SHOWN)), NOW)
}

fn answered() -> TaskState {
    play(asked(None), &answer(Some("true"), SHOWN), NOW)
}

#[test]
fn a_run_that_comes_before_its_time_writes_nothing() {
    let state = sleeping();
    assert_eq!((state.status, state.current.status), (TaskStatus::Waiting, StepStatus::Waiting));
    assert_eq!(state.current.attempts, 0, "a wait is not an attempt");
    assert_eq!(next(&state, NOW), Next::Until(DUE));
    assert_eq!(decide(&state, &begin(), NOW), Ok(vec![]));
    assert_eq!(decide(&state, &start(SHOWN), NOW), Err(Refused::NotDue(0)));
}

/// A wait that was kept in memory was lost with its process.
#[test]
fn whoever_comes_at_its_time_starts_it_once() {
    let state = sleeping();
    assert_eq!(next(&state, DUE), Next::Step(0));
    let state = play(play(state, &begin(), DUE), &start(SHOWN), DUE);
    assert_eq!((state.running(), state.current.attempts), (Some(0), 1));
    let state = play(state, &begin(), DUE);
    assert_eq!(next(&state, NOW), Next::Step(0), "a wait that is over is not begun again");
    assert_eq!(decide(&state, &wait(Wait::Until(DUE), None), NOW), Err(Refused::Begun(0)));
}

#[test]
fn an_error_with_a_due_time_is_a_wait_and_counts() {
    let state = play(play(TaskState::created(1), &begin(), NOW), &start(SHOWN), NOW);
    let failure = Failure { retry_at: Some(DUE), ..Failure::plain("busy") };
    let state = play(state, &Command::Fail { step: 0, failure, goes_on: false }, NOW);
    assert_eq!((state.status, next(&state, NOW)), (TaskStatus::Waiting, Next::Until(DUE)));
    let state = play(state, &start(SHOWN), DUE);
    assert_eq!((state.status, state.current.attempts), (TaskStatus::Running, 2));
}

#[test]
fn a_question_is_answered_once_and_its_answer_goes_with_the_next_attempt() {
    let state = asked(None);
    assert_eq!((next(&state, DUE), state.status), (Next::Person(0), TaskStatus::Waiting));
    assert_eq!(decide(&state, &begin(), DUE), Ok(vec![]));
    assert_eq!(decide(&state, &start(SHOWN), DUE), Err(Refused::NotDue(0)));
    let state = answered();
    assert_eq!((state.status, next(&state, NOW)), (TaskStatus::Pending, Next::Step(0)));
    let second = Refused::WrongStatus { at: Some(0), status: StepStatus::Pending };
    assert_eq!(decide(&state, &answer(None, SHOWN), NOW), Err(second));
    assert_eq!(play(state, &start(SHOWN), NOW).running(), Some(0));
}

/// An approval was given for one text and used for another.
#[test]
fn an_answer_is_bound_to_what_was_shown() {
    assert_eq!(decide(&asked(None), &answer(Some("true"), OTHER), NOW), Err(Refused::OtherQuestion(0)));
    let state = answered();
    assert_eq!(decide(&state, &start(OTHER), NOW), Err(Refused::OtherQuestion(0)));
    let event = Event::StepStarted {
        step: 0,
        tool: "approval".into(),
        attempt: 1,
        intent: Some(Intent { digest: OTHER, effect: Effect::Pure }),
    };
    assert_eq!(evolve(state, &event), Err(Illegal::WrongIntent(0)));
    let ask = |shown| wait(Wait::Approval { expires: None }, shown);
    assert_eq!(decide(&state, &ask(Some(SHOWN)), NOW), Err(Refused::Begun(0)), "it is not asked twice");
    let anew = play(state, &ask(Some(OTHER)), NOW);
    assert_eq!(next(&anew, NOW), Next::Person(0), "but what is shown by now is");
    assert_eq!(decide(&anew, &answer(Some("true"), SHOWN), NOW), Err(Refused::OtherQuestion(0)));
    assert_eq!(decide(&TaskState::created(1), &ask(None), NOW), Err(Refused::NoQuestion(0)), "nor bound to nothing");
}

#[test]
fn a_refusal_fails_the_task_or_the_step() {
    for (goes_on, status) in [(false, TaskStatus::Failed), (true, TaskStatus::Pending)] {
        let (by, shown) = ("ada".to_owned(), Some(SHOWN));
        let command = Command::Answer { step: 0, answer: None, by, why: Some("no".into()), shown, goes_on };
        let events = decide(&asked(None), &command, NOW).unwrap();
        assert!(matches!(events[0], Event::AnswerGiven { rejected: true, .. }));
        let reason = match &events[1] {
            Event::TaskFailed { reason, .. } | Event::StepFailed { reason, .. } => reason,
            other => panic!("{other:?}"),
        };
        assert_eq!(*reason, FailReason::Rejected);
        assert_eq!(play(asked(None), &command, NOW).status, status);
    }
}

#[test]
fn a_question_that_nobody_answered_in_time_fails_its_step() {
    let state = asked(Some(DUE));
    assert_eq!(next(&state, NOW), Next::Person(0));
    assert_eq!(next(&state, DUE), Next::Step(0));
    assert_eq!(decide(&state, &answer(Some("true"), SHOWN), DUE), Err(Refused::Expired(0)));
    let state = play(state, &begin(), DUE);
    let events = decide(&state, &start(SHOWN), DUE).unwrap();
    let reason = FailReason::Expired;
    assert_eq!(events, [Event::TaskFailed { step: Some(0), reason, known: vec![], unknown: false }]);
    let failed = evolve(state, &events[0]).unwrap();
    assert_eq!(failed.status, TaskStatus::Failed);
    // A retry asks again, and no old answer counts.
    let retried = play(failed, &Command::Retry, DUE);
    assert_eq!(next(&play(retried, &wait(Wait::Approval { expires: None }, Some(SHOWN)), DUE), DUE), Next::Person(0));
}

#[test]
fn a_wait_for_a_time_has_no_answer() {
    assert_eq!(decide(&sleeping(), &answer(Some("true"), SHOWN), NOW), Err(Refused::NoQuestion(0)));
    let event = Event::AnswerGiven {
        step: 0,
        answer: "true".into(),
        rejected: false,
        by: "ada".into(),
        why: None,
        shown: None,
    };
    assert_eq!(evolve(sleeping(), &event), Err(Illegal::NotAsked(0)));
}

#[test]
fn a_step_is_left_out_before_it_is_begun_or_not_at_all() {
    let skip = Command::Skip { step: 0 };
    let after = play(TaskState::created(2), &skip, NOW);
    assert_eq!((after.cursor, after.status), (1, TaskStatus::Pending));
    assert_eq!(play(TaskState::created(1), &skip, NOW).step(), None);
    let failed = Command::Fail { step: 0, failure: Failure::plain("no"), goes_on: false };
    let state = play(play(TaskState::created(2), &start(SHOWN), NOW), &failed, NOW);
    assert_eq!(decide(&state, &skip, NOW), Err(Refused::Begun(0)));
    assert_eq!(evolve(state, &Event::StepSkipped { step: 0 }), Err(Illegal::WrongCount { counted: 1, expected: 0 }));
}

#[rstest]
#[case(Command::Checkpoint { step: 0, checkpoint: "3".into() })]
#[case(Command::Doubt { step: 0, known: "it may have been".into() })]
fn an_attempt_speaks_of_itself_only_while_it_is_under_way(#[case] command: Command) {
    let wrong = Refused::WrongStatus { at: Some(0), status: StepStatus::Pending };
    assert_eq!(decide(&TaskState::created(1), &command, NOW), Err(wrong));
    let running = play(TaskState::created(1), &start(SHOWN), NOW);
    assert_eq!(decide(&running, &command, NOW).unwrap().len(), 1);
}

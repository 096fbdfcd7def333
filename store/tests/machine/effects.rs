//! What becomes of a step by its class: after a crash, an error, a lost reply, a person's word.

use rstest::rstest;
use store::machine::{Budget, Command, Next, Refused, decide, evolve, next};
use store::model::{
    Digest, Effect, Event, FailReason, Failure, Intent, StepState, StepStatus, TaskState, TaskStatus, Terms, Timestamp,
    Word,
};

use Effect::{Keyed, Once, Pure, Verifiable};

const NOW: Timestamp = Timestamp::from_micros(1_000);
const LATER: Timestamp = Timestamp::from_micros(2_000);
const ONE: Digest = Digest([1; 32]);
const OTHER: Digest = Digest([2; 32]);

fn intent(effect: Effect) -> Intent {
    Intent { digest: ONE, effect }
}

/// In its first attempt.
fn running(effect: Effect) -> TaskState {
    let current =
        StepState { status: StepStatus::Running, attempts: 1, intent: Some(intent(effect)), ..StepState::default() };
    TaskState { status: TaskStatus::Running, current, ..TaskState::created(2) }
}

/// In its second attempt, and nobody knows what the first has done.
fn running_again(effect: Effect) -> TaskState {
    let state = running(effect);
    TaskState { current: StepState { attempts: 2, unknown: true, ..state.current }, ..state }
}

fn with(state: TaskState, status: StepStatus) -> TaskState {
    TaskState { current: StepState { status, ..state.current }, ..state }
}

fn in_doubt(effect: Effect) -> TaskState {
    let state = with(running(effect), StepStatus::InDoubt);
    TaskState { status: TaskStatus::InDoubt, current: StepState { unknown: true, ..state.current }, ..state }
}

fn start(given: Option<Intent>) -> Command {
    Command::Start { step: 0, tool: "mail".into(), budget: Budget::of(3), intent: given }
}

fn fail(failure: Failure) -> Command {
    Command::Fail { step: 0, failure, goes_on: false }
}

fn unknown() -> Failure {
    Failure { unknown: true, ..Failure::plain("the reply is lost") }
}

fn permanent() -> Failure {
    Failure { permanent: true, ..Failure::plain("it exists already") }
}

fn resolve(word: Word, goes_on: bool) -> Command {
    Command::Resolve { step: 0, word, by: "ada".into(), why: Some("seen".into()), goes_on }
}

/// The kinds of the events, and the state after them.
fn play(state: TaskState, command: &Command) -> (Vec<&'static str>, TaskState) {
    let events = decide(&state, command, NOW).expect("it is legal");
    let after = events.iter().fold(state, |state, event| evolve(state, event).expect("what is decided can happen"));
    (events.iter().map(|event| event.kind().as_str()).collect(), after)
}

#[rstest]
#[case(Pure, &["step_recovered", "run_started"], StepStatus::Pending, false)]
#[case(Keyed, &["step_recovered", "run_started"], StepStatus::Pending, true)]
#[case(Verifiable, &["step_recovered", "run_started"], StepStatus::Pending, true)]
// Nobody but a person can say, so no run begins.
#[case(Once, &["step_in_doubt"], StepStatus::InDoubt, true)]
fn a_crash_is_recovered_by_its_class(
    #[case] effect: Effect,
    #[case] kinds: &[&str],
    #[case] status: StepStatus,
    #[case] is_unknown: bool,
) {
    let (found, after) = play(running(effect), &Command::Begin(Terms::limit(3)));
    assert_eq!(found, kinds);
    assert_eq!((after.current.status, after.current.unknown), (status, is_unknown));
    assert_eq!(after.current.asks_first(), effect == Verifiable);
}

#[test]
fn a_task_in_doubt_is_left_alone_by_every_run() {
    let state = in_doubt(Once);
    assert_eq!(decide(&state, &Command::Begin(Terms::limit(3)), NOW), Ok(vec![]));
    assert_eq!(next(&state, NOW), Next::Person(0));
    let wrong = Refused::WrongStatus { at: Some(0), status: StepStatus::InDoubt };
    assert_eq!(decide(&state, &start(Some(intent(Once))), NOW), Err(wrong));
}

#[rstest]
#[case::nothing_happened(Once, Failure::plain("no"), &["step_error"], StepStatus::Pending)]
#[case::nothing_happened_and_later(Once, Failure { retry_at: Some(LATER), ..Failure::plain("no") }, &["step_error"], StepStatus::Waiting)]
#[case::a_lost_reply(Once, unknown(), &["step_in_doubt"], StepStatus::InDoubt)]
#[case::a_lost_reply(Keyed, unknown(), &["step_error"], StepStatus::Pending)]
#[case::a_lost_reply(Keyed, Failure { retry_at: Some(LATER), ..unknown() }, &["step_error"], StepStatus::Waiting)]
#[case::a_lost_reply(Verifiable, unknown(), &["step_error"], StepStatus::Pending)]
#[case::a_lost_reply(Pure, unknown(), &["step_error"], StepStatus::Pending)]
#[case::for_good(Pure, permanent(), &["step_error", "task_failed"], StepStatus::Failed)]
#[case::for_good(Keyed, permanent(), &["step_error", "task_failed"], StepStatus::Failed)]
#[case::for_good(Verifiable, permanent(), &["step_error", "task_failed"], StepStatus::Failed)]
#[case::for_good(Once, permanent(), &["step_error", "task_failed"], StepStatus::Failed)]
fn an_error_is_dealt_with_by_its_class(
    #[case] effect: Effect,
    #[case] failure: Failure,
    #[case] kinds: &[&str],
    #[case] status: StepStatus,
) {
    let (found, after) = play(running(effect), &fail(failure));
    assert_eq!((found.as_slice(), after.current.status), (kinds, status));
}

/// After a lost reply the second call said "already exists", and the engine called the task failed.
#[rstest]
#[case(Keyed, permanent(), "step_in_doubt")]
#[case(Verifiable, permanent(), "step_in_doubt")]
// It was asked about, and it was not our own.
#[case(Verifiable, Failure { absent: true, ..permanent() }, "step_error")]
#[case(Keyed, Failure { absent: true, ..permanent() }, "step_error")]
#[case(Pure, permanent(), "step_error")]
fn an_error_for_good_says_nothing_where_an_earlier_attempt_is_unknown(
    #[case] effect: Effect,
    #[case] failure: Failure,
    #[case] kind: &str,
) {
    let (found, _) = play(running_again(effect), &fail(failure));
    assert_eq!(found[0], kind);
    assert_eq!(found.len(), if kind == "step_error" { 2 } else { 1 });
}

#[test]
fn what_was_asked_about_is_known_from_then_on() {
    let failure = Failure { absent: true, retry_at: Some(LATER), ..Failure::plain("busy") };
    let (_, after) = play(running_again(Verifiable), &fail(failure));
    assert!(!after.current.unknown && !after.current.asks_first());
    let (_, after) = play(running_again(Verifiable), &fail(Failure { absent: true, ..unknown() }));
    assert!(after.current.asks_first(), "the last attempt is unknown by itself");
}

#[rstest]
#[case::the_same_input(Keyed, Some(intent(Keyed)), "step_started")]
#[case::the_same_input(Verifiable, Some(intent(Verifiable)), "step_started")]
#[case::a_later_class(Keyed, Some(intent(Once)), "step_started")]
#[case::another_input(Keyed, Some(Intent { digest: OTHER, effect: Keyed }), "step_in_doubt")]
#[case::another_input(Verifiable, Some(Intent { digest: OTHER, effect: Verifiable }), "step_in_doubt")]
#[case::another_input_under_another_class(Keyed, Some(Intent { digest: OTHER, effect: Pure }), "step_in_doubt")]
#[case::no_input(Keyed, None, "step_in_doubt")]
#[case::another_input(Pure, Some(Intent { digest: OTHER, effect: Pure }), "step_started")]
// A retry after the doubt was abandoned.
#[case::again(Once, Some(intent(Once)), "step_in_doubt")]
#[case::again_under_another_class(Once, Some(intent(Pure)), "step_in_doubt")]
fn what_may_have_happened_is_not_doubled(#[case] effect: Effect, #[case] given: Option<Intent>, #[case] kind: &str) {
    let (found, after) = play(with(running_again(effect), StepStatus::Pending), &start(given));
    assert_eq!(found, [kind]);
    assert_eq!(after.current.effect(), effect, "the class of the first attempt holds");
}

/// A reader refuses a journal in which that was done all the same.
#[rstest]
#[case(Keyed, Some(Intent { digest: OTHER, effect: Keyed }))]
#[case(Keyed, None)]
#[case(Keyed, Some(intent(Pure)))]
#[case(Once, Some(intent(Once)))]
fn a_journal_that_doubles_an_effect_is_refused(#[case] effect: Effect, #[case] intent: Option<Intent>) {
    let event = Event::StepStarted { step: 0, tool: "mail".into(), attempt: 3, intent };
    assert!(evolve(with(running_again(effect), StepStatus::Pending), &event).is_err());
}

#[test]
fn an_input_that_was_never_sent_may_change() {
    let (_, after) = play(running(Keyed), &fail(Failure::plain("refused before a byte was sent")));
    let (found, after) = play(after, &start(Some(Intent { digest: OTHER, effect: Keyed })));
    assert_eq!((found, after.current.intent), (vec!["step_started"], Some(Intent { digest: OTHER, effect: Keyed })));
}

#[test]
fn a_step_of_an_earlier_version_gets_its_class_with_the_next_attempt() {
    let state = running(Keyed);
    let old = with(TaskState { current: StepState { intent: None, ..state.current }, ..state }, StepStatus::Pending);
    let (_, after) = play(old, &start(Some(intent(Once))));
    assert_eq!(after.current.effect(), Once);
}

#[rstest]
#[case(Word::Happened, false, &["doubt_resolved"], TaskStatus::Pending)]
#[case(Word::Absent, false, &["doubt_resolved"], TaskStatus::Pending)]
#[case(Word::Abandon, false, &["doubt_resolved", "task_failed"], TaskStatus::Failed)]
#[case(Word::Abandon, true, &["doubt_resolved", "step_failed"], TaskStatus::Pending)]
fn a_word_resolves_a_doubt(
    #[case] word: Word,
    #[case] goes_on: bool,
    #[case] kinds: &[&str],
    #[case] status: TaskStatus,
) {
    let (found, after) = play(in_doubt(Once), &resolve(word, goes_on));
    assert_eq!((found.as_slice(), after.status), (kinds, status));
    assert_eq!(after.cursor, u32::from(word == Word::Happened || goes_on));
    assert!(decide(&after, &resolve(word, goes_on), NOW).is_err(), "nobody can say it a second time");
}

/// `absent` means: has not happened and will not. What is sent then may be something else.
#[test]
fn what_is_absent_is_sent_again_also_with_another_input() {
    let (_, after) = play(in_doubt(Once), &resolve(Word::Absent, false));
    let (found, after) = play(after, &start(Some(Intent { digest: OTHER, effect: Once })));
    assert_eq!(found, ["step_started"]);
    assert_eq!(after.current.intent, Some(Intent { digest: OTHER, effect: Once }));
}

#[test]
fn a_doubt_that_was_abandoned_stays_one_after_a_retry() {
    let (_, failed) = play(in_doubt(Once), &resolve(Word::Abandon, false));
    let (_, retried) = play(failed, &Command::Retry);
    let (found, _) = play(retried, &start(Some(intent(Once))));
    assert_eq!(found, ["step_in_doubt"]);
}

#[test]
fn at_the_limit_the_journal_says_that_the_effect_may_have_happened() {
    let state = with(running_again(Keyed), StepStatus::Pending);
    for (goes_on, status) in [(false, TaskStatus::Failed), (true, TaskStatus::Running)] {
        let budget = Budget { goes_on, ..Budget::of(2) };
        let command = Command::Start { step: 0, tool: "mail".into(), budget, intent: Some(intent(Keyed)) };
        let events = decide(&state, &command, NOW).unwrap();
        let reason = FailReason::MaxAttempts;
        let expected = match goes_on {
            true => Event::StepFailed { step: 0, reason, unknown: true },
            false => Event::TaskFailed { step: Some(0), reason, known: vec![], unknown: true },
        };
        assert_eq!(events, [expected]);
        assert_eq!(evolve(state, &events[0]).unwrap().status, status);
    }
}

#[rstest]
#[case(running(Pure), &["step_recovered", "task_cancelled"])]
#[case(running(Keyed), &["step_in_doubt", "task_cancelled"])]
#[case(running(Verifiable), &["step_in_doubt", "task_cancelled"])]
#[case(running(Once), &["step_in_doubt", "task_cancelled"])]
#[case(in_doubt(Once), &["task_cancelled"])]
#[case(TaskState::created(2), &["task_cancelled"])]
fn a_cancel_closes_what_a_dead_run_left_open(#[case] state: TaskState, #[case] kinds: &[&str]) {
    let cancel = Command::Cancel { by: "ada".into(), why: None };
    let (found, after) = play(state, &cancel);
    assert_eq!(found, kinds);
    assert_eq!(after.status, TaskStatus::Cancelled);
    let over = Refused::Over(TaskStatus::Cancelled);
    assert_eq!(decide(&after, &cancel, NOW), Err(over.clone()));
    assert_eq!(decide(&after, &Command::Begin(Terms::limit(3)), NOW), Err(over));
}

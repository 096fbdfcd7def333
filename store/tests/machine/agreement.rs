//! `decide` and `evolve` agree in every state that a command can lead to, whoever sends which.
//!
//! The model knows only processes that ask for what is next. Here anything is asked for, at any time, in plans and with
//! limits that the model has no room for.

use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use store::machine::{Budget, Command, Next, Refused, decide, evolve, next};
use store::model::{Event, StepStatus, TaskState, TaskStatus, Terms};

type Decide<'a> = &'a dyn Fn(&TaskState, &Command) -> Result<Vec<Event>, Refused>;

/// What is asked for: what an honest run would, or anything.
#[derive(Clone, Debug)]
enum Ask {
    Next,
    Any(Command),
}

fn asks() -> impl Strategy<Value = (u32, Vec<Ask>)> {
    (
        1u32..6,
        proptest::collection::vec(prop_oneof![2 => Just(Ask::Next), 1 => any_command().prop_map(Ask::Any)], 0..80),
    )
}

fn any_command() -> impl Strategy<Value = Command> {
    let text = || "stray".to_owned();
    prop_oneof![
        (0u32..4).prop_map(|limit| Command::Begin(Terms::limit(limit))),
        (0u32..7, 0u32..4).prop_map(move |(step, limit)| Command::Start {
            step,
            tool: text(),
            budget: Budget::of(limit)
        }),
        (0u32..7).prop_map(move |step| Command::Finish { step, tool: text() }),
        (0u32..7).prop_map(move |step| Command::Fail { step, error: text() }),
        (0u32..7).prop_map(move |step| Command::Release { step, reason: text() }),
        (0u32..4).prop_map(|limit| Command::StartCompletion(Budget::of(limit))),
        Just(Command::FailCompletion { error: text() }),
        Just(Command::Complete),
        Just(Command::Retry),
        Just(Command::Rebind { home: Some(text()), completion: None }),
    ]
}

/// What an honest run asks for.
fn next_command(state: &TaskState) -> Command {
    let tool = "echo".to_owned();
    match next(state) {
        Next::Over(TaskStatus::Failed) => Command::Retry,
        Next::Step(step) if state.current.status == StepStatus::Running => Command::Finish { step, tool },
        Next::Step(step) => Command::Start { step, tool, budget: Budget::of(3) },
        Next::Over(_) | Next::Complete => Command::Complete,
    }
}

/// Plays what is asked for; says where the two do not agree, and with what an account of the events alone does not.
fn play(decide: Decide<'_>, steps: u32, asks: &[Ask]) -> Result<(), String> {
    let mut state = TaskState::created(steps);
    let mut finished = 0;
    let mut starts = 0;
    for ask in asks {
        let command = match ask {
            Ask::Next => next_command(&state),
            Ask::Any(command) => command.clone(),
        };
        let decided = decide(&state, &command);
        if decided != decide(&state, &command) {
            return Err(format!("{command:?} is decided otherwise in the same state {state:?}"));
        }
        for event in decided.unwrap_or_default() {
            state = evolve(state, &event).map_err(|why| format!("{command:?} gave {event:?}: {why}"))?;
            match event {
                Event::StepStarted { attempt, .. } | Event::CompletionStarted { attempt } => {
                    starts += 1;
                    ensure(attempt == starts, "an attempt is not the count of its starts")?;
                }
                Event::StepFinished { .. } => (finished, starts) = (finished + 1, 0),
                _ => {}
            }
        }
        ensure(state.cursor == finished, "the cursor is not the count of the finished steps")?;
        ensure(state.current.attempts == starts, "attempts are not starts")?;
        ensure(state.current.forgiven <= starts, "more is forgiven than there was")?;
        ensure((state.current.status == StepStatus::Failed) == (state.status == TaskStatus::Failed), "one has failed")?;
    }
    Ok(())
}

fn ensure(holds: bool, why: &str) -> Result<(), String> {
    if holds { Ok(()) } else { Err(why.to_owned()) }
}

/// The same walks in each test run.
fn find_fault(decide: Decide<'_>) -> Result<(), String> {
    let config = Config { cases: 4000, failure_persistence: None, max_shrink_iters: 64, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    let found = runner.run(&asks(), |(steps, asks)| play(decide, steps, &asks).map_err(TestCaseError::fail));
    found.map_err(|found| found.to_string())
}

#[test]
fn whatever_is_asked_for_is_refused_or_can_happen() {
    assert_eq!(find_fault(&decide), Ok(()));
}

#[test]
fn a_decision_that_cannot_happen_is_found() {
    let fails_at_once = |state: &TaskState, command: &Command| {
        let mut events = decide(state, command)?;
        if let Command::Fail { .. } = command {
            events.extend(events.clone());
        }
        Ok(events)
    };
    assert!(find_fault(&fails_at_once).expect_err("two errors of one attempt").contains("gave StepError"));
}

#[test]
fn a_decision_by_something_that_is_not_in_the_state_is_found() {
    let asked = std::cell::Cell::new(0_u32);
    let looks_at_the_clock = |state: &TaskState, command: &Command| {
        asked.set(asked.get() + 1);
        if asked.get().is_multiple_of(7) { Err(Refused::StepsLeft(0)) } else { decide(state, command) }
    };
    assert!(find_fault(&looks_at_the_clock).expect_err("a clock").contains("otherwise in the same state"));
}

/// Three kills after the effect once left a task failed whose report was published, with no way on.
#[test]
fn a_task_whose_attempts_all_crashed_has_a_way_out() {
    let mut state = TaskState::created(1);
    let mut apply = |command: Command| {
        for event in decide(&state, &command).expect("it is legal") {
            state = evolve(state, &event).expect("it can happen");
        }
        state
    };
    let (begin, start) =
        (Command::Begin(Terms::limit(3)), Command::Start { step: 0, tool: "a".to_owned(), budget: Budget::of(3) });
    for _ in 0..3 {
        apply(begin.clone());
        assert_eq!(apply(start.clone()).running(), Some(0), "and its process is killed");
    }
    apply(begin.clone());
    assert_eq!(apply(start.clone()).status, TaskStatus::Failed);
    apply(Command::Retry);
    apply(begin);
    assert_eq!(apply(start).running(), Some(0));
    apply(Command::Finish { step: 0, tool: "a".to_owned() });
    assert_eq!(apply(Command::Complete).status, TaskStatus::Done);
}

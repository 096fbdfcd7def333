//! `decide` and `evolve` agree in every state that a command can lead to, whoever sends which.
//!
//! The model knows only processes that ask for what is next. Here anything is asked for, at any time, in plans and with
//! limits that the model has no room for.

use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use store::machine::{Budget, Command, Next, Refused, decide, evolve, next};
use store::model::{
    Digest, Effect, Event, Failure, Intent, StepStatus, TaskState, TaskStatus, Terms, Timestamp, Wait, Word,
};

type Decide<'a> = &'a dyn Fn(&TaskState, &Command, Timestamp) -> Result<Vec<Event>, Refused>;

/// What is asked for: what an honest run would, or anything.
#[derive(Clone, Debug)]
enum Ask {
    Next,
    Any(Command),
}

fn asks() -> impl Strategy<Value = (u32, Vec<Ask>)> {
    (
        1u32..4,
        proptest::collection::vec(prop_oneof![1 => Just(Ask::Next), 2 => any_command().prop_map(Ask::Any)], 0..80),
    )
}

fn any_command() -> impl Strategy<Value = Command> {
    prop_oneof![4 => command_of_a_run(), 2 => command_of_an_effect(), 2 => command_of_a_person()]
}

fn text() -> String {
    "stray".to_owned()
}

fn any_intent() -> impl Strategy<Value = Option<Intent>> {
    let effect = proptest::sample::select(Effect::ALL);
    proptest::option::of((0u8..2, effect).prop_map(|(digest, effect)| Intent { digest: Digest([digest; 32]), effect }))
}

fn any_time() -> impl Strategy<Value = Timestamp> {
    (0i64..90).prop_map(Timestamp::from_micros)
}

fn command_of_a_run() -> impl Strategy<Value = Command> {
    prop_oneof![
        2 => (0u32..4).prop_map(|limit| Command::Begin(Terms::limit(limit))),
        4 => (0u32..2, 1u32..6, any::<bool>(), any_intent()).prop_map(move |(step, limit, goes_on, intent)| {
            Command::Start { step, tool: text(), budget: Budget { goes_on, ..Budget::of(limit) }, intent }
        }),
        1 => (0u32..2, any::<bool>()).prop_map(move |(step, adopted)| Command::Finish { step, tool: text(), adopted }),
        1 => (0u32..2).prop_map(move |step| Command::Release { step, reason: text() }),
        1 => (0u32..4).prop_map(|limit| Command::StartCompletion(Budget::of(limit))),
        1 => Just(Command::FailCompletion { error: text() }),
        1 => Just(Command::Complete),
        1 => (0u32..2).prop_map(|step| Command::Skip { step }),
        1 => (0u32..2).prop_map(move |step| Command::Checkpoint { step, checkpoint: text() }),
    ]
}

fn command_of_an_effect() -> impl Strategy<Value = Command> {
    let failure =
        (any::<[bool; 3]>(), proptest::option::of(any_time())).prop_map(|([permanent, unknown, absent], at)| Failure {
            permanent,
            unknown,
            absent,
            retry_at: at,
            ..Failure::plain(text())
        });
    let wait = prop_oneof![
        any_time().prop_map(Wait::Until),
        proptest::option::of(any_time()).prop_map(|expires| Wait::Approval { expires }),
    ];
    prop_oneof![
        (0u32..2, failure, any::<bool>()).prop_map(|(step, failure, goes_on)| Command::Fail { step, failure, goes_on }),
        (0u32..2).prop_map(move |step| Command::Doubt { step, known: text() }),
        (0u32..2, wait, any_intent())
            .prop_map(|(step, wait, shown)| { Command::Wait { step, wait, shown: shown.map(|shown| shown.digest) } }),
    ]
}

fn command_of_a_person() -> impl Strategy<Value = Command> {
    let word = proptest::sample::select(Word::ALL);
    prop_oneof![
        8 => Just(Command::Retry),
        8 => Just(Command::Rebind { home: Some(text()), completion: None }),
        1 => Just(Command::Cancel { by: text(), why: None }),
        8 => (0u32..2, any::<bool>(), any::<bool>(), any_intent()).prop_map(|(step, yes, goes_on, shown)| {
            let shown = shown.map(|shown| shown.digest);
            Command::Answer { step, answer: yes.then(text), by: text(), why: None, shown, goes_on }
        }),
        8 => (0u32..2, word, any::<bool>()).prop_map(|(step, word, goes_on)| {
            Command::Resolve { step, word, by: text(), why: Some(text()), goes_on }
        }),
    ]
}

/// What an honest run asks for, and a person where it needs one.
fn next_command(state: &TaskState, now: Timestamp) -> Command {
    let (tool, by) = ("echo".to_owned(), "ada".to_owned());
    let intent = state.current.intent;
    match next(state, now) {
        Next::Over(TaskStatus::Failed) => Command::Retry,
        Next::Step(step) if state.current.status == StepStatus::Running => {
            Command::Finish { step, tool, adopted: state.current.asks_first() }
        }
        Next::Step(step) => Command::Start { step, tool, budget: Budget::of(3), intent },
        Next::Person(step) if state.current.status == StepStatus::InDoubt => {
            Command::Resolve { step, word: Word::Absent, by, why: None, goes_on: false }
        }
        Next::Person(step) => {
            let shown = intent.map(|intent| intent.digest);
            Command::Answer { step, answer: Some("true".to_owned()), by, why: None, shown, goes_on: false }
        }
        Next::Until(_) | Next::Over(_) | Next::Complete => Command::Complete,
    }
}

/// Plays what is asked for; says where the two do not agree, and with what an account of the events alone does not.
fn play(decide: Decide<'_>, steps: u32, asks: &[Ask]) -> Result<(), String> {
    let mut state = TaskState::created(steps);
    let mut account = Account::default();
    for (now, ask) in (0..).map(Timestamp::from_micros).zip(asks) {
        let command = match ask {
            Ask::Next => next_command(&state, now),
            Ask::Any(command) => command.clone(),
        };
        let decided = decide(&state, &command, now);
        if decided != decide(&state, &command, now) {
            return Err(format!("{command:?} is decided otherwise in the same state {state:?}"));
        }
        for event in decided.unwrap_or_default() {
            account.check(&state, &event)?;
            state = evolve(state, &event).map_err(|why| format!("{command:?} gave {event:?}: {why}"))?;
        }
        let current = state.current;
        ensure(state.cursor == account.settled, "the cursor is not the count of the settled steps")?;
        ensure(current.attempts == account.starts, "attempts are not starts")?;
        ensure(current.forgiven <= account.starts, "more is forgiven than there was")?;
        for (step, task) in [
            (StepStatus::Failed, TaskStatus::Failed),
            (StepStatus::Waiting, TaskStatus::Waiting),
            (StepStatus::InDoubt, TaskStatus::InDoubt),
        ] {
            let cancelled = state.status == TaskStatus::Cancelled;
            ensure((current.status == step) == (state.status == task) || cancelled, "only one of the two is")?;
        }
    }
    Ok(())
}

/// What the events alone say of what stands at the cursor.
#[derive(Default)]
struct Account {
    settled: u32,
    starts: u32,
    /// The effect may have happened.
    unknown: bool,
    /// Questions without an answer.
    asked: u32,
    first: Option<Intent>,
}

impl Account {
    fn check(&mut self, state: &TaskState, event: &Event) -> Result<(), String> {
        let effect = self.first.map_or(Effect::Pure, |first| first.effect);
        match event {
            Event::StepStarted { attempt, intent, .. } => {
                self.starts += 1;
                ensure(*attempt == self.starts, "an attempt is not the count of its starts")?;
                ensure(!(self.unknown && effect == Effect::Once), "what is done once is sent again")?;
                let same = self.first.map(|first| first.digest) == intent.map(|now| now.digest);
                ensure(!self.unknown || effect == Effect::Pure || same, "another input is sent")?;
                ensure(self.first.is_none_or(|first| intent.is_some_and(|now| now.effect == first.effect)), "a class")?;
                self.first = *intent;
            }
            Event::CompletionStarted { attempt } => {
                self.starts += 1;
                ensure(*attempt == self.starts, "an attempt is not the count of its starts")?;
            }
            Event::StepRecovered { .. } => {
                ensure(effect != Effect::Once, "what is done once is recovered")?;
                self.unknown |= effect != Effect::Pure;
            }
            Event::StepError { failure, .. } => {
                self.unknown = failure.unknown || (self.unknown && !failure.absent);
                let lost = failure.permanent && self.unknown && effect != Effect::Pure;
                ensure(!lost, "an error for good although the effect may have happened")?;
            }
            Event::StepInDoubt { .. } => self.unknown = true,
            Event::StepWaiting { wait: Wait::Approval { .. }, shown, .. } => {
                self.asked += 1;
                self.first = shown.map(|digest| Intent { digest, effect });
            }
            Event::AnswerGiven { .. } => {
                self.asked = self.asked.checked_sub(1).ok_or("an answer without a question")?;
            }
            Event::DoubtResolved { word, .. } => {
                ensure(state.current.status == StepStatus::InDoubt, "nothing was in doubt")?;
                self.unknown = *word != Word::Absent;
                if *word == Word::Happened {
                    self.settle();
                }
            }
            Event::StepFinished { .. } | Event::StepSkipped { .. } | Event::StepFailed { .. } => self.settle(),
            Event::TaskFailed { .. } => self.asked = 0,
            _ => {}
        }
        Ok(())
    }

    fn settle(&mut self) {
        *self = Self { settled: self.settled + 1, ..Self::default() };
    }
}

fn ensure(holds: bool, why: &str) -> Result<(), String> {
    if holds { Ok(()) } else { Err(why.to_owned()) }
}

/// The same walks in each test run.
fn find_fault(decide: Decide<'_>) -> Result<(), String> {
    let config = Config { cases: 6000, failure_persistence: None, max_shrink_iters: 64, ..Config::default() };
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
    let fails_at_once = |state: &TaskState, command: &Command, now: Timestamp| {
        let mut events = decide(state, command, now)?;
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
    let looks_at_the_clock = |state: &TaskState, command: &Command, now: Timestamp| {
        asked.set(asked.get() + 1);
        if asked.get().is_multiple_of(7) { Err(Refused::StepsLeft(0)) } else { decide(state, command, now) }
    };
    assert!(find_fault(&looks_at_the_clock).expect_err("a clock").contains("otherwise in the same state"));
}

#[test]
fn an_effect_that_is_sent_again_though_nobody_knows_is_found() {
    let takes_unknown_for_absent = |state: &TaskState, command: &Command, now: Timestamp| {
        let mut forgets = *state;
        forgets.current.unknown = false;
        decide(&forgets, command, now)
    };
    assert!(find_fault(&takes_unknown_for_absent).is_err());
}

/// Three kills after the effect once left a task failed whose report was published, with no way on.
#[test]
fn a_task_whose_attempts_all_crashed_has_a_way_out() {
    let mut state = TaskState::created(1);
    let mut apply = |command: Command| {
        for event in decide(&state, &command, Timestamp::default()).expect("it is legal") {
            state = evolve(state, &event).expect("it can happen");
        }
        state
    };
    let (begin, start) = (
        Command::Begin(Terms::limit(3)),
        Command::Start { step: 0, tool: "a".to_owned(), budget: Budget::of(3), intent: None },
    );
    for _ in 0..3 {
        apply(begin.clone());
        assert_eq!(apply(start.clone()).running(), Some(0), "and its process is killed");
    }
    apply(begin.clone());
    assert_eq!(apply(start.clone()).status, TaskStatus::Failed);
    apply(Command::Retry);
    apply(begin);
    assert_eq!(apply(start).running(), Some(0));
    apply(Command::Finish { step: 0, tool: "a".to_owned(), adopted: false });
    assert_eq!(apply(Command::Complete).status, TaskStatus::Done);
}

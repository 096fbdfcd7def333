//! Machines with one planted fault each. The same runs and the same checks must find every one of them; a fault that
//! slips through would say that the check above proves nothing.

use std::cell::Cell;

use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};
use rstest::rstest;
use store::machine::{Budget, Command, Illegal, Refused, decide, evolve};
use store::model::{Event, FailReason, StepState, StepStatus, TaskState, TaskStatus};

use crate::random::runs;
use crate::world::{Machine, Shipped, World};

fn pending(state: TaskState) -> TaskState {
    TaskState { current: StepState { status: StepStatus::Pending, ..state.current }, ..state }
}

/// Begins without looking at what is running.
struct ForgetsRecovery;

impl Machine for ForgetsRecovery {
    fn decide(&self, state: &TaskState, command: &Command) -> Result<Vec<Event>, Refused> {
        let mut events = decide(state, command)?;
        events.retain(|event| !matches!(event, Event::StepRecovered { .. }));
        Ok(events)
    }

    fn evolve(&self, state: TaskState, event: &Event) -> Result<TaskState, Illegal> {
        if let Event::RunStarted { .. } = event { Ok(state) } else { evolve(state, event) }
    }
}

/// Sets the step back and does not say so.
struct RecoversInSilence;

impl Machine for RecoversInSilence {
    fn decide(&self, state: &TaskState, command: &Command) -> Result<Vec<Event>, Refused> {
        let Command::Begin(terms) = command else { return decide(state, command) };
        decide(state, command).map(|_| vec![Event::RunStarted { recovered: vec![], terms: terms.clone() }])
    }

    fn evolve(&self, state: TaskState, event: &Event) -> Result<TaskState, Illegal> {
        match event {
            Event::RunStarted { .. } if state.running().is_some() => Ok(pending(state)),
            event => evolve(state, event),
        }
    }
}

/// Announces the recovery of a step that was not running.
struct RecoversTooMuch;

impl Machine for RecoversTooMuch {
    fn decide(&self, state: &TaskState, command: &Command) -> Result<Vec<Event>, Refused> {
        let Command::Begin(terms) = command else { return decide(state, command) };
        decide(state, command)?;
        let recovered = vec![state.cursor];
        Ok(vec![Event::StepRecovered { step: state.cursor }, Event::RunStarted { recovered, terms: terms.clone() }])
    }

    fn evolve(&self, state: TaskState, event: &Event) -> Result<TaskState, Illegal> {
        if let Event::StepRecovered { .. } = event { Ok(pending(state)) } else { evolve(state, event) }
    }
}

/// Counts each attempt twice.
struct CountsTwice;

impl Machine for CountsTwice {
    fn evolve(&self, state: TaskState, event: &Event) -> Result<TaskState, Illegal> {
        let mut after = evolve(state, event)?;
        if let Event::StepStarted { .. } = event {
            after.current.attempts += 1;
        }
        Ok(after)
    }
}

/// Does not count an attempt that crashed.
struct ForgivesCrashes;

impl Machine for ForgivesCrashes {
    fn evolve(&self, state: TaskState, event: &Event) -> Result<TaskState, Illegal> {
        let mut after = evolve(state, event)?;
        if let Event::StepRecovered { .. } = event {
            after.current.attempts -= 1;
        }
        Ok(after)
    }
}

/// Allows one attempt more than the limit, or one less.
struct LimitOff(i64);

impl Machine for LimitOff {
    fn decide(&self, state: &TaskState, command: &Command) -> Result<Vec<Event>, Refused> {
        match command {
            Command::Start { step, tool, budget } => {
                let max_attempts = u32::try_from(i64::from(budget.max_attempts) + self.0).unwrap();
                decide(state, &Command::Start { step: *step, tool: tool.clone(), budget: Budget::of(max_attempts) })
            }
            command => decide(state, command),
        }
    }
}

/// A retry that leaves one attempt charged, or gives one more than the limit.
struct BudgetOff(i64);

impl BudgetOff {
    fn forgiven(&self, attempts: u32) -> u32 {
        u32::try_from(i64::from(attempts) + self.0).unwrap()
    }
}

impl Machine for BudgetOff {
    fn decide(&self, state: &TaskState, command: &Command) -> Result<Vec<Event>, Refused> {
        let mut events = decide(state, command)?;
        for event in &mut events {
            if let Event::TaskRetried { forgiven, .. } = event {
                *forgiven = self.forgiven(*forgiven);
            }
        }
        Ok(events)
    }

    fn evolve(&self, state: TaskState, event: &Event) -> Result<TaskState, Illegal> {
        let Event::TaskRetried { step: Some(step), forgiven } = event else { return evolve(state, event) };
        let mut after = evolve(state, &Event::TaskRetried { step: Some(*step), forgiven: state.current.attempts })?;
        after.current.forgiven = *forgiven;
        Ok(after)
    }
}

/// Sets a finished step back instead of moving on.
struct RunsAgain;

impl Machine for RunsAgain {
    fn evolve(&self, state: TaskState, event: &Event) -> Result<TaskState, Illegal> {
        match event {
            Event::StepFinished { .. } if state.current.attempts == 1 => Ok(pending(state)),
            event => evolve(state, event),
        }
    }
}

/// Starts the whole task anew after a crash.
struct Restarts;

impl Machine for Restarts {
    fn evolve(&self, state: TaskState, event: &Event) -> Result<TaskState, Illegal> {
        match event {
            Event::RunStarted { .. } => Ok(TaskState { status: state.status, ..TaskState::created(state.steps) }),
            event => evolve(state, event),
        }
    }
}

/// Is done one step early.
struct EndsEarly;

impl Machine for EndsEarly {
    fn decide(&self, state: &TaskState, command: &Command) -> Result<Vec<Event>, Refused> {
        match command {
            Command::Complete if state.cursor + 1 >= state.steps && !state.status.is_over() => {
                Ok(vec![Event::TaskDone])
            }
            command => decide(state, command),
        }
    }

    fn evolve(&self, state: TaskState, event: &Event) -> Result<TaskState, Illegal> {
        match event {
            Event::TaskDone => Ok(TaskState { status: TaskStatus::Done, ..state }),
            event => evolve(state, event),
        }
    }
}

/// Takes commands for a task that is done.
struct GoesOnWhenDone;

impl Machine for GoesOnWhenDone {
    fn decide(&self, state: &TaskState, command: &Command) -> Result<Vec<Event>, Refused> {
        match command {
            Command::Complete if state.no_step_left() => Ok(vec![Event::TaskDone]),
            command => decide(state, command),
        }
    }

    fn evolve(&self, state: TaskState, event: &Event) -> Result<TaskState, Illegal> {
        if *event == Event::TaskDone {
            Ok(TaskState { status: TaskStatus::Done, ..state })
        } else {
            evolve(state, event)
        }
    }
}

/// Fails the task at a tool's first error.
struct FailsAtOnce;

impl Machine for FailsAtOnce {
    fn decide(&self, state: &TaskState, command: &Command) -> Result<Vec<Event>, Refused> {
        let mut events = decide(state, command)?;
        if let Command::Fail { step, .. } = command {
            events.push(Event::TaskFailed { step: Some(*step), reason: FailReason::MaxAttempts, known: Vec::new() });
        }
        Ok(events)
    }
}

/// Decides by something that is not in the state.
#[derive(Default)]
struct LooksAtTheClock(Cell<u32>);

impl Machine for LooksAtTheClock {
    fn decide(&self, state: &TaskState, command: &Command) -> Result<Vec<Event>, Refused> {
        self.0.set(self.0.get() + 1);
        match command {
            Command::Begin { .. } if self.0.get().is_multiple_of(7) => Err(Refused::StepsLeft(0)),
            command => decide(state, command),
        }
    }
}

/// The same runs for each machine, and the same in each test run.
fn find_fault(machine: &dyn Machine) -> Result<(), String> {
    let config = Config { cases: 2000, failure_persistence: None, max_shrink_iters: 64, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    runner
        .run(&runs(), |(steps, limit, ops)| World::play(machine, steps, limit, &ops).map_err(TestCaseError::fail))
        .map_err(|found| found.to_string())
}

#[rstest]
#[case::forgets_recovery(&ForgetsRecovery, "was found running")]
#[case::recovers_in_silence(&RecoversInSilence, "was found running")]
#[case::recovers_too_much(&RecoversTooMuch, "recovered")]
#[case::counts_twice(&CountsTwice, "2 attempts, 1 starts")]
#[case::forgives_crashes(&ForgivesCrashes, "0 attempts, 1 starts")]
#[case::allows_an_attempt_more(&LimitOff(1), "its attempts are used up")]
#[case::allows_an_attempt_less(&LimitOff(-1), "failed after")]
#[case::forgives_too_little(&BudgetOff(-1), "exactly one fresh budget")]
#[case::forgives_too_much(&BudgetOff(1), "exactly one fresh budget")]
#[case::runs_a_committed_step_again(&RunsAgain, "the state is at 0, the journal at 1")]
#[case::restarts(&Restarts, "attempts")]
#[case::ends_early(&EndsEarly, "steps are left")]
#[case::goes_on_when_done(&GoesOnWhenDone, "after task_done")]
#[case::fails_at_once(&FailsAtOnce, "failed after 1 attempts of")]
#[case::looks_at_the_clock(&LooksAtTheClock::default(), "equal states, other decisions")]
fn a_machine_with_this_fault_is_found_out(#[case] machine: &dyn Machine, #[case] why: &str) {
    let found = find_fault(machine).expect_err("the fault went unnoticed");
    assert!(found.contains(why), "{found}");
}

#[test]
fn the_machine_that_ships_passes_the_same_runs() {
    assert_eq!(find_fault(&Shipped), Ok(()));
}

//! Random runs with crashes: any sequence keeps the properties.

use proptest::prelude::*;
use store::machine::Command;

use crate::world::{Op, Shipped, World};

/// One to three steps, one to three attempts, and up to sixty things that happen.
pub(crate) fn runs() -> impl Strategy<Value = (u32, u32, Vec<Op>)> {
    (1u32..4, 1u32..4, proptest::collection::vec(op(), 0..60))
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        12 => Just(Op::Go),
        2 => Just(Op::ToolFails),
        2 => Just(Op::Crash),
        1 => Just(Op::CrashBeforeCommit),
        2 => Just(Op::CrashAfterEffect),
        2 => Just(Op::Retry),
        2 => stray().prop_map(Op::Stray),
    ]
}

/// Commands by somebody who does not know the state. A `Begin` or `Start` under another limit is not among them:
/// what a limit means when it changes is in the tables.
fn stray() -> impl Strategy<Value = Command> {
    let tool = || "stray".to_owned();
    prop_oneof![
        (0u32..5).prop_map(move |step| Command::Finish { step, tool: tool() }),
        (0u32..5).prop_map(|step| Command::Fail { step, error: "stray".to_owned() }),
        Just(Command::Complete),
        Just(Command::Retry),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_sequence_of_commands_and_crashes_keeps_the_properties((steps, limit, ops) in runs()) {
        World::play(&Shipped, steps, limit, &ops).map_err(TestCaseError::fail)?;
    }
}

#[test]
fn recovery_that_is_killed_three_times_recovers_the_same_step_until_it_has_committed() {
    let mut ops = vec![Op::Go, Op::Go];
    ops.extend([Op::CrashBeforeCommit, Op::CrashBeforeCommit, Op::CrashBeforeCommit].iter().cloned());
    World::play(&Shipped, 2, 3, &ops).unwrap();
}

/// Three kills after the effect once left a task failed whose report was published, with no way on.
#[test]
fn a_task_whose_attempts_all_crashed_has_a_way_out() {
    let attempt = [Op::Go, Op::Go, Op::CrashAfterEffect];
    let ops: Vec<Op> = attempt.iter().cycle().take(9).cloned().chain([Op::Go, Op::Go]).collect();
    World::play(&Shipped, 1, 3, &ops).unwrap();
}

//! Fuzzing as an ordinary property, with few cases.

use std::path::Path;
use std::sync::Arc;

use chaos::agent::target::Target;
use chaos::case::plan::PlanCase;
use chaos::look::lab::Lab;
use chaos::look::sandbox::default_root;
use chaos::method::fuzz;
use chaos::play::prepared::Prepared;
use chaos::report::model::VerdictKind;
use predicates::str::contains;
use proptest::test_runner::{Config, TestCaseError, TestRunner};

use crate::support::{Broken, chaos, honest, run};

const CASES: u32 = 12;

#[test]
fn random_plans_survive_random_kills() {
    let target = Target::new(&honest(), Path::new("/"), Vec::new()).expect("a target");
    let lab = Arc::new(Lab {
        target,
        launcher: env!("CARGO_BIN_EXE_chaos").into(),
        root: default_root(),
        seed: 1,
        cases: Some(CASES),
        deep: false,
        replay_options: String::new(),
    });
    let ready = Prepared::prepare(&lab, &Arc::new(PlanCase::report()), 2).expect("a plan made ready");
    let config = Config { cases: CASES, max_shrink_iters: 20, failure_persistence: None, ..Config::default() };
    let property = |case| {
        let played = fuzz::one(&ready, &case).map_err(|e| TestCaseError::fail(e.to_string()))?;
        match played.verdict() {
            VerdictKind::Holds => Ok(()),
            _ => Err(TestCaseError::fail(format!("{:#?}", played.findings))),
        }
    };
    let result = TestRunner::new(config).run(&fuzz::strategy(&ready), property);
    if let Err(error) = result {
        panic!("{error}");
    }
}

#[test]
fn a_failure_shrinks_to_a_small_case_that_can_be_replayed() {
    let agent = Broken::new("agent.py", "task.journal(\"step_recovered\", idx)", "pass");
    let assert = run(&agent.command(), "fuzz").args(["--cases", "4"]).assert().code(1);
    let text = String::from_utf8(assert.get_output().stdout.clone()).expect("text");
    let said = String::from_utf8_lossy(&assert.get_output().stderr);
    assert!(!said.to_lowercase().contains("proptest"), "proptest speaks to the user: {said}");
    let again = text.lines().find_map(|line| line.trim().strip_prefix("again: chaos replay '"));
    let subject = again.and_then(|rest| rest.split('\'').next()).expect("a replay command");
    assert!(subject.starts_with("fuzz/fetch="), "not minimal: {subject}");
    assert!(!subject.contains(','), "more than one step or kill: {subject}");
    chaos(&["replay", subject, "--agent", &agent.command()]).assert().code(1).stdout(contains("recovery_explicit"));
    chaos(&["replay", subject, "--agent", &honest()]).assert().code(0);
}

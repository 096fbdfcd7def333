//! Plans that must be refused, with the place of the fault, before anything is stored.

use fixtures::{bad_plans, contract};

use crate::lab::Lab;

#[test]
fn every_bad_plan_is_refused_with_its_place_and_leaves_no_database() {
    for plan in bad_plans() {
        let lab = Lab::new();
        let before = lab.tree();
        let path = plan.path.to_str().unwrap();
        let ran = lab.agent(["create", "t1", path]).fails(65).says(path);
        for part in &plan.expect {
            assert!(ran.stderr.contains(part), "{}: {part} is not in {}", plan.name, ran.stderr);
        }
        assert!(ran.stdout.is_empty());
        assert_eq!(lab.tree(), before, "{}", plan.name);
    }
}

#[test]
fn a_bad_plan_leaves_an_existing_database_as_it_is() {
    for point in [None, Some("after_effect:2")] {
        let lab = point.map_or_else(Lab::with_task, Lab::killed_at);
        let before = lab.tree();
        assert!(before.contains_key(contract::DEFAULT_DB));
        for plan in bad_plans() {
            lab.agent(["create", "t2", plan.path.to_str().unwrap()]).fails(65);
            assert_eq!(lab.tree(), before, "{}", plan.name);
        }
        lab.agent(["status", "t2"]).fails(1);
    }
}

/// Once this was found out only when the step ran, after the steps before it had had their effects.
#[test]
fn a_reference_forward_is_found_before_any_effect() {
    let lab = Lab::new();
    let plan = r#"{"goal":"g","steps":[
        {"tool":"fetch","input":{"path":"input/notes.txt"}},
        {"tool":"summarize","input":{"from":0}},
        {"tool":"write_artifact","input":{"from":1}},
        {"tool":"write_artifact","input":{"from":4}},
        {"tool":"summarize","input":{"from":0}}]}"#;
    lab.write("plan.json", plan);
    lab.agent(["create", "t1", "plan.json"]).fails(65).says("step 3 (write_artifact)").says("`from`");
    assert!(lab.artifacts().is_empty());
}

#[test]
fn a_good_plan_is_accepted_with_the_same_call() {
    let lab = Lab::new();
    let ran = lab.agent(["create", "t1", "plan.json"]).exits(0).says("3 steps");
    assert!(ran.stdout.is_empty());
    let journal = lab.journal("t1");
    assert_eq!(crate::journal::kinds(&journal), ["task_created"]);
    assert_eq!(journal[0]["steps"], 3);
}

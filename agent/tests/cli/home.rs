//! A task is at home in the folder in which it was created, wherever it is run from.

use std::fs;

use rusqlite::OptionalExtension as _;

use crate::journal::{assert_sound, kinds};
use crate::lab::{Lab, names};

fn elsewhere(lab: &Lab) {
    fs::create_dir(lab.path("elsewhere")).unwrap();
}

fn home(lab: &Lab) -> Option<String> {
    let conn = rusqlite::Connection::open(lab.path("state.db")).unwrap();
    conn.query_row("SELECT home FROM tasks WHERE id = 't1'", [], |row| row.get(0)).optional().unwrap().flatten()
}

/// Relative paths followed the caller's folder: run from another one, the same task published its report twice, and
/// `verify` called everything missing.
#[test]
fn a_task_runs_the_same_from_any_folder() {
    let lab = Lab::killed_at("after_effect:2");
    elsewhere(&lab);
    let ran = lab.call(["--db", "../state.db", "run", "t1"]).within("elsewhere").ran();
    ran.exits(0);
    assert_eq!(names(&lab.path("elsewhere")), Vec::<String>::new());
    assert_eq!(lab.artifacts(), ["t1-2.md"]);
    let output: String = lab.query("SELECT output FROM steps WHERE task_id = 't1' AND idx = 2");
    assert!(output.contains(r#""path":"artifacts/t1-2.md""#) && output.contains("true"), "{output}");
    lab.call(["--db", "../state.db", "verify"]).within("elsewhere").ran().exits(0);
    assert_sound(&lab, "t1", None);
}

#[test]
fn a_task_moves_along_with_its_database() {
    let lab = Lab::new();
    fs::create_dir(lab.path("project")).unwrap();
    fs::rename(lab.path("input"), lab.path("project/input")).unwrap();
    lab.call(["create", "t1", "../plan.json"]).within("project").ran().exits(0);
    lab.call(["run", "t1"]).within("project").env("AGENT_CRASH_AT", "after_effect:2").ran().exits(137);
    fs::rename(lab.path("project"), lab.path("moved")).unwrap();
    lab.agent(["--db", "moved/state.db", "run", "t1"]).exits(0);
    assert_eq!(names(&lab.path("moved/artifacts")), ["t1-2.md"]);
    lab.agent(["--db", "moved/state.db", "verify"]).exits(0);
}

#[test]
fn a_home_that_is_gone_is_one_line_and_there_is_a_way_on() {
    let lab = Lab::new();
    fs::create_dir(lab.path("work")).unwrap();
    fs::rename(lab.path("input"), lab.path("work/input")).unwrap();
    lab.call(["--db", "../state.db", "create", "t1", "../plan.json"]).within("work").ran().exits(0);
    assert_eq!(home(&lab).unwrap(), "work");
    fs::rename(lab.path("work"), lab.path("renamed")).unwrap();
    let before = lab.tree();
    lab.agent(["run", "t1"]).fails(66).says("agent rebind t1 --home");
    lab.agent(["rebind", "t1", "--home", "work"]).fails(66).says("work");
    lab.agent(["rebind", "t1", "--out", "report.json"]).fails(64).says("agent inbox");
    lab.agent(["rebind", "t1"]).exits(64);
    assert_eq!(lab.tree(), before, "what is refused changes nothing");

    lab.agent(["rebind", "t1", "--home", "renamed"]).exits(0);
    assert_eq!(home(&lab).unwrap(), "renamed");
    let rebound = lab.journal("t1").pop().unwrap();
    assert_eq!((rebound["kind"].as_str(), rebound["home"].as_str()), (Some("task_rebound"), Some("renamed")));
    lab.agent(["run", "t1"]).exits(0);
    assert_eq!(names(&lab.path("renamed/artifacts")), ["t1-2.md"]);
    assert_sound(&lab, "t1", None);
}

/// Another AGENT_ARTIFACTS did the same as another folder: the report stood twice.
#[test]
fn a_step_that_was_interrupted_is_not_repeated_into_another_artifacts_folder() {
    let lab = Lab::killed_at("after_effect:2");
    let other = || lab.call(["run", "t1"]).env("AGENT_ARTIFACTS", "other");
    let before = lab.journal("t1");
    other().ran().fails(4).says("AGENT_ARTIFACTS=artifacts");
    assert_eq!(lab.journal("t1"), before);
    // Also once it has been recovered, and no step is running any more.
    lab.call(["run", "t1"]).env("AGENT_CRASH_AT", "run.started").ran().exits(137);
    other().ran().fails(4).says("AGENT_ARTIFACTS=artifacts");
    assert!(!lab.path("other").exists());
    lab.call(["run", "t1"]).env("AGENT_ARTIFACTS", "./artifacts/").ran().exits(0);
    assert_eq!(lab.artifacts(), ["t1-2.md"]);
    assert_sound(&lab, "t1", None);
}

#[test]
fn a_step_that_failed_in_order_may_go_to_another_artifacts_folder() {
    let lab = Lab::with_task();
    lab.write("artifacts", "this is a file");
    lab.agent(["run", "t1"]).exits(2).says("artifacts");
    lab.agent(["retry", "t1"]).exits(0);
    lab.call(["run", "t1"]).env("AGENT_ARTIFACTS", "other").ran().exits(0);
    assert_eq!(names(&lab.path("other")), ["t1-2.md"]);
    assert_sound(&lab, "t1", None);
}

#[test]
fn a_task_of_an_earlier_version_is_at_home_where_it_is_resumed_first() {
    let lab = Lab::golden("v2-killed-after-commit-1");
    let task: String = lab.query("SELECT id FROM tasks");
    lab.call(["run", &task]).env("AGENT_CRASH_AT", "run.started").ran().exits(137);
    let started = lab.journal(&task).pop().unwrap();
    assert_eq!((started["kind"].as_str(), started["home"].as_str()), (Some("run_started"), Some(".")));
    elsewhere(&lab);
    lab.call(["--db", "../state.db", "run", &task]).within("elsewhere").ran().exits(0);
    assert_eq!(names(&lab.path("elsewhere")), Vec::<String>::new());
    assert!(!kinds(&lab.journal(&task)).contains(&"step_error:2".to_owned()));
    lab.agent(["verify"]).exits(0);
}

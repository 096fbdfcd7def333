//! One row that cannot be read stops its own task, and no other.

use rstest::rstest;

use crate::journal::assert_sound;
use crate::lab::Lab;

/// One bad row made `list` and `verify` fail for all tasks, and nobody could see what was wrong with the others.
#[rstest]
#[case::status("UPDATE tasks SET status = 'dancing' WHERE id = 'bad'", true)]
#[case::goal("UPDATE tasks SET goal = x'ff00' WHERE id = 'bad'", true)]
#[case::no_goal("UPDATE tasks SET goal = NULL WHERE id = 'bad'", true)]
#[case::id("UPDATE tasks SET id = 'b' || char(7) || 'd' WHERE id = 'bad'", true)]
#[case::time("UPDATE tasks SET created_at = 'yesterday' WHERE id = 'bad'", true)]
#[case::step("UPDATE steps SET status = 'dancing' WHERE task_id = 'bad'", true)]
#[case::attempts("UPDATE steps SET attempts = -1 WHERE task_id = 'bad'", true)]
#[case::event("UPDATE events SET data = 'no JSON' WHERE task_id = 'bad'", false)]
#[case::event_of_nobody("UPDATE events SET task_id = '' WHERE task_id = 'bad'", false)]
fn one_bad_row_stops_only_itself(#[case] sql: &str, #[case] is_listed_as_bad: bool) {
    let lab = Lab::new();
    for task in ["t1", "bad", "t2"] {
        lab.agent(["create", task, "plan.json"]).exits(0);
    }
    lab.agent(["run", "t2"]).exits(0);
    lab.sql(sql);
    let list = lab.agent(["list"]);
    assert!(["t1", "t2"].iter().all(|task| list.stdout.contains(task)), "{list:?}");
    match is_listed_as_bad {
        true => drop(list.fails(78).says("state.db is out of order")),
        false => drop(list.exits(0)),
    }
    lab.agent(["run", "t1"]).exits(0);
    assert_sound(&lab, "t1", None);
    lab.agent(["verify", "t2"]).exits(0);
    std::fs::remove_file(lab.path("artifacts/t2-2.md")).unwrap();
    let found = lab.agent(["verify"]).exits(5).stdout;
    // What is wrong with another task is found all the same.
    assert!(found.lines().any(|line| line.starts_with("task `t2`, step 2: ")), "{found}");
    assert!(found.lines().any(|line| !line.contains("`t2`")), "{found}");
    // That a row cannot be read does not mean that it is not there.
    if sql.contains("SET status") || sql.contains("SET goal") {
        assert!(!found.contains("the tables do not have it"), "{found}");
    }
}

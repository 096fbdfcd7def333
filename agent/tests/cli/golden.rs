//! Databases of every schema version, as users have them.

use fixtures::{Golden, contract, golden};

use crate::journal::{assert_sound, recovered};
use crate::lab::Lab;

#[test]
fn every_golden_database_is_resumed_to_the_right_end() {
    for Golden { name, story, .. } in golden() {
        let lab = Lab::golden(&name);
        let neighbour = (lab.status("neighbour"), lab.journal("neighbour"));
        let before = lab.journal("t1");
        let failed = story == "failed";
        lab.agent(["run", "t1"]).exits(if failed { contract::EXIT_FAILED } else { contract::EXIT_OK });
        let journal = lab.journal("t1");
        assert_eq!(journal[..before.len()], before, "{name}: the past is not rewritten");
        let open = !["failed", "done"].contains(&story.as_str());
        assert_eq!(lab.artifacts().len(), usize::from(open), "{name}: a task that is over has no effect again");
        if open {
            let due = match story.as_str() {
                "killed-before-effect-0" => vec![0],
                "killed-after-effect-2" | "retried-and-killed-after-effect-2" => vec![2],
                _ => vec![],
            };
            assert_eq!(recovered(&journal).pop(), Some(due), "{name}");
            assert_sound(&lab, "t1", None);
            assert_eq!(lab.query::<u32>("PRAGMA user_version"), store::sqlite::VERSION);
        }
        assert_eq!((lab.status("neighbour"), lab.journal("neighbour")), neighbour, "{name}");
    }
}

#[test]
fn the_neighbour_in_every_golden_database_is_resumed_as_well() {
    for Golden { name, .. } in golden() {
        let lab = Lab::golden(&name);
        lab.agent(["run", "neighbour"]).exits(0);
        assert_eq!(recovered(&lab.journal("neighbour")), [vec![], vec![0]]);
        assert_sound(&lab, "neighbour", None);
    }
}

#[test]
fn what_waits_in_a_golden_database_goes_on_as_it_was_promised() {
    let lab = Lab::golden("v4-waiting");
    lab.agent(["run", "doubt"]).exits(6).says("agent resolve doubt 0");
    lab.agent(["run", "later", "--no-wait"]).exits(7);
    assert_eq!(lab.steps("later")[0].1, 2, "its time has come since, and it asks for another");
    lab.agent(["run", "cancelled"]).exits(8);
    lab.agent(["resolve", "doubt", "0", "--happened", "{}", "--why", "seen"]).exits(0);
    lab.agent(["run", "doubt"]).exits(0);
    lab.agent(["verify"]).exits(0);
}

#[test]
fn what_a_killed_old_agent_had_published_is_not_published_again() {
    let fresh = Lab::golden("v1-killed-after-effect-2");
    fresh.agent(["run", "t1"]).exits(0);
    let lab = Lab::golden("v1-killed-after-effect-2");
    lab.write("artifacts/t1-2.md", fresh.report());
    lab.write("artifacts/.t1-2.4194305.tmp", "half");
    lab.agent(["run", "t1"]).exits(0);
    assert_eq!(lab.artifacts(), ["t1-2.md"]);
    let output: String = lab.query("SELECT output FROM steps WHERE task_id = 't1' AND idx = 2");
    assert!(output.contains(r#""deduplicated":true"#), "{output}");
    assert_sound(&lab, "t1", None);
}

#[test]
fn a_task_that_failed_under_an_old_agent_can_be_retried() {
    let lab = Lab::golden("v1-failed");
    lab.agent(["retry", "t1"]).exits(0);
    lab.agent(["run", "t1"]).exits(0);
    assert_eq!(lab.artifacts(), ["t1-2.md"]);
    lab.agent(["verify", "t1"]).exits(0);
}

/// The columns of version 1 mean what they meant, so that old readers keep working.
#[test]
fn a_migrated_database_still_has_the_tables_of_version_1() {
    let lab = Lab::golden("v1-pending");
    lab.agent(["run", "t1"]).exits(0);
    for (table, columns) in contract::TABLES_V1 {
        let found: String = lab.query(&format!("SELECT group_concat(name) FROM pragma_table_info('{table}')"));
        assert!(found.starts_with(&columns.join(",")), "{table}: {found}");
    }
}

//! Bugs of a process as a whole: its settings, its exit code, what it does before and after.

use std::path::Path;

use agent::{Config, Exit};
use rusqlite::Connection;
use serde_json::Value;

use super::{BUG, Bug, SECOND};
use crate::plant::{HONEST, Plant};
use crate::unit::{execute, now};

pub(super) static BUGS: &[Bug] = &[
    Bug {
        name: "attempt_in_key",
        about: "The idempotency key has the number of the attempt in it.",
        caught_by: &["effect_once"],
        plant: Plant { config: |config| config.unsafe_keys = true, ..HONEST },
        ..BUG
    },
    Bug {
        name: "attempt_limit_ignored",
        about: "A step that kills its process is tried for ever.",
        methods: &["poison"],
        caught_by: &["given_up", "exit_code"],
        plant: Plant { config: |config| config.max_attempts = u32::MAX, ..HONEST },
        ..BUG
    },
    Bug {
        name: "attempt_limit_fixed",
        about: "AGENT_MAX_ATTEMPTS is ignored, the limit is always 3.",
        methods: &["poison", "rerun"],
        caught_by: &["given_up", "exit_code"],
        plant: Plant { config: |config| config.max_attempts = 3, ..HONEST },
        ..BUG
    },
    Bug {
        name: "failure_says_done",
        about: "A failed task ends with exit code 0.",
        methods: &["poison", "rerun"],
        caught_by: &["exit_code"],
        plant: Plant { exit: |exit| if exit == Exit::TaskFailed { Exit::Done } else { exit }, ..HONEST },
        ..BUG
    },
    Bug {
        name: "refusal_says_done",
        about: "A runner that does not get the lock ends with exit code 0.",
        methods: &["race"],
        part: SECOND,
        caught_by: &["exit_code"],
        plant: Plant { exit: |exit| if exit == Exit::Held { Exit::Done } else { exit }, ..HONEST },
        ..BUG
    },
    Bug {
        name: "deaf_to_kills",
        about: "Crash points do nothing, so that every crash test would pass.",
        caught_by: &["exit_code"],
        plant: Plant { config: |config| config.crash_at = None, ..HONEST },
        ..BUG
    },
    Bug {
        name: "control_without_effect",
        about: "The variables that make effects unsafe do nothing.",
        methods: &["control"],
        caught_by: &["control_bites"],
        plant: Plant { config: safe, ..HONEST },
        ..BUG
    },
    Bug {
        name: "plan_read_again",
        about: "Each run reads the plan file again and puts its steps in the place of the frozen ones.",
        methods: &["drift"],
        caught_by: &["state_preserved"],
        plant: Plant { before: plan_again, ..HONEST },
        ..BUG
    },
    Bug {
        name: "outputs_made_anew",
        about: "A resumed run reads the inputs of its finished steps again and stores what they say now.",
        methods: &["drift"],
        caught_by: &["state_preserved"],
        plant: Plant { before: fetch_again, ..HONEST },
        ..BUG
    },
    Bug {
        name: "process_left_behind",
        about: "A run starts a process that outlives it.",
        caught_by: &["no_stray_files"],
        plant: Plant { after: |_, _| leave_a_process(), ..HONEST },
        ..BUG
    },
    Bug {
        name: "finished_task_journals",
        about: "A run of a finished task announces itself.",
        methods: &["rerun"],
        caught_by: &["nothing_changed", "one_run_started"],
        plant: Plant { before: announce, ..HONEST },
        ..BUG
    },
    Bug {
        name: "no_wal",
        about: "A finished run leaves the database in another journal mode.",
        caught_by: &["database_sound"],
        plant: Plant { after: |db, _| Connection::open(db)?.pragma_update(None, "journal_mode", "DELETE"), ..HONEST },
        ..BUG
    },
];

fn safe(config: &mut Config) {
    config.world.unsafe_effects = false;
    config.unsafe_keys = false;
}

/// What is not there or no plan changes nothing: whoever reads a plan again trusts it.
fn plan_again(db: &Path, task: &str) -> rusqlite::Result<()> {
    const SQL: &str = "UPDATE steps SET tool = ?1, input = ?2 WHERE task_id = ?3 AND idx = ?4 AND status <> 'done'";
    let text = std::fs::read_to_string("plan.json").unwrap_or_default();
    let plan: Value = serde_json::from_str(&text).unwrap_or_default();
    let conn = Connection::open(db)?;
    for (idx, step) in (0u32..).zip(plan["steps"].as_array().into_iter().flatten()) {
        let tool = step["tool"].as_str().unwrap_or_default();
        conn.execute(SQL, rusqlite::params![tool, step["input"].to_string(), task, idx])?;
    }
    Ok(())
}

fn fetch_again(db: &Path, task: &str) -> rusqlite::Result<()> {
    const READ: &str = "SELECT idx, json_extract(input, '$.path') FROM steps
         WHERE task_id = ?1 AND status = 'done' AND tool = 'fetch'";
    const STORE: &str = "UPDATE steps SET output = json_set(output, '$.text', ?1) WHERE task_id = ?2 AND idx = ?3";
    let conn = Connection::open(db)?;
    let mut query = conn.prepare(READ)?;
    let steps = query.query_map([task], |row| Ok((row.get(0)?, row.get(1)?)))?;
    for (idx, path) in steps.collect::<rusqlite::Result<Vec<(u32, String)>>>()? {
        if let Ok(text) = std::fs::read_to_string(path) {
            conn.execute(STORE, rusqlite::params![text, task, idx])?;
        }
    }
    Ok(())
}

fn leave_a_process() -> rusqlite::Result<()> {
    // Where it cannot be started there is no bug, and the lab says that it has caught none.
    drop(std::process::Command::new("sleep").arg("1").spawn());
    Ok(())
}

fn announce(db: &Path, task: &str) -> rusqlite::Result<()> {
    const SQL: &str = "INSERT INTO events(ts, task_id, run_id, kind, data)
         SELECT ?3, id, ?2, 'run_started', '{\"recovered\":[]}' FROM tasks
         WHERE id = ?1 AND status IN ('done', 'failed')";
    let run = store::model::RunId::random();
    execute(&Connection::open(db)?, SQL, task, run.as_str(), now())
}

//! The floor for benchmarks: the same two transactions per step as the agent, as a bare rusqlite loop.
//!
//! `floor create DB STEPS` makes the tables and rows, `floor run DB` runs the steps. No checks, no lock, no model: what
//! is left is what SQLite itself costs, and the agent's speed is told as a ratio to it.

use std::env;
use std::time::{SystemTime, UNIX_EPOCH};

use rusqlite::{Connection, TransactionBehavior, params};

fn main() -> rusqlite::Result<()> {
    let args: Vec<String> = env::args().collect();
    let words: Vec<&str> = args.iter().skip(1).map(String::as_str).collect();
    match words[..] {
        ["create", db, steps] => create(db, steps.parse().unwrap_or(1000)),
        ["run", db] => run(db),
        _ => panic!("usage: floor create DB STEPS | floor run DB"),
    }
}

fn open(db: &str) -> rusqlite::Result<Connection> {
    let conn = Connection::open(db)?;
    conn.execute_batch("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON;")?;
    Ok(conn)
}

fn create(db: &str, steps: u32) -> rusqlite::Result<()> {
    let mut conn = open(db)?;
    conn.execute_batch(include_str!("../src/sqlite/migrations/0001.sql"))?;
    let tx = conn.transaction()?;
    tx.execute("INSERT INTO tasks VALUES ('t', 'g', 'pending', 0, 0)", [])?;
    for idx in 0..steps {
        tx.execute("INSERT INTO steps(task_id, idx, tool, input) VALUES ('t', ?1, 'echo', '{\"value\":1}')", [idx])?;
    }
    tx.commit()
}

fn run(db: &str) -> rusqlite::Result<()> {
    let mut conn = open(db)?;
    let steps: u32 = conn.query_row("SELECT count(*) FROM steps", [], |row| row.get(0))?;
    for idx in 0..steps {
        let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
        tx.prepare_cached(
            "UPDATE steps SET status = 'running', attempts = attempts + 1 WHERE task_id = 't' AND idx = ?1",
        )?
        .execute([idx])?;
        journal(&tx, idx, "step_started", "{\"attempt\":1,\"tool\":\"echo\"}")?;
        tx.commit()?;
        let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
        tx.prepare_cached("UPDATE steps SET status = 'done', output = ?2 WHERE task_id = 't' AND idx = ?1")?
            .execute(params![idx, "{\"value\":1}"])?;
        journal(&tx, idx, "step_finished", "{\"tool\":\"echo\"}")?;
        tx.commit()?;
    }
    Ok(())
}

fn journal(conn: &Connection, idx: u32, kind: &str, data: &str) -> rusqlite::Result<usize> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64());
    conn.prepare_cached(
        "INSERT INTO events(ts, task_id, run_id, kind, step_idx, data) VALUES (?1, 't', 'r', ?2, ?3, ?4)",
    )?
    .execute(params![now, kind, idx, data])
}

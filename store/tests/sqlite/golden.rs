//! Databases of every schema version, as users have them.

use std::path::Path;

use fixtures::{Golden, Sandbox};
use serde_json::json;
use store::audit::audit;
use store::machine::{Budget, Command, Next, next};
use store::model::{Effect, Event, RunId, StepStatus, TaskStatus, Terms, Timestamp};
use store::sqlite::{SqliteReader, SqliteStore, VERSION, lock_path};
use store::{Crash, ErrorKind, Reader, Store, TaskSession};

use crate::support::{id, object, raw, session, v1_rows};

fn each_golden(check: impl Fn(&str, &Sandbox, &Path)) {
    let all = fixtures::golden();
    for version in 1..=VERSION {
        assert!(all.iter().filter(|golden| golden.version == version).count() >= 6, "version {version}");
    }
    for Golden { name, .. } in all {
        let sandbox = Sandbox::golden(&name);
        check(&name, &sandbox, &sandbox.file("state.db"));
    }
}

/// As SQLite keeps it; 0 stands for version 1.
fn version(path: &Path) -> u32 {
    raw(path).query_row("PRAGMA user_version", [], |row| row.get(0)).unwrap()
}

#[test]
fn are_read_without_being_migrated() {
    each_golden(|name, sandbox, path| {
        let before = sandbox.tree();
        let mut reader = SqliteReader::open(path).unwrap();
        assert_eq!(audit(&mut reader, None).unwrap(), [], "{name}");
        assert_eq!(reader.tasks().unwrap().len(), if name.ends_with("waiting") { 5 } else { 2 }, "{name}");
        assert!(reader.journal(None, 0, 100).unwrap().len() >= 4, "{name}");
        assert_eq!(sandbox.tree(), before, "{name}");
    });
}

#[test]
fn are_migrated_with_every_row_kept() {
    each_golden(|name, _sandbox, path| {
        let before = v1_rows(path);
        assert!(name.starts_with(&format!("v{}-", version(path).max(1))), "{name} is of version {}", version(path));
        for _ in 0..2 {
            let mut store = SqliteStore::open(path, Crash::off()).unwrap();
            store.acquire(&id("t1"), &RunId::random()).unwrap();
            drop(store);
            assert_eq!(version(path), VERSION);
            assert_eq!(v1_rows(path), before, "{name}");
        }
        assert_eq!(audit(&mut SqliteReader::open(path).unwrap(), None).unwrap(), [], "{name}");
    });
}

#[test]
fn resume_from_where_they_stopped_and_leave_the_neighbour_alone() {
    each_golden(|name, _sandbox, path| {
        let mut store = SqliteStore::open(path, Crash::off()).unwrap();
        let neighbour = neighbour_rows(path);
        let rows = store.steps(&id("t1"), 0, 10).unwrap();
        let with =
            |status| -> Vec<u32> { rows.iter().filter(|row| row.state.status == status).map(|row| row.idx).collect() };
        let (running, done) = (with(StepStatus::Running), with(StepStatus::Done));

        let mut session = session(&mut store, &id("t1"));
        let started = resume(&mut session, &running);
        assert!(started.iter().all(|step| !done.contains(step)), "{name}: {started:?} after {done:?}");
        assert_eq!(done.len() + started.len(), 3, "{name}");
        assert_eq!(session.state().status, TaskStatus::Done, "{name}");
        drop(session);
        for step in 0..3 {
            assert!(store.output(&id("t1"), step).unwrap().is_some(), "{name}");
        }
        drop(store);
        assert_eq!(audit(&mut SqliteReader::open(path).unwrap(), None).unwrap(), [], "{name}");
        assert_eq!(neighbour_rows(path), neighbour, "{name}");
        assert!(neighbour.iter().any(|row| row.contains("'running'")), "{name}: the neighbour is running");
    });
}

fn neighbour_rows(path: &Path) -> Vec<String> {
    v1_rows(path).into_iter().filter(|row| row.contains("'neighbour'")).collect()
}

/// Brings the task to its end and says which steps it started. Recovery must name just the steps in `running`.
fn resume(session: &mut TaskSession<'_>, running: &[u32]) -> Vec<u32> {
    if session.state().status == TaskStatus::Failed {
        session.apply(&Command::Retry).unwrap();
    }
    if session.state().status == TaskStatus::Done {
        session.apply(&Command::Begin(Terms::limit(3))).unwrap_err();
        return Vec::new();
    }
    let events = session.apply(&Command::Begin(Terms::limit(3))).unwrap();
    let last = Event::RunStarted { recovered: running.to_vec(), terms: Terms::limit(3) };
    assert_eq!(events.last(), Some(&last));
    let mut started = Vec::new();
    while let Next::Step(step) = next(&session.state(), Timestamp::default()) {
        let tool = ["fetch", "summarize", "write_artifact"][step as usize];
        session.apply(&Command::Start { step, tool: tool.to_owned(), budget: Budget::of(3), intent: None }).unwrap();
        session.finish(step, tool, object(json!({ "made": "by the test" }))).unwrap();
        started.push(step);
    }
    session.apply(&Command::Complete).unwrap();
    started
}

/// A run that was refused because an old agent was at work had migrated that agent's database on the way; the old agent
/// finished, and could not be started again.
#[test]
fn are_not_migrated_by_a_run_that_is_refused() {
    let sandbox = Sandbox::golden("v1-killed-after-effect-2");
    let path = sandbox.file("state.db");
    let old_agent = std::fs::File::create(lock_path(&path, &id("t1"))).unwrap();
    old_agent.lock().unwrap();
    let mut store = SqliteStore::open(&path, Crash::off()).unwrap();
    let error = store.acquire(&id("t1"), &RunId::random()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Held);
    assert_eq!(version(&path), 0);
    drop(old_agent);
    store.acquire(&id("t1"), &RunId::random()).unwrap();
    assert_eq!(version(&path), VERSION);
}

/// What waits, is in doubt or is over in a database of another build of this version is so in this one.
#[test]
fn keep_what_waits_and_what_is_in_doubt() {
    let sandbox = Sandbox::golden("v4-waiting");
    let mut store = SqliteStore::open(&sandbox.file("state.db"), Crash::off()).unwrap();
    let mut state = |task: &str| store.load(&id(task)).unwrap().unwrap();
    let doubt = state("doubt");
    assert_eq!((doubt.status, doubt.current.status), (TaskStatus::InDoubt, StepStatus::InDoubt));
    assert!(doubt.current.may_have_happened() && doubt.current.effect() == Effect::Once);
    let later = state("later");
    assert_eq!((later.status, later.current.attempts), (TaskStatus::Waiting, 1));
    assert!(matches!(next(&later, later.current.due().unwrap()), Next::Step(0)));
    assert_eq!(state("cancelled").status, TaskStatus::Cancelled);
    let questions = store.questions().unwrap();
    assert_eq!(questions.into_iter().map(|found| found.unwrap().task.id).collect::<Vec<_>>(), [id("doubt")]);
}

/// The migration is one transaction: whoever is killed in it leaves the old version.
#[test]
fn are_left_whole_by_a_migration_that_cannot_be_finished() {
    let sandbox = Sandbox::golden("v1-failed");
    let path = sandbox.file("state.db");
    // The second statement of the migration fails on a column that is there already.
    raw(&path).execute_batch("ALTER TABLE steps ADD COLUMN forgiven").unwrap();
    let before = v1_rows(&path);
    assert!(SqliteStore::open(&path, Crash::off()).unwrap().acquire(&id("t1"), &RunId::random()).is_err());
    assert_eq!((version(&path), v1_rows(&path)), (0, before));
    let fence: i64 = raw(&path)
        .query_row("SELECT count(*) FROM pragma_table_info('tasks') WHERE name = 'fence'", [], |row| row.get(0))
        .unwrap();
    assert_eq!(fence, 0);
}

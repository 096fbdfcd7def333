//! Copies of an honest agent with one bug each: the method that can show the bug
//! names the property that it breaks.

use predicates::str::contains;
use rstest::rstest;

use crate::support::{Broken, run};

#[rstest]
#[case::no_lock("agent.py", "fcntl.LOCK_EX | fcntl.LOCK_NB", "fcntl.LOCK_SH", "race", "exit_code")]
#[case::recovers_all_tasks(
    "agent.py",
    "return self.db.execute(f\"SELECT {columns} FROM steps WHERE task_id = ? AND {condition}\"",
    "return self.db.execute(f\"SELECT {columns} FROM steps WHERE (task_id = ? OR status = 'running') AND {condition}\"",
    "neighbours",
    "violated"
)]
#[case::crashes_do_not_count(
    "agent.py",
    "int(new == \"running\")",
    "int(new == \"done\")",
    "poison",
    "attempts_are_starts"
)]
#[case::events_of_a_finished_task(
    "agent.py",
    "    if status in (\"done\", \"failed\"):\n        return status\n    sweep",
    "    recover(task)\n    if status in (\"done\", \"failed\"):\n        return status\n    sweep",
    "rerun",
    "journal_consistent"
)]
fn a_bug_is_caught_by_its_method(
    #[case] file: &str,
    #[case] from: &str,
    #[case] to: &str,
    #[case] method: &str,
    #[case] invariant: &str,
) {
    let agent = Broken::new(file, from, to);
    let assert = run(&agent.command(), method).assert();
    let code = assert.get_output().status.code();
    assert!(matches!(code, Some(1 | 2)), "{code:?}: {}", String::from_utf8_lossy(&assert.get_output().stdout));
    assert.stdout(contains(invariant));
}

//! Copies of an honest agent with one bug each: the scenario that can show the bug names the property that it breaks.

use predicates::str::contains;
use rstest::rstest;

use crate::support::{Broken, chaos};

#[rstest]
#[case::no_lock("agent.py", "fcntl.LOCK_EX | fcntl.LOCK_NB", "fcntl.LOCK_SH", "race/report/eight", "one_run_started")]
#[case::recovers_all_tasks(
    "agent.py",
    "        found = [",
    "        task.db.execute(\"UPDATE steps SET status = 'pending' WHERE status = 'running'\")\n        found = [",
    "neighbours/report/two tasks, before_effect:0",
    "neighbours_untouched"
)]
#[case::crashes_do_not_count(
    "agent.py",
    "int(new == \"running\")",
    "int(new == \"done\")",
    "poison/report/before_effect:0 x3",
    "attempts_are_starts"
)]
#[case::events_of_a_finished_task(
    "agent.py",
    "    if status not in (\"done\", \"failed\"):\n        with",
    "    if status in (\"done\", \"failed\"):\n        task.journal(\"run_started\", recovered=[])\n    else:\n        with",
    "rerun/report/done",
    "nothing_changed"
)]
fn a_bug_is_caught_by_its_scenario(
    #[case] file: &str,
    #[case] from: &str,
    #[case] to: &str,
    #[case] scenario: &str,
    #[case] property: &str,
) {
    let agent = Broken::new(file, from, to);
    chaos(&["replay", scenario, "--agent", &agent.command()]).assert().code(1).stdout(contains(property));
}

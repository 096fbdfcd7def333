//! The methods that stop an agent at its system calls: honest agents pass, and each bug that only they can see is
//! caught by the scenario that can show it.

use predicates::str::contains;
use rstest::rstest;

use crate::support::{Broken, chaos, honest};

/// The power goes when a run on an aged log has ended: everything had been told.
const AT_THE_END: &str = "power/report/aged/close/exit#1";

#[rstest]
#[case::no_folder_sync("tools.py", "    fsync_folder(folder)\n    return final", "    return final", "effect_once")]
#[case::no_parent_sync(
    "tools.py",
    "            os.mkdir(folder)\n    fsync_folder(parent)",
    "            os.mkdir(folder)",
    "effect_once"
)]
#[case::no_file_sync("tools.py", "            fsync(file.fileno(), temporary)\n", "", "effect_once")]
#[case::synchronous_normal(
    "agent.py",
    "    if pragma(db, \"user_version\") != 0:",
    "    db.execute(\"PRAGMA synchronous=NORMAL\")\n    if pragma(db, \"user_version\") != 0:",
    "acknowledged_survives"
)]
fn what_was_not_synced_is_missed_after_a_power_cut(
    #[case] file: &str,
    #[case] from: &str,
    #[case] to: &str,
    #[case] property: &str,
) {
    let agent = Broken::new(file, from, to);
    let replay = chaos(&["replay", AT_THE_END, "--agent", &agent.command()]).assert().code(1);
    replay.stdout(contains(property)).stdout(contains("not synced"));
}

#[test]
fn an_fsync_error_that_is_ignored_is_a_false_success() {
    let from = "        raise DurabilityLost(f\"cannot make {name} durable: {error.strerror}\") from error";
    let agent = Broken::new("tools.py", from, "        pass");
    let scenario = "faults/report/write_artifact:2/fsync#2";
    let replay = chaos(&["replay", scenario, "--deep", "--agent", &agent.command()]).assert().code(1);
    replay.stdout(contains("no_false_success"));
}

#[test]
fn a_missing_lock_shows_where_a_run_is_frozen() {
    let agent = Broken::new("agent.py", "fcntl.LOCK_EX | fcntl.LOCK_NB", "fcntl.LOCK_SH");
    let scenario = "pause/report/summarize:1/pwrite64#1";
    let replay = chaos(&["replay", scenario, "--deep", "--agent", &agent.command()]).assert().code(1);
    replay.stdout(contains("one_run_started"));
}

#[test]
fn a_result_that_is_written_in_place_is_seen_half() {
    let from = "    temporary = os.path.join(folder, f\".{key}.{os.getpid()}.tmp\")\n";
    let to = "    temporary = os.path.join(folder, f\"{key}.md\")\n    return in_place(temporary, content)\n";
    let agent = Broken::new("tools.py", from, to);
    let tools = "def in_place(path, content):\n    with open(path, \"wb\", buffering=0) as file:\n        file.write(content[:1])\n        file.write(content[1:])\n    return path, False\n\n\ndef publish(";
    agent.also("tools.py", "def publish(", tools);
    let scenario = "exhaust/report/write_artifact:2/write#1";
    chaos(&["replay", scenario, "--agent", &agent.command()]).assert().code(1).stdout(contains("not a whole result"));
}

#[rstest]
#[case(AT_THE_END)]
#[case("exhaust/report/write_artifact:2/write#1")]
#[case("faults/report/write_artifact:2/fsync#2")]
#[case("pause/report/summarize:1/pwrite64#1")]
#[case("summarize:1/pwrite64#1, open/pwrite64#2")]
fn an_honest_agent_passes(#[case] scenario: &str) {
    chaos(&["replay", scenario, "--deep", "--agent", &honest()]).assert().code(0);
}

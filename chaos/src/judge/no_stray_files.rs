//! When a task is finished nothing stays behind: no temporary file, no lock of an unknown name, no process.

use std::path::Path;

use crate::contract::DB_FILE;
use crate::judge::verdict::Verdict;
use crate::look::evidence::{Baseline, Evidence};

pub(super) fn check(evidence: &Evidence, baseline: &Baseline) -> Verdict {
    let mut complaints = Vec::new();
    let last = evidence.last();
    for name in last.world.keys() {
        if looks_temporary(name) && !baseline.last().world.contains_key(name) {
            complaints.push(format!("the temporary file `{name}` is left"));
        }
    }
    // How an id that is not a plain file name becomes one is the agent's choice.
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let odd = evidence.tasks.iter().any(|task| !task.chars().all(plain));
    for name in &last.own_files {
        let known = is_own(name, &evidence.tasks) || odd && baseline.last().own_files.contains(name);
        if !known {
            complaints.push(format!("`{name}` beside the database is nobody's"));
        }
    }
    complaints.extend(processes(evidence));
    Verdict::of(&complaints)
}

/// What every process of the agent left behind, and what nobody can say of which one it was: it has left the process
/// group.
fn processes(evidence: &Evidence) -> Vec<String> {
    let creates = evidence.creates.iter().map(|create| ("create".to_owned(), create));
    let runs = evidence.runs.iter().enumerate().map(|(i, run)| (evidence.label(i), &run.outcome));
    let mut complaints = Vec::new();
    for (label, outcome) in creates.chain(runs) {
        for stray in &outcome.survivors {
            complaints.push(format!("{label}: {stray} outlived it; a wrapper must `exec` the agent"));
        }
    }
    for stray in &evidence.strays {
        complaints.push(format!("{stray}, started by the agent, was still alive at the end"));
    }
    complaints
}

/// Whether a file's name says that it is not a result.
#[must_use]
pub fn looks_temporary(name: &str) -> bool {
    let file = Path::new(name).file_name().unwrap_or_default().to_string_lossy();
    file.starts_with('.') || file.ends_with(".tmp")
}

fn is_own(name: &str, tasks: &[String]) -> bool {
    match name.strip_prefix(DB_FILE) {
        Some("" | "-wal" | "-shm" | "-id") => true,
        Some(rest) => tasks.iter().any(|task| rest == format!(".{task}.lock") || is_of_attempt(rest, task)),
        None => false,
    }
}

/// What is noted of the programs that a task's steps have started, and what those have said.
fn is_of_attempt(rest: &str, task: &str) -> bool {
    let file = rest.strip_prefix(".attempts/").and_then(|file| file.strip_prefix(task)?.strip_prefix('-'));
    file.is_some_and(|file| file.ends_with(".stderr") || file.ends_with(".keeper"))
}

#[cfg(test)]
mod tests {
    use crate::agent::stray::Stray;
    use crate::testing::{Story, breaks, holds};

    #[test]
    fn the_database_and_its_lock_may_stay() {
        let mut story = Story::killed_at("after_effect:2");
        story.last().own_files = ["state.db", "state.db-wal", "state.db.t1.lock", "state.db.attempts/t1-0.1.stderr"]
            .map(str::to_owned)
            .to_vec();
        holds("no_stray_files", &story);
    }

    #[test]
    fn a_temporary_file_a_foreign_lock_and_a_journal_are_rejected() {
        let mut story = Story::killed_at("after_effect:2");
        story.last().world.insert("artifacts/.t1-2.77.tmp".to_owned(), Vec::new());
        breaks("no_stray_files", &story, ".t1-2.77.tmp");
        for name in ["state.db.t9.lock", "state.db-journal"] {
            let mut story = Story::clean();
            story.last().own_files.push(name.to_owned());
            breaks("no_stray_files", &story, name);
        }
    }

    #[test]
    fn a_process_that_outlives_its_agent_is_rejected() {
        let stray = Stray { pid: 77, command: "sleep 600".to_owned() };
        let mut story = Story::clean();
        story.evidence.runs[0].outcome.survivors.push(stray.clone());
        breaks("no_stray_files", &story, "run 1 of t1: process 77 (`sleep 600`) outlived it");
        let mut story = Story::clean();
        story.evidence.creates[0].survivors.push(stray);
        breaks("no_stray_files", &story, "create: process 77 (`sleep 600`) outlived it");
    }

    /// An agent whose every run left a daemon passed everything, as only the process group was asked.
    #[test]
    fn a_process_that_has_left_the_group_is_rejected() {
        let mut story = Story::clean();
        story.evidence.strays.push(Stray { pid: 77, command: "sleep 600".to_owned() });
        breaks("no_stray_files", &story, "process 77 (`sleep 600`), started by the agent, was still alive");
    }
}

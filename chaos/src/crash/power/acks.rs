//! What the world had been told before the cut: exit codes, printed lines, and what any reader of the database could
//! see. All of it must be found again.

use std::collections::BTreeSet;

use crate::look::tables::Tables;

/// Something that was told.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fact {
    /// The task is stored.
    Stored {
        /// The task.
        task: String,
    },
    /// A step is done, with this output.
    StepDone {
        /// The task.
        task: String,
        /// The step.
        idx: usize,
        /// Its output as JSON.
        output: String,
    },
    /// The task has come to its end.
    Ended {
        /// The task.
        task: String,
        /// `done` or `failed`.
        status: String,
    },
}

/// Facts that were told.
pub type Facts = BTreeSet<Fact>;

/// The facts that tables hold.
#[must_use]
pub fn facts(tables: &Tables) -> Facts {
    let mut facts = Facts::new();
    for row in &tables.tasks {
        facts.insert(Fact::Stored { task: row.id.clone() });
        if row.status == "done" || row.status == "failed" {
            facts.insert(Fact::Ended { task: row.id.clone(), status: row.status.clone() });
        }
    }
    for row in tables.steps.iter().filter(|row| row.status == "done") {
        let output = row.output.as_ref().map(ToString::to_string).unwrap_or_default();
        facts.insert(Fact::StepDone { task: row.task.clone(), idx: row.idx, output });
    }
    facts
}

/// Of the moments of a trail, what was told at each: what the tables showed before the last thing that was not a sync.
/// A commit is told once its process does anything else, because a reader, a printed line or an exit code may then rest
/// on it; the sync itself still belongs to the commit.
#[must_use]
pub fn told<'a>(moments: impl IntoIterator<Item = (bool, &'a Tables)>, at_first: &Tables) -> Vec<Facts> {
    let mut told = Facts::new();
    let mut shown = facts(at_first);
    let mut all = Vec::new();
    for (is_sync, after) in moments {
        if !is_sync {
            told = shown;
        }
        shown = facts(after);
        all.push(told.clone());
    }
    all
}

/// What was told and is no longer there, in words.
#[must_use]
pub fn lost(told: &Facts, left: &Tables) -> Vec<String> {
    let left = facts(left);
    told.difference(&left).map(ToString::to_string).collect()
}

impl std::fmt::Display for Fact {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Stored { task } => write!(f, "the task {task} was stored before the cut and is lost"),
            Self::StepDone { task, idx, .. } => {
                write!(f, "step {idx} of {task} was done before the cut and is not after it")
            }
            Self::Ended { task, status } => {
                write!(f, "the task {task} was {status} before the cut and is not after it")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Story;

    #[test]
    fn a_commit_is_told_with_the_first_thing_that_is_no_sync() {
        let mut story = Story::clean();
        let (before, after) = (story.evidence.created.tables.clone(), story.last().tables.clone());
        let moments = [(false, &after), (true, &after), (false, &after)];
        let told = told(moments, &before);
        assert_eq!(told.iter().map(Facts::len).collect::<Vec<_>>(), [1, 1, 1 + 3 + 1]);
    }

    #[test]
    fn a_lost_task_a_lost_step_and_another_output_are_rejected() {
        let mut story = Story::clean();
        let tables = story.last().tables.clone();
        let told = facts(&tables);
        assert_eq!(lost(&told, &tables), Vec::<String>::new());
        assert!(!lost(&told, &Tables::default()).is_empty());
        let mut left = tables.clone();
        left.steps[1].status = "pending".to_owned();
        assert!(!lost(&told, &left).is_empty());
        let mut left = tables.clone();
        left.steps[1].output = Some("other".into());
        assert!(!lost(&told, &left).is_empty());
        let mut left = tables;
        left.tasks[0].status = "running".to_owned();
        assert!(!lost(&told, &left).is_empty());
    }
}

//! The evidence of one scenario as plain data. Judges read nothing else.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::agent::process::{Ended, Outcome};
use crate::agent::stray::Stray;
use crate::case::plan::PlanCase;
use crate::contract::code;
use crate::look::snapshot::Snapshot;
use crate::look::tables::Tables;
use crate::schedule::{Kill, Sign};

/// What must become of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expect {
    /// It ends by itself with this exit code.
    Ends(i32),
    /// It dies of SIGKILL; an end by itself means that the kill missed.
    Dies,
    /// It dies of SIGKILL or ends with 0: nobody knows where the kill lands.
    MayDie,
    /// It ends by this signal, or with 128 + its number.
    Interrupted(Sign),
    /// It finds the lock taken, says 3 and changes nothing.
    Refused,
    /// One of several at once: 0 or 3.
    Contends,
    /// It is stopped for a while, goes on and ends with 0.
    Survives,
    /// A call of it fails: it goes on and ends with 0, or stops loudly, with any code that it has words for.
    Faulted,
    /// Not a run but the answer of a person, which is heard: 0.
    Heard,
}

/// One `run` of the agent.
#[derive(Debug, Clone)]
pub struct RunRecord {
    /// The task that it worked on.
    pub task: String,
    /// What was meant to end it.
    pub kill: Option<Kill>,
    /// What had to become of it.
    pub expect: Expect,
    /// What became of it.
    pub outcome: Outcome,
    /// Whether the lab sent it a signal from outside.
    pub signalled: bool,
    /// The folder after it; `None` where other processes were at work.
    pub after: Option<Snapshot>,
}

impl RunRecord {
    /// Whether the kernel says that it died of SIGKILL.
    #[must_use]
    pub fn was_killed(&self) -> bool {
        self.outcome.ended == Ended::Signaled(9)
    }

    /// Whether it got the lock and announced itself: `Some` where that can be told from how it ended, `None` where
    /// nobody can know.
    #[must_use]
    pub fn got_the_lock(&self, finished_before: bool) -> Option<bool> {
        if finished_before || self.expect == Expect::Heard {
            return Some(false);
        }
        match self.outcome.ended {
            Ended::Exited(code::LOCKED) => Some(false),
            Ended::Exited(code::DONE | code::FAILED) if self.expect != Expect::Contends => Some(true),
            Ended::Signaled(_) => match &self.kill {
                Some(Kill::Point(point)) if point.is_of_contract() => Some(true),
                Some(Kill::Signal { .. }) => Some(true),
                _ => None,
            },
            _ => None,
        }
    }
}

/// How the task of a scenario must end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskEnd {
    /// All steps done.
    Done,
    /// Given up after the attempt limit.
    Failed,
}

/// Everything that was seen in one scenario.
#[derive(Debug, Clone)]
pub struct Evidence {
    /// The plan that was played.
    pub case: Arc<PlanCase>,
    /// The tasks that were created with it.
    pub tasks: Vec<String>,
    /// How each of them must end.
    pub end: TaskEnd,
    /// The `create` processes.
    pub creates: Vec<Outcome>,
    /// The folder after the creates.
    pub created: Snapshot,
    /// The runs, in the order in which they were started.
    pub runs: Vec<RunRecord>,
    /// Tables that a reader saw while a run was at work.
    pub observed: Vec<Tables>,
    /// Processes that were still alive at the end of the scenario. They have been ended.
    pub strays: Vec<Stray>,
}

impl Evidence {
    /// The last look at the folder.
    #[must_use]
    pub fn last(&self) -> &Snapshot {
        self.before(self.runs.len())
    }

    /// The last look at the folder before run number `run`.
    #[must_use]
    pub fn before(&self, run: usize) -> &Snapshot {
        let earlier = self.runs[..run].iter().rev();
        earlier.filter_map(|run| run.after.as_ref()).next().unwrap_or(&self.created)
    }

    /// Whether nothing has been stored up to run number `run`: an agent that creates its own tasks may be killed before
    /// it has, and then has no database that could be in order.
    #[must_use]
    pub fn is_unborn(&self, run: usize) -> bool {
        let looks = self.runs[..run].iter().filter_map(|run| run.after.as_ref());
        !self.case.kind.is_created() && looks.chain([&self.created]).all(|look| look.tables.tasks.is_empty())
    }

    /// Every look at the folder, in order, with words for when it was; from the first one on that has anything to show.
    pub fn snapshots(&self) -> impl Iterator<Item = (String, &Snapshot)> {
        let runs = self.runs.iter().enumerate();
        let later = runs.filter_map(|(i, run)| {
            let after = run.after.as_ref().filter(|_| !self.is_unborn(i + 1))?;
            Some((format!("after {}", self.label(i)), after))
        });
        let created = (!self.is_unborn(0)).then(|| ("after create".to_owned(), &self.created));
        created.into_iter().chain(later)
    }

    /// Every state of the tables that was seen, live ones included.
    pub fn all_tables(&self) -> impl Iterator<Item = (String, &Tables)> {
        let live = self.observed.iter().enumerate();
        self.snapshots()
            .map(|(when, snapshot)| (when, &snapshot.tables))
            .chain(live.map(|(i, tables)| (format!("in live look {}", i + 1), tables)))
    }

    /// `run 2 of t1 (killed at after_effect:1)` for people.
    #[must_use]
    pub fn label(&self, run: usize) -> String {
        let record = &self.runs[run];
        if record.expect == Expect::Heard {
            return format!("a person's answer about {}", record.task);
        }
        let same = self.runs[..run].iter().filter(|r| r.task == record.task && r.expect != Expect::Heard);
        let nth = same.count() + 1;
        match &record.kill {
            Some(kill) => format!("run {nth} of {} ({kill})", record.task),
            None => format!("run {nth} of {}", record.task),
        }
    }

    /// Kills that hit and were followed by another run of the same task.
    #[must_use]
    pub fn cycles(&self) -> u64 {
        let resumed = |i: usize| {
            let task = &self.runs[i].task;
            self.runs[i + 1..].iter().any(|later| later.task == *task)
        };
        let hit = (0..self.runs.len()).filter(|&i| self.runs[i].was_killed() && resumed(i));
        hit.count() as u64
    }
}

/// The outcome of the same tasks without any crash.
#[derive(Debug, Clone)]
pub struct Baseline {
    /// What was seen.
    pub evidence: Evidence,
    /// For each step, whether two clean runs had the same output, so that a crash must not change it either.
    pub comparable: Vec<bool>,
    /// Contents that a file may rightly have at the moments between steps, beside its final one.
    pub between: BTreeMap<String, Vec<Vec<u8>>>,
}

impl Baseline {
    /// How the folder looks in the end.
    #[must_use]
    pub fn last(&self) -> &Snapshot {
        self.evidence.last()
    }

    /// How long the clean run took, in seconds.
    #[must_use]
    pub fn run_seconds(&self) -> f64 {
        let runs = self.evidence.runs.iter().map(|run| run.outcome.seconds());
        runs.fold(0.0, f64::max)
    }
}

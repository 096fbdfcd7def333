//! What a run of the lab found, as plain data: the one form that every report writer reads and that `chaos report DIR`
//! loads again from `report.json`.
//!
//! Times named `*_at` are seconds since the epoch, durations named `*_s` are seconds. Lists are in a stable order that
//! does not depend on the number of jobs. Fields are only ever added; [`SCHEMA`] grows where a meaning changes.

use serde::{Deserialize, Serialize};

pub use crate::crash::power::{DiskReport, PendingReport};
pub use crate::judge::verdict::{Finding, VerdictKind};
use crate::schedule::{CrashPoint, KillSchedule};

/// The version of this form.
pub const SCHEMA: u32 = 2;

/// The file name under which the lab stores a [`RunReport`] in its `--out` folder.
pub const FILE_NAME: &str = "report.json";

/// One whole run of the lab.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunReport {
    /// Always [`SCHEMA`] where this version of the lab wrote it.
    pub schema: u32,
    /// The agent's command as it was given, e.g. `python3 my_agent.py`.
    pub agent: String,
    /// Names of the plans, in the order in which they were played.
    pub plans: Vec<String>,
    /// The seed from which every random choice of the run follows.
    pub seed: u64,
    /// How many scenarios were played at the same time.
    pub jobs: usize,
    /// When the run began.
    pub started_at: f64,
    /// Wall time of the whole run, discovery included.
    pub duration_s: f64,
    /// Kills that hit and were followed by a resume.
    pub cycles: u64,
    /// Cycles per second of the methods `points` and `nested` together; `None` where neither ran.
    pub cycles_per_second: Option<f64>,
    /// The one word for the whole run; `exit_code` follows from it.
    pub outcome: Conclusion,
    /// What the process ends with, see the table in `exit.rs`.
    pub exit_code: i32,
    /// Why the run did not play everything that was selected, where it did not.
    pub cut_short: Option<String>,
    /// How many scenarios there were, where only as many were played as fit into a short time.
    #[serde(default)]
    pub sample_of: Option<usize>,
    /// What was not played because it does not fit the agent or a plan, each with the reason.
    #[serde(default)]
    pub not_applicable: Vec<String>,
    /// One row a method, in the order in which they ran.
    pub methods: Vec<MethodReport>,
    /// Every scenario that was played.
    pub scenarios: Vec<ScenarioReport>,
    /// Every negative control that was played.
    pub controls: Vec<ControlReport>,
    /// The inventory against its pinned file; `None` where the gate was not asked.
    pub gate: Option<GateReport>,
}

/// How a run as a whole ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Conclusion {
    /// Everything that was selected was played and held (exit code 0).
    Held,
    /// A property was violated, a kill was not reached or the gate is shut (1).
    Violated,
    /// The plan fails without any crash already (2).
    BaselineFailed,
    /// Nothing was selected, or the budget ended before the scenarios did (4).
    CutShort,
    /// A negative control stayed green (5).
    ControlSilent,
}

/// The sum of one method.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct MethodReport {
    /// The method's name, e.g. `points`.
    pub name: String,
    /// Scenarios that were played.
    pub scenarios: usize,
    /// Scenarios that held.
    pub held: usize,
    /// Scenarios that were violated.
    pub violated: usize,
    /// Scenarios whose kill was not reached.
    pub not_reached: usize,
    /// Kills that hit and were followed by a resume.
    pub cycles: u64,
    /// Scenarios whose next kill cannot be reached by design (its step was committed before), so that the resume had to
    /// go through.
    #[serde(default)]
    pub unreachable: usize,
    /// Wall time of the method.
    pub duration_s: f64,
}

/// One scenario and its judgement. What one of its fields tells is not written out in another, see `row`.
#[derive(Debug, Clone, PartialEq)]
pub struct ScenarioReport {
    /// `method/plan/what`, unique in the run.
    pub id: String,
    /// The method that it belongs to.
    pub method: String,
    /// The plan that was played.
    pub plan: String,
    /// One line for people: what is done to the agent here.
    pub title: String,
    /// The kill schedule in its one-line form, `none` where nothing is killed.
    pub schedule: String,
    /// The whole command that plays this scenario again; empty where it held as others of its kind did.
    pub replay: String,
    /// Wall time of the scenario.
    pub duration_s: f64,
    /// The worst of the findings; `holds` where there is none.
    pub verdict: VerdictKind,
    /// How many properties and expectations were judged.
    pub checked: usize,
    /// Kills that hit and were followed by a resume.
    pub cycles: u64,
    /// Only what did *not* hold, worst first.
    pub findings: Vec<Finding>,
    /// A fact worth telling although all is well, e.g. that the second kill is unreachable by design because its step
    /// was committed before.
    pub note: Option<String>,
    /// Every process of the scenario, in the order in which they began; of those that held, one of each kind has it.
    pub timeline: Vec<RunTimeline>,
    /// For a power cut that lost something, what lay on the disk.
    pub disk: Option<DiskReport>,
}

impl ScenarioReport {
    /// Its place in the matrix of points x steps: the point of the *first* kill; none where it is not about a point.
    #[must_use]
    pub fn cell(&self) -> Option<CrashPoint> {
        self.schedule.parse::<KillSchedule>().ok()?.first_point().cloned()
    }
}

/// One process of a scenario.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunTimeline {
    /// What it was, e.g. `run t1 (1)`.
    pub run: String,
    /// When it was started.
    pub started_at: f64,
    /// When it ended.
    pub ended_at: f64,
    /// How it ended for people: `exit 0`, `signal 9 (SIGKILL)`, `hung`.
    pub ended: String,
    /// Whether it was killed by the lab's will.
    pub killed: bool,
    /// What it journaled, in order.
    pub events: Vec<TimelineEvent>,
}

/// One journal row in a timeline.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TimelineEvent {
    /// The time that the agent wrote into the row.
    pub ts: f64,
    /// The event's kind, e.g. `step_started`.
    pub kind: String,
    /// The step that it is about.
    pub step: Option<usize>,
}

/// One negative control.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ControlReport {
    /// The scenario that played it.
    pub scenario: String,
    /// The variable that makes the agent unsafe, e.g. `AGENT_UNSAFE_EFFECTS`.
    pub control: String,
    /// The tool whose effect is watched.
    pub tool: String,
    /// The plan that was played.
    pub plan: String,
    /// The crash point of the kill.
    pub point: String,
    /// Whether the kill lies between effect and commit, so that the effect must be doubled.
    pub must_bite: bool,
    /// Whether the effect was seen more often than without a crash.
    pub bit: bool,
}

/// The inventory against its pinned file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GateReport {
    /// The pinned file.
    pub file: String,
    /// Whether the gate is open.
    pub open: bool,
    /// Whether this run rewrote the file.
    pub blessed: bool,
    /// What is missing or too much, one line each.
    pub differences: Vec<String>,
}

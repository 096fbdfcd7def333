//! One moment of the world: what is stored, what happened outside, and where each process stands.

use store::Commit;
use store::machine::evolve;
use store::model::{Event, StepState, StepStatus, TaskState, TaskStatus};

use crate::config::{Config, Faults, MAX_RUNNERS, MAX_STEPS};
use crate::process::{Pc, Refusal};

/// All of it, without pointers: a state is copied some ten times for every one that is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct State {
    pub(crate) tables: Tables,
    pub(crate) journal: Journal,
    /// What the receiver of each step's effect has seen.
    pub(crate) effects: [Effect; MAX_STEPS],
    /// Who holds the lock, as the kernel sees it.
    pub(crate) lock: Option<u8>,
    pub(crate) runners: [Runner; MAX_RUNNERS],
    /// Faults that may still come.
    pub(crate) left: Faults,
    pub(crate) history: History,
}

/// A process, or a slot for the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Runner {
    pub(crate) pc: Pc,
    /// The fencing token of its lease; 0 without one. It also names the run.
    pub(crate) token: u8,
    /// The lock was freed under it.
    pub(crate) expired: bool,
    /// The task's state as of its last load or commit.
    pub(crate) state: TaskState,
}

impl Runner {
    /// No process.
    pub(crate) fn idle() -> Self {
        Self { pc: Pc::Idle, token: 0, expired: false, state: TaskState::created(0) }
    }
}

/// What the receiver of one step's effect has seen. It does what it is asked for once for every key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Effect {
    pub(crate) requested: u8,
    /// A bit for every key. The step's own key is bit 0.
    keys: u8,
}

impl Effect {
    /// A request under a key.
    pub(crate) fn request(&mut self, key: u32) {
        self.requested += 1;
        self.keys |= 1 << key;
    }

    /// How often it happened.
    pub(crate) fn happened(self) -> u32 {
        self.keys.count_ones()
    }
}

/// What a predicate over one state could not see.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct History {
    /// A commit went through under a token that was not the last one given out.
    pub(crate) trespassed: bool,
    /// The effect of a step that was done was asked for, by a run that was not fenced.
    pub(crate) reran: bool,
    /// A run that began right after another had begun changed something.
    pub(crate) unstable: bool,
    /// `decide` has said what `evolve` says cannot be.
    pub(crate) disagreed: bool,
    /// A run was fenced.
    pub(crate) fenced: bool,
    /// Somebody's retry came second.
    pub(crate) beaten: bool,
}

/// The rows of a store, written as the backends write them: guarded by the token and by what must be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Tables {
    pub(crate) task: TaskStatus,
    pub(crate) fence: u8,
    count: u8,
    steps: [StepState; MAX_STEPS],
}

/// What a store asks before it writes. Every store asks both; a planted bug does not.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Guard {
    pub(crate) fence: bool,
    pub(crate) rows: bool,
}

impl Tables {
    /// The rows of the steps.
    pub(crate) fn steps(&self) -> &[StepState] {
        &self.steps[..usize::from(self.count)]
    }

    /// The row of a step.
    pub(crate) fn step(&mut self, step: u32) -> &mut StepState {
        &mut self.steps[step as usize]
    }

    /// As `Reader::load`: the cursor is the first step that is not done.
    pub(crate) fn load(&self) -> TaskState {
        let steps = self.steps();
        let cursor = steps.iter().position(|step| step.status != StepStatus::Done).unwrap_or(steps.len());
        let current = steps.get(cursor).copied().unwrap_or_default();
        TaskState { status: self.task, steps: u32::from(self.count), cursor: cursor as u32, current }
    }

    /// As `Store::commit`: wholly or not at all.
    pub(crate) fn apply(&mut self, commit: &Commit<'_>, guard: Guard) -> Result<(), Refusal> {
        if guard.fence && commit.lease().token().0 != i64::from(self.fence) {
            return Err(Refusal::Fenced);
        }
        let mut after = *self;
        for change in commit.steps() {
            let row = after.step(change.step);
            if guard.rows && *row != change.from {
                return Err(Refusal::Conflict);
            }
            *row = change.to;
        }
        if let Some(change) = commit.task() {
            let open =
                change.to == TaskStatus::Done && after.steps().iter().any(|step| step.status != StepStatus::Done);
            if guard.rows && (open || after.task != change.from) {
                return Err(Refusal::Conflict);
            }
            after.task = change.to;
        }
        *self = after;
        Ok(())
    }
}

/// The journal: not its rows, but all that its claims ask of them, kept up event by event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Journal {
    /// The journal, replayed from its start by the shipped `evolve`; `None` once an event could not follow.
    pub(crate) replay: Option<TaskState>,
    pub(crate) starts: [u8; MAX_STEPS],
    pub(crate) finishes: [u8; MAX_STEPS],
    /// False once a start was closed twice or not at all, or something was written out of turn.
    pub(crate) balanced: bool,
    /// The last event is a `run_started`.
    pub(crate) just_begun: bool,
    /// The step that was started and not closed.
    open: Option<u32>,
    /// The step that was recovered since the last `run_started`, which must name it.
    recovered: Option<u32>,
    /// The run of the last `run_started`, by its token.
    run: u8,
}

impl Journal {
    /// Appends what `run` writes.
    pub(crate) fn append(&mut self, run: u8, event: &Event) {
        self.replay = self.replay.and_then(|state| evolve(state, event).ok());
        self.balanced &= self.in_turn(run, event);
        self.just_begun = matches!(event, Event::RunStarted { .. });
        match *event {
            Event::StepStarted { step, .. } => {
                self.open = Some(step);
                self.starts[step as usize] += 1;
            }
            Event::StepFinished { step, .. } => {
                self.open = None;
                self.finishes[step as usize] += 1;
            }
            Event::StepError { .. } => self.open = None,
            Event::StepRecovered { step } => {
                self.open = None;
                self.recovered = Some(step);
            }
            Event::RunStarted { .. } => {
                self.recovered = None;
                self.run = run;
            }
            Event::TaskCreated { .. } | Event::TaskFailed { .. } | Event::TaskDone | Event::TaskRetried { .. } => {}
        }
    }

    /// Whether the event may stand here. Written without `evolve`, so that each checks the other.
    fn in_turn(&self, run: u8, event: &Event) -> bool {
        match event {
            Event::StepStarted { .. } => self.open.is_none() && self.recovered.is_none() && run == self.run,
            Event::StepFinished { step, .. } | Event::StepError { step, .. } => {
                self.open == Some(*step) && run == self.run
            }
            Event::StepRecovered { step } => self.open == Some(*step) && run != self.run,
            Event::RunStarted { recovered, .. } => {
                self.open.is_none() && recovered.as_slice() == self.recovered.as_slice() && run != self.run
            }
            Event::TaskFailed { .. } | Event::TaskDone => self.open.is_none() && run == self.run,
            Event::TaskRetried { .. } => self.open.is_none() && run != self.run,
            Event::TaskCreated { .. } => false,
        }
    }
}

impl State {
    /// A task as it is created, and nobody at work.
    pub(crate) fn created(config: &Config) -> Self {
        let state = TaskState::created(u32::from(config.steps));
        Self {
            tables: Tables { task: state.status, fence: 0, count: config.steps, steps: Default::default() },
            journal: Journal {
                replay: Some(state),
                starts: Default::default(),
                finishes: Default::default(),
                balanced: true,
                just_begun: false,
                open: None,
                recovered: None,
                run: 0,
            },
            effects: Default::default(),
            lock: None,
            runners: [Runner::idle(); MAX_RUNNERS],
            left: config.faults,
            history: History::default(),
        }
    }

    /// One process.
    pub(crate) fn runner(&mut self, who: u8) -> &mut Runner {
        &mut self.runners[usize::from(who)]
    }
}

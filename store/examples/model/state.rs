//! One moment of the world: what is stored, what happened outside, and where each process stands.

use store::Commit;
use store::machine::evolve;
use store::model::{Effect as Class, Event, FailReason, StepState, StepStatus, TaskState, TaskStatus, Word};

use crate::config::{Config, Faults, MAX_RUNNERS, PLACES};
use crate::process::{Pc, Refusal};

/// All of it, without pointers: a state is copied some ten times for every one that is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct State {
    pub(crate) tables: Tables,
    pub(crate) journal: Journal,
    /// What the receiver of each effect has seen, by place.
    pub(crate) effects: [Effect; PLACES],
    /// Who holds the lock, as the kernel sees it.
    pub(crate) lock: Option<u8>,
    pub(crate) runners: [Runner; MAX_RUNNERS],
    /// Faults that may still come.
    pub(crate) left: Faults,
    /// The time, as everybody's clock has it.
    pub(crate) now: u8,
    /// Before then a receiver does not want to be asked again.
    pub(crate) promised: u8,
    /// The version of plan and program that a process is started with.
    pub(crate) version: u8,
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
    /// The version of plan and program.
    pub(crate) version: u8,
    /// It has asked the receiver, and no earlier attempt had its effect.
    pub(crate) absent: bool,
    /// The task's state as of its last load or commit.
    pub(crate) state: TaskState,
}

impl Runner {
    /// No process.
    pub(crate) fn idle() -> Self {
        let state = TaskState::created(0);
        Self { pc: Pc::Idle, token: 0, expired: false, version: 0, absent: false, state }
    }
}

/// What the receiver of one step's effect has seen. It does what it is asked for once for every key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Effect {
    pub(crate) requested: u8,
    /// A bit for every key. The step's own key is bit 0.
    keys: u8,
    /// The version whose input came first.
    input: Option<u8>,
}

impl Effect {
    /// A request under a key. True where the effect was there already, for another input.
    pub(crate) fn request(&mut self, key: u32, version: u8) -> bool {
        self.requested += 1;
        self.keys |= 1 << key;
        *self.input.get_or_insert(version) != version
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
    /// Somebody's retry, answer or word came second.
    pub(crate) beaten: bool,
    /// A person has resolved a doubt.
    pub(crate) resolved: bool,
    /// A question was asked again, since what it shows had changed.
    pub(crate) asked_anew: bool,
    /// A receiver was asked again before the time at which it wanted to be.
    pub(crate) early: bool,
    /// An effect was asked for that was there already, for another input.
    pub(crate) doubled: bool,
    /// Something was done that no person had agreed to.
    pub(crate) misused: bool,
    /// A task failed without a word of the effect that it has had.
    pub(crate) concealed: bool,
    /// A task failed, and said that its effect may have happened.
    pub(crate) admitted: bool,
}

/// The rows of a store, written as the backends write them: guarded by the token and by what must be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Tables {
    pub(crate) task: TaskStatus,
    pub(crate) fence: u8,
    count: u8,
    /// The steps, and behind the last one the completion.
    places: [StepState; PLACES],
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
        &self.places[..usize::from(self.count)]
    }

    /// The rows of the steps, and what is kept of the completion.
    pub(crate) fn places(&self) -> &[StepState] {
        &self.places[..=usize::from(self.count)]
    }

    /// What is kept of a place.
    pub(crate) fn place(&mut self, place: u32) -> &mut StepState {
        &mut self.places[place as usize]
    }

    /// As `Reader::load`.
    pub(crate) fn load(&self) -> TaskState {
        let steps = self.steps();
        let settled = steps.iter().take_while(|step| step.status.is_settled()).count();
        let last = settled.checked_sub(1).map_or(StepStatus::Pending, |last| steps[last].status);
        let completion = self.places[steps.len()].status;
        let cursor = TaskState::cursor_after(settled as u32, last, self.task, completion) as usize;
        let current = self.places[cursor];
        TaskState { status: self.task, steps: u32::from(self.count), cursor: cursor as u32, current }
    }

    /// As `Store::commit`: wholly or not at all.
    pub(crate) fn apply(&mut self, commit: &Commit, guard: Guard) -> Result<(), Refusal> {
        if guard.fence && commit.fence().token.0 != i64::from(self.fence) {
            return Err(Refusal::Fenced);
        }
        let mut after = *self;
        for change in commit.steps() {
            let row = after.place(change.step.unwrap_or(u32::from(after.count)));
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
    pub(crate) starts: [u8; PLACES],
    pub(crate) finishes: [u8; PLACES],
    /// False once a start was closed twice or not at all, or something was written out of turn.
    pub(crate) balanced: bool,
    /// The last event is a `run_started`.
    pub(crate) just_begun: bool,
    /// How many steps there are; the place of the completion.
    count: u8,
    /// The place that was started and not closed.
    open: Option<u32>,
    /// The place that was recovered since the last `run_started`, which must name it where it is a step.
    recovered: Option<u32>,
    /// The run of the last `run_started`, by its token.
    run: u8,
    /// The place that is in doubt.
    doubt: Option<u32>,
    /// The place whose question is open.
    asked: Option<u32>,
    /// The class of the step at work.
    class: Option<Class>,
    /// False once the class of a step was another one than before.
    pub(crate) class_held: bool,
    /// What the last answer is for: the version that was shown.
    pub(crate) answer_for: Option<u8>,
    /// The task has failed because the attempts were used up.
    pub(crate) at_limit: bool,
}

impl Journal {
    /// Appends what `run` writes.
    pub(crate) fn append(&mut self, run: u8, event: &Event) {
        self.replay = self.replay.and_then(|state| evolve(state, event).ok());
        self.balanced &= self.in_turn(run, event);
        self.just_begun = matches!(event, Event::RunStarted { .. });
        let completion = u32::from(self.count);
        match *event {
            Event::StepStarted { step, intent, .. } => {
                let class = intent.map(|intent| intent.effect);
                self.class_held &= self.class.is_none() || self.class == class;
                self.class = class;
                self.start(step);
            }
            Event::CompletionStarted { .. } => self.start(completion),
            Event::StepFinished { step, .. } => self.finish(step),
            Event::TaskDone if self.open.is_some() => self.finish(completion),
            Event::StepError { .. } | Event::StepReleased { .. } | Event::CompletionError { .. } => self.open = None,
            Event::StepInDoubt { step, .. } => (self.open, self.doubt) = (None, Some(step)),
            Event::DoubtResolved { step, word, .. } => {
                self.doubt = None;
                if word == Word::Happened {
                    self.finish(step);
                }
            }
            Event::StepWaiting { step, .. } => self.asked = Some(step),
            Event::AnswerGiven { shown, .. } => (self.asked, self.answer_for) = (None, shown.map(|shown| shown.0[0])),
            Event::TaskFailed { ref reason, .. } => self.at_limit = *reason == FailReason::MaxAttempts,
            Event::TaskRetried { .. } => self.at_limit = false,
            Event::StepRecovered { .. } | Event::CompletionRecovered => self.recovered = self.open.take(),
            Event::RunStarted { .. } => {
                self.recovered = None;
                self.run = run;
            }
            _ => {}
        }
    }

    fn start(&mut self, place: u32) {
        self.open = Some(place);
        self.starts[place as usize] += 1;
    }

    fn finish(&mut self, place: u32) {
        (self.open, self.class, self.answer_for) = (None, None, None);
        self.finishes[place as usize] += 1;
    }

    /// Whether the event may stand here, and counts rightly. Written without `evolve`, so that each checks the other.
    fn in_turn(&self, run: u8, event: &Event) -> bool {
        let completion = u32::from(self.count);
        let announced: Vec<u32> = self.recovered.into_iter().filter(|&place| place != completion).collect();
        let is_open = |place: u32| self.open == Some(place);
        match *event {
            Event::StepStarted { step, attempt, .. } => self.may_start(run, step, attempt),
            Event::CompletionStarted { attempt } => self.may_start(run, completion, attempt),
            Event::StepFinished { step, .. } | Event::StepError { step, .. } | Event::StepReleased { step, .. } => {
                is_open(step) && run == self.run
            }
            Event::CompletionError { .. } => is_open(completion) && run == self.run,
            Event::StepRecovered { step } => is_open(step) && run != self.run,
            // By the run that was in the attempt, by the next one, by a person who ends the task; or before an attempt.
            Event::StepInDoubt { step, .. } => {
                is_open(step) || (self.open.is_none() && run == self.run && self.is_next(step))
            }
            Event::DoubtResolved { step, .. } => self.doubt == Some(step) && run != self.run,
            Event::StepWaiting { step, .. } => self.open.is_none() && run == self.run && self.is_next(step),
            Event::AnswerGiven { step, .. } => self.asked == Some(step) && run != self.run,
            Event::TaskCancelled { .. } => self.open.is_none(),
            Event::CompletionRecovered => is_open(completion) && run != self.run,
            Event::RunStarted { ref recovered, .. } => {
                let has_work = self.open.is_none() && self.doubt.is_none() && self.asked.is_none();
                has_work && *recovered == announced && run != self.run
            }
            Event::TaskFailed { step, .. } => {
                self.open.is_none() && run == self.run && self.is_next(step.unwrap_or(completion))
            }
            Event::TaskDone => {
                self.open.is_none_or(|place| place == completion) && run == self.run && self.is_next(completion)
            }
            Event::TaskRetried { step, forgiven } => {
                let starts = self.starts[step.unwrap_or(completion) as usize];
                self.open.is_none() && run != self.run && forgiven == u32::from(starts)
            }
            _ => false,
        }
    }

    fn may_start(&self, run: u8, place: u32, attempt: u32) -> bool {
        let is_counted = attempt == u32::from(self.starts[place as usize]) + 1;
        let is_free = self.open.is_none() && self.doubt.is_none() && self.asked.is_none();
        is_free && self.recovered.is_none() && run == self.run && self.is_next(place) && is_counted
    }

    /// Whether everything before the place is finished, and it is not.
    fn is_next(&self, place: u32) -> bool {
        self.finishes.iter().take_while(|&&finishes| finishes == 1).count() == place as usize
    }
}

impl State {
    /// A task as it is created, and nobody at work.
    pub(crate) fn created(config: &Config) -> Self {
        let state = TaskState::created(u32::from(config.steps));
        Self {
            tables: Tables { task: state.status, fence: 0, count: config.steps, places: Default::default() },
            journal: Journal {
                replay: Some(state),
                starts: Default::default(),
                finishes: Default::default(),
                balanced: true,
                just_begun: false,
                count: config.steps,
                open: None,
                recovered: None,
                run: 0,
                doubt: None,
                asked: None,
                class: None,
                class_held: true,
                answer_for: None,
                at_limit: false,
            },
            effects: Default::default(),
            lock: None,
            runners: [Runner::idle(); MAX_RUNNERS],
            left: config.faults,
            now: 0,
            promised: 0,
            version: 0,
            history: History::default(),
        }
    }

    /// One process.
    pub(crate) fn runner(&mut self, who: u8) -> &mut Runner {
        &mut self.runners[usize::from(who)]
    }
}

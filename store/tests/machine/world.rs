//! A world for the machine: a durable state and journal, a receiver of effects that knows keys, and processes that
//! die. What is in memory is lost with the process; what was committed stays.

use std::collections::BTreeMap;

use store::machine::{Budget, Command, Illegal, Next, Refused, decide, evolve, next};
use store::model::{Event, StepStatus, TaskState, TaskStatus, Terms};

use crate::checker::{Row, check};

/// The machine under test: the one that ships, or one with a planted fault.
pub(crate) trait Machine {
    fn decide(&self, state: &TaskState, command: &Command) -> Result<Vec<Event>, Refused> {
        decide(state, command)
    }

    fn evolve(&self, state: TaskState, event: &Event) -> Result<TaskState, Illegal> {
        evolve(state, event)
    }
}

/// The machine that ships.
pub(crate) struct Shipped;

impl Machine for Shipped {}

/// One thing that happens in the world.
#[derive(Clone, Debug)]
pub(crate) enum Op {
    /// The process does what comes next; where there is none, one starts.
    Go,
    /// The tool of the running step fails.
    ToolFails,
    /// The process is killed.
    Crash,
    /// The process decides what comes next, and is killed before that is committed.
    CrashBeforeCommit,
    /// The tool has its effect, and the process is killed.
    CrashAfterEffect,
    /// Somebody asks for a retry.
    Retry,
    /// A command that nobody should send.
    Stray(Command),
}

pub(crate) struct World<'m> {
    machine: &'m dyn Machine,
    limit: u32,
    steps: u32,
    // Durable:
    state: TaskState,
    journal: Vec<Row>,
    transactions: u32,
    /// What the receiver holds: by key, so a repetition changes nothing.
    received: BTreeMap<u32, u32>,
    // In memory:
    alive: bool,
    called: Option<u32>,
}

/// What every tool of this world makes of its input, a function of the step alone.
fn result(step: u32) -> u32 {
    step * 7 + 1
}

impl<'m> World<'m> {
    pub(crate) fn new(machine: &'m dyn Machine, steps: u32, limit: u32) -> Self {
        Self {
            machine,
            limit,
            steps,
            state: TaskState::created(steps),
            journal: Vec::new(),
            transactions: 0,
            received: BTreeMap::new(),
            alive: false,
            called: None,
        }
    }

    /// Plays `ops`, then lets the task run to its end; says which property broke.
    pub(crate) fn play(machine: &'m dyn Machine, steps: u32, limit: u32, ops: &[Op]) -> Result<(), String> {
        let mut world = Self::new(machine, steps, limit);
        for op in ops {
            world.happen(op).and_then(|()| world.check()).map_err(|why| format!("at {op:?}: {why}"))?;
        }
        world.end()
    }

    fn happen(&mut self, op: &Op) -> Result<(), String> {
        match op {
            Op::Go => self.go(),
            Op::ToolFails => match self.state.running() {
                Some(step) if self.alive => self.apply(&Command::Fail { step, error: "no".to_owned() }),
                _ => self.go(),
            },
            Op::Crash => self.crash(),
            Op::CrashBeforeCommit => {
                // The decision is lost, and must be the same when it is made again.
                if let Some(command) = self.next_command() {
                    let lost = self.decide(&command)?;
                    self.crash()?;
                    let again = self.decide(&command)?;
                    return if lost == again { Ok(()) } else { Err("equal states, other decisions".to_owned()) };
                }
                self.crash()
            }
            Op::CrashAfterEffect => {
                if self.alive && self.state.running().is_some() {
                    self.effect()?;
                }
                self.crash()
            }
            Op::Retry => self.apply(&Command::Retry),
            Op::Stray(command) => {
                if let Command::Finish { step, .. } = command
                    && self.state.running() == Some(*step)
                {
                    self.effect()?;
                }
                self.apply(command)
            }
        }
    }

    fn crash(&mut self) -> Result<(), String> {
        (self.alive, self.called) = (false, None);
        // Whoever comes next finds what is running, and nothing else.
        let found: Vec<u32> = self.state.running().into_iter().collect();
        match self.decide(&Command::Begin(Terms::limit(self.limit)))? {
            Ok(events) => match events.last() {
                Some(Event::RunStarted { recovered, .. }) if *recovered == found => Ok(()),
                other => Err(format!("{found:?} was found running, {other:?} was decided")),
            },
            Err(_) => Ok(()),
        }
    }

    /// What a process in this state would ask for; none where the tool is to be called, or nothing is to be done.
    fn next_command(&self) -> Option<Command> {
        if !self.alive {
            return (!self.state.status.is_over()).then_some(Command::Begin(Terms::limit(self.limit)));
        }
        let tool = "echo".to_owned();
        match next(&self.state) {
            Next::Over(_) => None,
            Next::Complete => Some(Command::Complete),
            Next::Step(step) if self.state.current.status == StepStatus::Running => {
                (self.called == Some(step)).then_some(Command::Finish { step, tool })
            }
            Next::Step(step) => Some(Command::Start { step, tool, budget: Budget::of(self.limit) }),
        }
    }

    fn go(&mut self) -> Result<(), String> {
        match self.next_command() {
            Some(command) => self.apply(&command),
            None if self.alive && self.state.running().is_some() => self.effect(),
            None => Ok(()),
        }
    }

    /// The running step's tool is called.
    fn effect(&mut self) -> Result<(), String> {
        let Some(step) = self.state.running() else { return Err("no step is running".to_owned()) };
        let finished =
            self.journal.iter().any(|(_, event)| matches!(event, Event::StepFinished { step: it, .. } if *it == step));
        if finished {
            return Err(format!("the committed step {step} runs again"));
        }
        self.received.entry(step).or_insert(result(step));
        self.called = Some(step);
        Ok(())
    }

    fn decide(&self, command: &Command) -> Result<Result<Vec<Event>, Refused>, String> {
        let (one, two) = (self.machine.decide(&self.state, command), self.machine.decide(&self.state, command));
        if one == two { Ok(one) } else { Err(format!("equal states, other decisions: {one:?}, {two:?}")) }
    }

    /// Decides, and commits all of it in one transaction.
    fn apply(&mut self, command: &Command) -> Result<(), String> {
        let Ok(events) = self.decide(command)? else { return Ok(()) };
        let mut state = self.state;
        for event in &events {
            state =
                self.machine.evolve(state, event).map_err(|why| format!("{command:?} gave {event:?}, and {why}"))?;
        }
        self.state = state;
        self.transactions += 1;
        self.journal.extend(events.into_iter().map(|event| (self.transactions, event)));
        self.called = None;
        if let Command::Begin { .. } = command {
            self.alive = true;
            return self.recovery_is_over();
        }
        Ok(())
    }

    /// Once it has committed, recovery has nothing left to do.
    fn recovery_is_over(&self) -> Result<(), String> {
        match self.decide(&Command::Begin(Terms::limit(self.limit)))? {
            Ok(events) if events.len() == 1 => Ok(()),
            other => Err(format!("recovered, and yet: {other:?}")),
        }
    }

    fn check(&self) -> Result<(), String> {
        check(&self.journal, self.steps, self.limit, &self.state)?;
        let mut replayed = TaskState::created(self.steps);
        for (_, event) in &self.journal {
            replayed = self.machine.evolve(replayed, event).map_err(|why| format!("replay: {event:?}: {why}"))?;
        }
        if replayed != self.state {
            return Err(format!("the journal gives {replayed:?}, the state is {:?}", self.state));
        }
        Ok(())
    }

    /// With no further crash the task comes to its end, and what came of it is what comes of a run without crashes.
    fn end(mut self) -> Result<(), String> {
        // Two for the run, four for each attempt, and a retry or two.
        for _ in 0..20 + self.steps * 4 {
            match self.state.status {
                TaskStatus::Done => {
                    let expected: BTreeMap<u32, u32> = (0..self.steps).map(|step| (step, result(step))).collect();
                    self.check()?;
                    return if self.received == expected {
                        Ok(())
                    } else {
                        Err(format!("{:?} was received", self.received))
                    };
                }
                TaskStatus::Failed => {
                    self.apply(&Command::Retry)?;
                    self.alive = false;
                }
                TaskStatus::Pending | TaskStatus::Running => self.go()?,
            }
            self.check()?;
        }
        Err(format!("no end in sight: {:?}", self.state))
    }
}

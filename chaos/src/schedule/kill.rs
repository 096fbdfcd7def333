//! One way to end (or to disturb) one run.

use std::fmt;

use super::call::CallPoint;
use super::point::CrashPoint;

/// What follows the word of a signal that a whole process group gets.
pub(super) const GROUP: &str = "-group";

/// The text form of a schedule without kills.
pub const NONE: &str = "none";

/// One kill of a schedule.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kill {
    /// The agent sends SIGKILL to itself at this point.
    Point(CrashPoint),
    /// The lab sends SIGKILL so many microseconds after it started the run.
    Delay(u64),
    /// The lab sends SIGKILL after this system call, by the tracer.
    Call(CallPoint),
    /// The lab sends a signal on seeing the step's `step_started` in the journal, while the step sleeps.
    Signal {
        /// What is sent.
        sign: Sign,
        /// Whether its whole process group gets it, as from a terminal, and not the process alone.
        group: bool,
        /// The step to wait for.
        step: usize,
    },
}

/// The signals that the lab sends from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sign {
    /// SIGKILL.
    Kill,
    /// SIGTERM: the agent may tidy up, and says with its exit that it was stopped.
    Term,
    /// SIGINT, like Ctrl-C.
    Int,
    /// SIGSTOP, a while of nothing, SIGCONT: the run must go on to its end.
    Stop,
}

impl Sign {
    /// All of them, in the order of the help.
    pub const ALL: [Self; 4] = [Self::Kill, Self::Term, Self::Int, Self::Stop];

    /// The word in a schedule.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Kill => "kill",
            Self::Term => "term",
            Self::Int => "int",
            Self::Stop => "stop",
        }
    }
}

impl fmt::Display for Kill {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Point(point) => point.fmt(f),
            Self::Call(point) => point.fmt(f),
            Self::Delay(us) if us % 1000 == 0 => write!(f, "+{}ms", us / 1000),
            Self::Delay(us) => write!(f, "+{us}us"),
            Self::Signal { sign, group, step } => {
                write!(f, "{}{}@{step}", sign.word(), if *group { GROUP } else { "" })
            }
        }
    }
}

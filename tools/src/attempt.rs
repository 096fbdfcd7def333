//! What is known of an attempt, and what may come before it.

use std::fmt;
use std::time::Duration;

use serde_json::{Map, Value};
use store::model::{Effect, Timestamp};

use crate::error::ToolError;

/// What is known of the attempt that calls a tool.
#[derive(Clone, Copy)]
pub struct Attempt<'a> {
    /// Which one of its step, from 1.
    pub number: u32,
    /// The class in force, which the plan may have named.
    pub effect: Effect,
    /// Whether an earlier attempt may have had its effect.
    pub repeated: bool,
    /// How long the call may take, where the plan says so.
    pub timeout: Option<Duration>,
    /// How far an earlier attempt was.
    pub checkpoint: Option<&'a Value>,
    /// Commits how far this one is; where there is none, it is not kept.
    pub keep: Option<&'a Keep<'a>>,
    /// What a person has answered to what [`crate::Tool::wait`] showed.
    pub answer: Option<&'a Map<String, Value>>,
}

/// Commits a checkpoint. An error ends the attempt, whatever it has done so far.
pub type Keep<'a> = dyn Fn(&Value) -> Result<(), ToolError> + 'a;

impl Attempt<'_> {
    /// The first one of a step of this class, of which nothing more is said.
    #[must_use]
    pub fn first(effect: Effect) -> Self {
        Self { number: 1, effect, repeated: false, timeout: None, checkpoint: None, keep: None, answer: None }
    }
}

impl fmt::Debug for Attempt<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Attempt").field("number", &self.number).field("effect", &self.effect).finish_non_exhaustive()
    }
}

/// What a step waits for before its first attempt. The wait is committed and costs no attempt; once it is over, the
/// tool is called like any other.
#[derive(Clone, Debug, PartialEq)]
pub enum Pause {
    /// For a time.
    Until(Due),
    /// For a person's answer.
    Approval {
        /// What the person is shown; the answer is for this and nothing else.
        show: Value,
        /// When the question is withdrawn.
        expires: Option<Due>,
        /// What the answer must be, as a JSON Schema, where not every answer will do.
        schema: Option<Value>,
    },
}

/// A time, as plans give it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// So long after the wait began.
    After(Duration),
    /// Then.
    At(Timestamp),
}

impl Due {
    /// When that is, for a wait that begins `now`.
    #[must_use]
    pub fn since(self, now: Timestamp) -> Timestamp {
        match self {
            Self::At(time) => time,
            Self::After(length) => {
                let micros = i64::try_from(length.as_micros()).unwrap_or(i64::MAX);
                Timestamp::from_micros(now.as_micros().saturating_add(micros))
            }
        }
    }
}

/// How a step is tried again that failed and may succeed later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// How often it is tried at most.
    pub max_attempts: u32,
    /// How long it is left alone after the first failure; each further one doubles that.
    pub first: Duration,
    /// The longest that it is left alone.
    pub longest: Duration,
}

impl Backoff {
    /// For what talks to others.
    pub const REMOTE: Self =
        Self { max_attempts: 6, first: Duration::from_secs(1), longest: Duration::from_secs(5 * 60) };
}

/// What is found out about the effect of an earlier attempt.
#[derive(Clone, Debug, PartialEq)]
pub enum Probe {
    /// It has happened, with this output.
    Happened(Map<String, Value>),
    /// It has not happened and will not.
    Absent,
    /// Nobody can say, and why not.
    Unknown(String),
}

/// What a look at the effect of a finished step has shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Audit {
    /// It is as the output promised, or there is nothing to look at.
    Sound,
    /// What is missing or different, one line.
    Differs(String),
    /// The tool cannot look at it.
    NotLookedAt,
}

impl From<Result<(), String>> for Audit {
    fn from(found: Result<(), String>) -> Self {
        found.map_or_else(Self::Differs, |()| Self::Sound)
    }
}

//! Names of tasks, runs and effects, and the file names that are safely derived from them.

use std::fmt::{self, Write as _};

use super::effect::Digest;
use crate::limits;

/// The name of a task: any text of 1 to [`limits::TASK_ID_BYTES`] bytes without control characters.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskId(String);

/// Why a text is not a task id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadTaskId {
    /// Nothing is there.
    #[error("the task id is empty")]
    Empty,
    /// Too long to be made a file name.
    #[error("the task id has {0} bytes, at most {max} are allowed", max = limits::TASK_ID_BYTES)]
    TooLong(usize),
    /// A control character would corrupt logs and terminals.
    #[error("the task id has the control character U+{0:04X} in it")]
    Control(u32),
}

impl TaskId {
    /// Checks the text.
    pub fn new(text: impl Into<String>) -> Result<Self, BadTaskId> {
        let text = text.into();
        if text.is_empty() {
            return Err(BadTaskId::Empty);
        }
        if text.len() > limits::TASK_ID_BYTES {
            return Err(BadTaskId::TooLong(text.len()));
        }
        match text.chars().find(|c| c.is_control()) {
            Some(c) => Err(BadTaskId::Control(u32::from(c))),
            None => Ok(Self(text)),
        }
    }

    /// The id as the user gave it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// A name for files of this task, different for different ids, that cannot leave its folder.
    ///
    /// Ids of ASCII letters, digits, `-`, `_` and `.` without a leading dot stand for themselves, as other programs
    /// that share the locks expect. In others each further byte becomes `%` and two hex digits; where that grows past
    /// the limit for ids, the name is `%%` and the id's SHA-256. A plain id has no `%`, and an escape never has `%`
    /// after `%`, so the three forms cannot meet.
    #[must_use]
    pub fn file_stem(&self) -> String {
        let mut stem = String::with_capacity(self.0.len());
        for (at, byte) in self.0.bytes().enumerate() {
            let plain = byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_') || (byte == b'.' && at > 0);
            if plain {
                stem.push(char::from(byte));
            } else {
                let _infallible = write!(stem, "%{byte:02X}");
            }
        }
        if stem.len() > limits::TASK_ID_BYTES { format!("%%{}", Digest::of_text(&self.0)) } else { stem }
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The name of one process incarnation; journaled with every event that it causes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunId(String);

impl RunId {
    /// A random id of 12 hex digits: short because every journal row carries it.
    #[must_use]
    pub fn random() -> Self {
        let bits: u64 = rand::random();
        Self(format!("{:012x}", bits & 0xffff_ffff_ffff))
    }

    /// An id that was stored, or one that a test chooses.
    pub fn from_stored(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The id's text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// `<task_id>-<step_idx>`: the same for every attempt of a step, so that a receiver can tell a repetition.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct IdempotencyKey {
    task: TaskId,
    step: u32,
    /// Set only by the negative control, which shows that an effect does depend on its key.
    attempt: Option<u32>,
}

impl IdempotencyKey {
    /// The key of a step.
    #[must_use]
    pub fn new(task: TaskId, step: u32) -> Self {
        Self { task, step, attempt: None }
    }

    /// Negative control only: a key that changes with the attempt, and so protects nothing.
    #[must_use]
    pub fn fresh_for_attempt(task: TaskId, step: u32, attempt: u32) -> Self {
        Self { task, step, attempt: Some(attempt) }
    }

    /// The task.
    #[must_use]
    pub fn task(&self) -> &TaskId {
        &self.task
    }

    /// The step.
    #[must_use]
    pub fn step(&self) -> u32 {
        self.step
    }

    /// Negative control only: whether the key changes with the attempt.
    #[must_use]
    pub fn is_of_one_attempt(&self) -> bool {
        self.attempt.is_some()
    }

    /// The key as a file name without extension; see [`TaskId::file_stem`].
    #[must_use]
    pub fn file_stem(&self) -> String {
        self.with_task(&self.task.file_stem())
    }

    fn with_task(&self, task: &str) -> String {
        match self.attempt {
            None => format!("{task}-{}", self.step),
            Some(attempt) => format!("{task}-{}-attempt{attempt}", self.step),
        }
    }
}

impl fmt::Display for IdempotencyKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.with_task(self.task.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rstest::rstest;

    #[rstest]
    #[case("t1", "t1")]
    #[case("a.b-C_9", "a.b-C_9")]
    #[case(".hidden", "%2Ehidden")]
    #[case("..", "%2E.")]
    #[case("../../etc/passwd", "%2E.%2F..%2Fetc%2Fpasswd")]
    #[case("my task", "my%20task")]
    #[case("100%", "100%25")]
    #[case("報告", "%E5%A0%B1%E5%91%8A")]
    fn plain_ids_stand_for_themselves_and_others_are_escaped(#[case] id: &str, #[case] stem: &str) {
        assert_eq!(TaskId::new(id).unwrap().file_stem(), stem);
    }

    #[rstest]
    #[case("", BadTaskId::Empty)]
    #[case("a\nb", BadTaskId::Control(10))]
    #[case("a\0b", BadTaskId::Control(0))]
    #[case("\u{85}", BadTaskId::Control(0x85))]
    fn ids_that_would_harm_are_refused(#[case] id: &str, #[case] why: BadTaskId) {
        assert_eq!(TaskId::new(id), Err(why));
    }

    /// A 250-character id once broke on the name of its lock file, after the task was stored.
    #[test]
    fn an_id_is_short_enough_for_every_file_name_made_from_it() {
        assert_eq!(TaskId::new("x".repeat(201)), Err(BadTaskId::TooLong(201)));
        let longest = TaskId::new("報".repeat(66)).unwrap();
        let key = IdempotencyKey::new(longest, u32::MAX);
        assert!(format!(".{}.{}.tmp", key.file_stem(), u32::MAX).len() <= limits::FILE_NAME_BYTES);
    }

    proptest! {
        #[test]
        fn file_stems_do_not_collide_and_stay_in_their_folder(a in "[a%./ é-]{1,70}", b in "[a%./ é-]{1,70}") {
            let (a, b) = (TaskId::new(a).unwrap(), TaskId::new(b).unwrap());
            prop_assert_eq!(a == b, a.file_stem() == b.file_stem());
            prop_assert!(!a.file_stem().contains('/') && !a.file_stem().starts_with('.'));
        }

        #[test]
        fn keys_of_different_steps_differ(a in "[a0-9-]{1,6}", b in "[a0-9-]{1,6}", i in 0u32..99, j in 0u32..99) {
            let one = IdempotencyKey::new(TaskId::new(a.clone()).unwrap(), i);
            let two = IdempotencyKey::new(TaskId::new(b.clone()).unwrap(), j);
            prop_assert_eq!((a, i) == (b, j), one.to_string() == two.to_string());
        }
    }
}

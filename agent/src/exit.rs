//! Exit codes, one table, and the failures that lead to them.

use std::fmt::Write as _;
use std::io;

use store::{ErrorKind, SessionError, StoreError, line};
use tools::PublishError;

use crate::action_log::LogError;
use crate::engine::EngineError;
use crate::home::HomeError;
use crate::inbox::InboxError;
use crate::places::NotApart;

/// How the program ends. Codes are stable: scripts read them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[expect(missing_docs, reason = "EXIT_CODES says what each means")]
pub enum Exit {
    Done = 0,
    UnknownTask = 1,
    TaskFailed = 2,
    Held = 3,
    Refused = 4,
    Findings = 5,
    Person = 6,
    NotDue = 7,
    Cancelled = 8,
    Usage = 64,
    BadPlan = 65,
    NoInput = 66,
    Internal = 70,
    CannotCreate = 73,
    Io = 74,
    Busy = 75,
    LeaseLost = 76,
    BadStore = 78,
    Interrupted = 130,
    Terminated = 143,
}

/// The published table.
pub(crate) const EXIT_CODES: &[(Exit, &str)] = &[
    (Exit::Done, "done"),
    (Exit::UnknownTask, "there is no such task"),
    (Exit::TaskFailed, "the task has failed: a step used up its attempts, or no attempt can succeed"),
    (Exit::Held, "another process is running the task"),
    (Exit::Refused, "not possible in the task's present state, such as a retry of a task that has not failed"),
    (Exit::Findings, "verify found something"),
    (Exit::Person, "the task waits for a person: a step is in doubt, or asks"),
    (Exit::NotDue, "nothing of the task is due yet"),
    (Exit::Cancelled, "the task is cancelled"),
    (Exit::Usage, "wrong usage, or an environment variable with a value that makes no sense"),
    (Exit::BadPlan, "the plan is not valid; nothing was stored"),
    (Exit::NoInput, "a file that is needed is missing or cannot be read"),
    (Exit::Internal, "a bug in this program"),
    (
        Exit::CannotCreate,
        "cannot be created or written: a task or backup that exists already, a place that is read-only",
    ),
    (Exit::Io, "reading, writing or syncing failed, or the disk is full; nothing committed is lost"),
    (Exit::Busy, "another process kept the database busy for too long; try again"),
    (Exit::LeaseLost, "a later run has taken the task over; this one stopped"),
    (
        Exit::BadStore,
        "the database is not ours, too new, damaged, or was changed by somebody else; this program did not change it",
    ),
    (Exit::Interrupted, "stopped by SIGINT; nothing committed is lost, and `run` goes on"),
    (Exit::Terminated, "stopped by SIGTERM; nothing committed is lost, and `run` goes on"),
];

/// What a shell sees of a process that a signal has ended.
pub(crate) fn by_signal(signal: i32) -> i32 {
    128 + signal
}

/// The table as text, for `--help`.
#[must_use]
pub(crate) fn table() -> String {
    EXIT_CODES.iter().fold(String::from("Exit codes:\n"), |mut text, (exit, meaning)| {
        let _infallible = writeln!(text, "  {:>3}  {meaning}", *exit as u8);
        text
    })
}

/// Why a command did not succeed: a line for people, and the code for scripts.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    exit: Exit,
    message: String,
}

impl Failure {
    /// A failure that ends with `exit`; the message says what is wrong, where, and what to do. It stays one line
    /// whatever names are in it.
    pub fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self { exit, message: printable(&message.into()) }
    }

    /// The code.
    #[must_use]
    pub fn exit(&self) -> Exit {
        self.exit
    }
}

/// Text for a terminal: control characters, which names of files and goals may have in them, are escaped.
pub(crate) fn printable(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut line, c| {
        if c.is_control() {
            line.extend(c.escape_default());
        } else {
            line.push(c);
        }
        line
    })
}

const MEND: &str = "run the task again once the cause is mended";

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        let exit = match error.kind() {
            ErrorKind::Busy => Exit::Busy,
            ErrorKind::Held => Exit::Held,
            ErrorKind::Fenced => Exit::LeaseLost,
            ErrorKind::NoTask => Exit::UnknownTask,
            ErrorKind::Missing | ErrorKind::Unreadable => Exit::NoInput,
            ErrorKind::Exists | ErrorKind::Refused => Exit::CannotCreate,
            ErrorKind::Foreign | ErrorKind::Newer | ErrorKind::Corrupt | ErrorKind::Conflict => Exit::BadStore,
            ErrorKind::Io | ErrorKind::Full | ErrorKind::TooLarge | ErrorKind::Unsettled => Exit::Io,
        };
        Self::new(exit, line(&error))
    }
}

impl From<SessionError> for Failure {
    fn from(error: SessionError) -> Self {
        EngineError::from(error).into()
    }
}

impl From<EngineError> for Failure {
    fn from(error: EngineError) -> Self {
        let text = line(&error);
        match error {
            EngineError::Store(error) => error.into(),
            EngineError::Observer(error) => match error.downcast::<LogError>() {
                Ok(error) => (*error).into(),
                Err(_) => Self::new(Exit::Internal, text),
            },
            EngineError::Refused(_) => Self::new(Exit::Refused, text),
            EngineError::Secret { .. } => Self::new(Exit::Usage, text),
            EngineError::Stored { .. } => Self::new(Exit::BadStore, text),
            EngineError::Artifacts { before, .. } => Self::new(
                Exit::Refused,
                format!("{text}: run it with AGENT_ARTIFACTS={}, or move that folder", before.display()),
            ),
            EngineError::Tool { .. } => Self::new(Exit::Io, format!("{text}; {MEND}")),
            EngineError::Report(error) => Self::new(of_report(&error), format!("{text}; {MEND}")),
        }
    }
}

/// Whether the report's place is at fault, or the disk.
fn of_report(error: &PublishError) -> Exit {
    use io::ErrorKind::{InvalidFilename, NotADirectory, NotFound, PermissionDenied, ReadOnlyFilesystem};
    match error {
        PublishError::Occupied { .. } => Exit::CannotCreate,
        PublishError::Io { source, .. }
            if matches!(
                source.kind(),
                InvalidFilename | NotADirectory | NotFound | PermissionDenied | ReadOnlyFilesystem
            ) =>
        {
            Exit::CannotCreate
        }
        _ => Exit::Io,
    }
}

impl From<LogError> for Failure {
    fn from(error: LogError) -> Self {
        let exit = match error {
            LogError::Store(error) => return error.into(),
            LogError::Busy { .. } => Exit::Busy,
            LogError::NotAFile { .. } => Exit::CannotCreate,
            LogError::Io { .. } | LogError::Sync { .. } | LogError::Folder(_) => Exit::Io,
        };
        let why = line(&error);
        Self::new(exit, format!("{why}; nothing committed is lost, and --log-best-effort goes on without the log"))
    }
}

impl From<NotApart> for Failure {
    fn from(error: NotApart) -> Self {
        Self::new(Exit::Usage, error.to_string())
    }
}

impl From<HomeError> for Failure {
    fn from(error: HomeError) -> Self {
        let exit = match error {
            HomeError::Missing { .. } | HomeError::Here(_) => Exit::NoInput,
            HomeError::Name { .. } => Exit::Usage,
        };
        Self::new(exit, line(&error))
    }
}

impl From<InboxError> for Failure {
    fn from(error: InboxError) -> Self {
        let exit = match error {
            InboxError::Folder { .. } | InboxError::Note { .. } => Exit::NoInput,
            InboxError::Name { .. } | InboxError::TooMany { .. } => Exit::BadPlan,
        };
        Self::new(exit, line(&error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case(ErrorKind::Busy, 75)]
    #[case(ErrorKind::Held, 3)]
    #[case(ErrorKind::Fenced, 76)]
    #[case(ErrorKind::Conflict, 78)]
    #[case(ErrorKind::Missing, 66)]
    #[case(ErrorKind::NoTask, 1)]
    #[case(ErrorKind::Unreadable, 66)]
    #[case(ErrorKind::Exists, 73)]
    #[case(ErrorKind::Refused, 73)]
    #[case(ErrorKind::Foreign, 78)]
    #[case(ErrorKind::Newer, 78)]
    #[case(ErrorKind::Corrupt, 78)]
    #[case(ErrorKind::Io, 74)]
    #[case(ErrorKind::Full, 74)]
    #[case(ErrorKind::TooLarge, 74)]
    #[case(ErrorKind::Unsettled, 74)]
    fn every_kind_of_store_error_has_its_code(#[case] kind: ErrorKind, #[case] code: u8) {
        let failure = Failure::from(StoreError::new(kind, "why"));
        assert_eq!((failure.exit() as u8, failure.to_string().as_str()), (code, "why"));
    }

    #[test]
    fn a_message_has_no_control_characters() {
        let failure = Failure::new(Exit::Internal, "Grüße\n\u{1b}[31m\0 \u{85}報 'x' \\");
        assert_eq!(failure.to_string(), "Grüße\\n\\u{1b}[31m\\u{0} \\u{85}報 'x' \\");
    }

    #[test]
    fn codes_are_told_apart() {
        let codes: std::collections::BTreeSet<u8> = EXIT_CODES.iter().map(|(exit, _)| *exit as u8).collect();
        assert_eq!(codes.len(), EXIT_CODES.len());
        assert!(codes.iter().all(|code| *code != 101), "101 is a panic");
    }
}

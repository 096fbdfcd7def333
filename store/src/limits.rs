//! Every bound of the runtime, named, in one place. Sizes are bytes unless the name says otherwise.

use std::time::Duration;

/// Longest task id. It must leave room for the key, the process id and a suffix within the 255 bytes that file systems
/// allow for one name.
pub const TASK_ID_BYTES: usize = 200;

/// Longest name that common file systems accept for one folder entry.
pub const FILE_NAME_BYTES: usize = 255;

/// Most steps of one plan.
pub const PLAN_STEPS: usize = 1_000_000;

/// Largest plan file.
pub const PLAN_FILE_BYTES: u64 = 512 << 20;

/// Largest plan file that is not JSON: it lies in memory as a whole.
pub const YAML_BYTES: u64 = 16 << 20;

/// Largest plan file that is stored with its task. A plan of a million steps would be stored twice.
pub const PLAN_SOURCE_BYTES: u64 = 1 << 20;

/// Largest text that a step may read from a file.
pub const INPUT_FILE_BYTES: u64 = 256 << 20;

/// How often a step is tried where neither its plan nor the environment nor its tool says how often.
pub const ATTEMPTS: u32 = 3;

/// How often the end of an attempt is written where the database has no room, or is busy: its effect has happened.
pub const COMMIT_TRIES: u32 = 5;

/// The pause before the second of those; each further one is four times as long.
pub const COMMIT_PAUSE: Duration = Duration::from_millis(10);

/// How long a person's command waits for the run that holds the task.
pub const LOCK_WAIT: Duration = Duration::from_secs(10);

/// How often it looks meanwhile.
pub const LOCK_LOOK: Duration = Duration::from_millis(20);

/// Largest output of a step, as JSON. SQLite's own limit for one value is a little under 1 GiB.
pub const OUTPUT_BYTES: usize = 512 << 20;

/// An error message is journaled up to this length; what a failing server says must not fill the disk.
pub const ERROR_TEXT_BYTES: usize = 4 << 10;

/// Step rows fetched at once by the loop: large enough to make the read free, small enough to stay in cache.
pub const STEP_PAGE: u32 = 64;

/// Journal rows fetched at once by readers.
pub const JOURNAL_PAGE: u32 = 512;

/// How long a writer that holds the database is waited for before the run gives up with "busy".
pub const BUSY_WAIT: Duration = Duration::from_secs(30);

/// Databases up to this size are checked page by page when they are opened for writing; larger ones page by page as
/// they are read, and wholly by `verify`.
pub const CHECK_AT_OPEN_BYTES: i64 = 1 << 20;

/// WAL pages after which SQLite moves them into the database, so that the WAL stays bounded.
pub const WAL_AUTOCHECKPOINT_PAGES: u32 = 1000;

/// Longest line of an action log that is looked at; what is longer was written by something else. Ours have a few
/// hundred bytes, an error message included some ten thousand.
pub const LOG_LINE_BYTES: usize = 64 << 10;

/// How long the lock of an action log is waited for. Others hold it for one line, or while they read the log.
pub const LOG_LOCK_WAIT: Duration = Duration::from_secs(30);

/// Longest line by which a program says how far it is.
pub const CHECKPOINT_BYTES: usize = 64 << 10;

/// Most that a program may print as its output.
pub const PROGRAM_OUTPUT_BYTES: usize = 64 << 20;

/// How much of the standard error of one attempt is kept.
pub const STDERR_BYTES: usize = 1 << 20;

/// How long a program may run where its plan does not say.
pub const PROGRAM_TIME: Duration = Duration::from_secs(3600);

/// Largest answer of a server that is read.
pub const HTTP_BODY_BYTES: u64 = 16 << 20;

/// How long a request may take where its plan does not say.
pub const HTTP_TIME: Duration = Duration::from_secs(60);

/// Most files that a step may list.
pub const LISTED_FILES: usize = 100_000;

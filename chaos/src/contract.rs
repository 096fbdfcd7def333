//! Names, spellings and codes of the agent contract (docs/contract.md), restated by hand: the lab takes nobody's word
//! for them.

/// The database's name in the agent's working folder.
pub const DB_FILE: &str = "state.db";

/// What SQLite appends to the name of a database for the files that its content is in: itself, its write-ahead log, and
/// the journal that undoes a change that a cut left half done.
pub const DB_SUFFIXES: [&str; 3] = ["", "-wal", "-journal"];

/// The one of them that is the write-ahead log.
pub const WAL: &str = "-wal";

/// Name of the plan file in a scenario's folder.
pub const PLAN_FILE: &str = "plan.json";

/// The sites that every agent fires for every step, in the order in which it passes them.
pub const CRASH_SITES: [&str; 3] = ["before_effect", "after_effect", "after_commit"];

/// The tool that publishes a file.
pub const PUBLISHER: &str = "write_artifact";

/// The tool that starts programs.
pub const STARTER: &str = "exec";

/// How often a step is attempted where nothing is set: tools that talk to others are given more time.
#[must_use]
pub fn attempts(tool: &str) -> i64 {
    if matches!(tool, STARTER | "http") { 6 } else { 3 }
}

/// Where that tool appends its entries when it is made unsafe.
pub const UNSAFE_LOG: &str = "report.log";

/// The tools that every agent has, with whether they change something outside the database.
const TOOLS: [(&str, bool); 3] = [("fetch", false), ("summarize", false), (PUBLISHER, true)];

/// The options of the inbox agent.
pub const INBOX_OPTIONS: [&str; 4] = ["--task", "--inbox", "--log", "--out"];

/// What a process ends with.
pub mod code {
    /// Done; also where it was done before.
    pub const DONE: i32 = 0;
    /// The task has failed.
    pub const FAILED: i32 = 2;
    /// Another process holds the task's lock.
    pub const LOCKED: i32 = 3;
    /// Not possible in the task's present state.
    pub const REFUSED: i32 = 4;
    /// The task waits for a person: it is in doubt, or there is a question.
    pub const PERSON: i32 = 6;
    /// The command line or a variable makes no sense.
    pub const USAGE: i32 = 64;
}

/// Whether every agent has a tool of this name.
#[must_use]
pub fn is_of_contract(tool: &str) -> bool {
    TOOLS.iter().any(|(name, _)| *name == tool)
}

/// Whether a tool of the contract leaves the world as it is; nothing of any other tool.
#[must_use]
pub fn is_pure(tool: &str) -> Option<bool> {
    TOOLS.iter().find(|(name, _)| *name == tool).map(|(_, effect)| !effect)
}

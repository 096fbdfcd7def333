//! What a run is made of.

use std::sync::LazyLock;

use store::sqlite::SqliteStore;
use store::{Crash, Store};
use tools::Registry;

use crate::action_log::{LogFile, LogSink};
use crate::engine::Replace;

/// What a run is made of. The tests of the crash tests put wrong parts in the place of the right ones.
#[derive(Clone, Copy)]
pub struct Parts<'a> {
    /// Makes the store that the run works with from the one that was opened.
    pub store: &'a dyn Fn(SqliteStore, &Crash) -> Box<dyn Store>,
    /// Where its tools come from.
    pub tools: &'a Registry,
    /// Makes what the action log is written to from the file that was opened.
    pub log: Sink<'a>,
    /// Puts the report into the world.
    pub replace: Replace<'a>,
}

/// Makes what an action log is written to.
pub(super) type Sink<'a> = &'a dyn Fn(LogFile) -> Box<dyn LogSink>;

impl Parts<'_> {
    /// The right ones.
    pub(crate) fn right() -> Parts<'static> {
        static TOOLS: LazyLock<Registry> = LazyLock::new(Registry::builtin);
        Parts {
            store: &|store, _crash| Box::new(store),
            tools: &TOOLS,
            log: &|file| Box::new(file),
            replace: &tools::replace,
        }
    }
}

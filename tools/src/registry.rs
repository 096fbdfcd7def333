//! The tools that a program has.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::builtin;
use crate::tool::Tool;

/// The tools that plans may call, by name. It is a value: whoever looks a tool up has been given one, and a program may
/// have tools of its own beside those that come with the agent or in their place.
#[derive(Clone, Default)]
pub struct Registry(BTreeMap<String, Arc<dyn Tool>>);

impl Registry {
    /// The tools that come with the agent.
    #[must_use]
    pub fn builtin() -> Self {
        let mut tools = Self::default();
        for tool in builtin::all() {
            tools.add(tool);
        }
        tools
    }

    /// Adds a tool; the one that had its name before is given back.
    pub fn add(&mut self, tool: Arc<dyn Tool>) -> Option<Arc<dyn Tool>> {
        self.0.insert(tool.spec().name.clone(), tool)
    }

    /// The tool of that name.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        self.0.get(name)
    }

    /// All tools, by name.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<dyn Tool>> {
        self.0.values()
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

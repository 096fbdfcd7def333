//! The tools that come with the agent, one file each.

mod count_words;
mod echo;
mod exec;
mod fetch;
mod http;
mod summarize;
mod write_artifact;

use std::sync::Arc;

use crate::tool::Tool;

/// Every one of them.
pub(crate) fn all() -> Vec<Arc<dyn Tool>> {
    vec![
        Arc::new(count_words::CountWords),
        Arc::new(echo::Echo),
        Arc::new(exec::Exec),
        Arc::new(fetch::Fetch),
        Arc::new(http::Http),
        Arc::new(summarize::Summarize),
        Arc::new(write_artifact::WriteArtifact),
    ]
}

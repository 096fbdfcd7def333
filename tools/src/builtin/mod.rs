//! The tools that come with the agent, one file each.

mod approval;
mod count_words;
mod echo;
mod exec;
mod fail;
mod fetch;
mod http;
mod list_files;
mod sleep;
mod summarize;
mod write_artifact;
mod write_file;

use std::sync::Arc;

use crate::tool::Tool;

/// Every one of them.
pub(crate) fn all() -> Vec<Arc<dyn Tool>> {
    vec![
        Arc::new(approval::Approval),
        Arc::new(count_words::CountWords),
        Arc::new(echo::Echo),
        Arc::new(exec::Exec),
        Arc::new(fail::Fail),
        Arc::new(fetch::Fetch),
        Arc::new(http::Http),
        Arc::new(list_files::ListFiles),
        Arc::new(sleep::Sleep),
        Arc::new(summarize::Summarize),
        Arc::new(write_artifact::WriteArtifact),
        Arc::new(write_file::WriteFile),
    ]
}

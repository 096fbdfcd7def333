//! The tools that come with the agent, one file each.

mod count_words;
mod echo;
mod fetch;
mod summarize;
mod write_artifact;

use crate::tool::Tool;

/// Every tool there is, by name.
pub const ALL: &[&dyn Tool] =
    &[&count_words::CountWords, &echo::Echo, &fetch::Fetch, &summarize::Summarize, &write_artifact::WriteArtifact];

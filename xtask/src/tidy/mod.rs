//! The rules that the compiler does not know. Each rule is one function from a source text to what breaks it, shown in
//! its tests something that it must reject.

mod depend;
mod named;
mod source;

use std::collections::BTreeSet;
use std::fs;

use anyhow::{Context as _, Result, bail};

use crate::util;

pub(crate) fn run() -> Result<()> {
    let mut broken = depend::check()?;
    let mut tests = BTreeSet::new();
    for (path, text) in texts(".rs")? {
        broken.extend(source::check(&path, &text));
        tests.extend(named::functions(&text).into_iter().map(str::to_owned));
    }
    for (path, text) in texts(".md")? {
        broken.extend(named::unknown(&path, &text, &tests));
    }
    if broken.is_empty() {
        return Ok(());
    }
    bail!("{} rules are broken:\n  {}", broken.len(), broken.join("\n  "))
}

/// Path and text of each file with this ending.
fn texts(ending: &str) -> Result<Vec<(String, String)>> {
    let read = |path: std::path::PathBuf| {
        let text = fs::read_to_string(util::root().join(&path)).with_context(|| format!("cannot read {path:?}"))?;
        Ok((path.to_string_lossy().into_owned(), text))
    };
    util::files(ending)?.into_iter().map(read).collect()
}

//! The rules that the compiler does not know. Each rule is one function from a source text to what breaks it, shown in
//! its tests something that it must reject.

mod depend;
mod modules;
mod named;
mod names;
mod source;
mod text;

use std::collections::BTreeSet;
use std::fs;

use anyhow::{Context as _, Result, bail};

use crate::util;

pub(crate) fn run() -> Result<()> {
    let mut broken = depend::check()?;
    let mut tests = BTreeSet::new();
    let sources = texts(".rs")?;
    for (path, text) in &sources {
        broken.extend(source::check(path, text, &text::pieces(text)));
        tests.extend(named::functions(text).into_iter().map(str::to_owned));
    }
    broken.extend(modules::check(&sources));
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

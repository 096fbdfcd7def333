//! The rules that the compiler does not know. Each rule is one function from a source text to what breaks it, shown in
//! its tests something that it must reject.

mod depend;
mod english;
mod limits;
mod modules;
mod named;
mod names;
mod places;
mod source;
mod text;

use std::collections::BTreeSet;
use std::fs;

use anyhow::{Context as _, Result, bail};

use crate::util;

pub(crate) fn run() -> Result<()> {
    let mut broken = depend::check()?;
    let mut tests = BTreeSet::new();
    let files = util::files("")?;
    let places = places::known(files.iter().filter_map(|path| path.to_str()));
    let sources = texts(".rs")?;
    for (path, text) in &sources {
        let pieces = text::pieces(text);
        broken.extend(source::check(path, text, &pieces));
        // The rule itself has examples.
        if !path.ends_with("tidy/english.rs") {
            broken.extend(english::check(path, text));
        }
        broken.extend(pieces.comments.iter().flat_map(|piece| places::gone(path, piece.line, &piece.text, &places)));
        tests.extend(named::functions(text).into_iter().map(str::to_owned));
    }
    broken.extend(modules::check(&sources));
    for (path, text) in sources.iter().filter(|(path, _)| path.ends_with("src/limits.rs")) {
        broken.extend(limits::unused(path, text, &sources));
    }
    for (path, text) in texts(".py")? {
        broken.extend(english::check(&path, &text));
    }
    for (path, text) in texts(".md")? {
        broken.extend(english::check(&path, &text));
        broken.extend(named::unknown(&path, &text, &tests));
        broken.extend((1..).zip(text.lines()).flat_map(|(line, text)| places::gone(&path, line, text, &places)));
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

//! The rules that the compiler does not know. Each rule is one function from a source text to what breaks it, shown in
//! its tests something that it must reject.

mod depend;
mod source;

use std::fs;

use anyhow::{Context as _, Result, bail};

use crate::util;

pub(crate) fn run() -> Result<()> {
    let mut broken = depend::check()?;
    for path in util::files(".rs")? {
        let text = fs::read_to_string(util::root().join(&path)).with_context(|| format!("cannot read {path:?}"))?;
        broken.extend(source::check(&path.to_string_lossy(), &text));
    }
    if broken.is_empty() {
        return Ok(());
    }
    bail!("{} rules are broken:\n  {}", broken.len(), broken.join("\n  "))
}

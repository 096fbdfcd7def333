//! `cargo xtask test`: every check there is, cheapest first.

use anyhow::{Context as _, Result};

use crate::{chaos, docs, model, sabotage, tidy, util};

pub(crate) fn run() -> Result<()> {
    stage("format", || util::run(&mut util::cargo(&["fmt", "--all", "--check"])))?;
    stage("clippy", || {
        util::run(&mut util::cargo(&["clippy", "--quiet", "--workspace", "--all-targets", "--", "--deny", "warnings"]))
    })?;
    stage("tidy", tidy::run)?;
    stage("documents", docs::check)?;
    stage("each crate alone", alone)?;
    stage("tests", || util::run(&mut util::cargo(&["test", "--quiet", "--workspace"])))?;
    stage("model", || model::run(false, None))?;
    stage("chaos", || chaos::run(&[]))?;
    stage("sabotage", sabotage::run)
}

/// Features of one member must not hide what another forgot to ask for.
fn alone() -> Result<()> {
    util::run(&mut util::cargo(&["check", "--quiet", "-p", "store", "--no-default-features"]))?;
    for member in ["tools", "chaos", "fixtures"] {
        util::run(&mut util::cargo(&["check", "--quiet", "-p", member]))?;
    }
    Ok(())
}

fn stage(name: &str, check: impl FnOnce() -> Result<()>) -> Result<()> {
    util::say(&format!("== {name}"));
    let start = std::time::Instant::now();
    check().with_context(|| format!("{name} failed"))?;
    util::say(&format!("== {name}: ok, {:.1} s", start.elapsed().as_secs_f64()));
    Ok(())
}

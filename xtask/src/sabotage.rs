//! `cargo xtask sabotage`: the lab itself under test.

use anyhow::Result;

pub(crate) fn run() -> Result<()> {
    Ok(())
}

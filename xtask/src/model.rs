//! `cargo xtask model`: the shipped machine under every interleaving.

use std::process::Command;

use anyhow::Result;

use crate::util;

/// The pure machine is optimised for this alone; its checks of overflow stay on.
const OPTIMISED: &str = "profile.dev.package.store.opt-level=3";

pub(crate) fn run(deep: bool, bug: Option<&str>) -> Result<()> {
    let model = util::build(&["--workspace", "--example", "model", "--config", OPTIMISED])?;
    let mut model = Command::new(model);
    if deep {
        model.arg("--deep");
    }
    if let Some(bug) = bug {
        model.args(["--bug", bug]);
    }
    util::run(&mut model)
}

//! `cargo xtask model`: the shipped machine under every interleaving.

use std::process::Command;

use anyhow::Result;

use crate::util;

pub(crate) fn run(deep: bool, bug: Option<&str>) -> Result<()> {
    let model = util::build(&["--workspace", "--example", "model"])?;
    let mut model = Command::new(model);
    if deep {
        model.arg("--deep");
    }
    if let Some(bug) = bug {
        model.args(["--bug", bug]);
    }
    util::run(&mut model)
}

//! `cargo xtask chaos`: the lab, with this workspace's agent.

use std::process::Command;

use anyhow::Result;

use crate::util;

pub(crate) fn run(args: &[String]) -> Result<()> {
    let agent = util::build(&["-p", "agent", "--bin", "agent"], false)?;
    let chaos = util::build(&["-p", "chaos", "--bin", "chaos"], false)?;
    let mut lab = Command::new(chaos);
    lab.current_dir(util::root());
    // Other commands of the lab (`list`, `replay`, `report`) pass as they are.
    let command = args.first().map(String::as_str).filter(|first| !first.starts_with('-'));
    lab.arg(command.unwrap_or("run"));
    if command.is_none_or(|command| command != "report") {
        lab.arg("--agent").arg(agent);
    }
    lab.args(&args[usize::from(command.is_some())..]);
    util::run(&mut lab)
}

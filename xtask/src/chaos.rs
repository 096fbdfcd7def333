//! `cargo xtask chaos`: the lab, with this workspace's agent.

use std::process::Command;

use anyhow::Result;

use crate::util;

/// The inventory of tools, effects and crash points, pinned: losing one is a visible difference.
const INVENTORY: &str = "fixtures/data/crash_points.txt";

/// Options under which a run still finds every crash point, so that the inventory can be compared.
const WHOLE: &[&str] = &["--bless", "--seed", "--jobs", "--out", "--json", "--deep"];

pub(crate) fn run(args: &[String]) -> Result<()> {
    let [agent, chaos] = util::binaries(["agent", "chaos"])?;
    let mut lab = Command::new(chaos);
    lab.current_dir(util::root());
    // Other commands of the lab (`list`, `replay`, `report`) pass as they are.
    let command = args.first().map(String::as_str).filter(|first| !first.starts_with('-'));
    lab.arg(command.unwrap_or("run"));
    if command.is_none_or(|command| command != "report") {
        lab.arg("--agent").arg(agent);
    }
    let whole = args.iter().filter(|arg| arg.starts_with('-')).all(|arg| WHOLE.contains(&arg.as_str()));
    if command.is_none() && whole {
        lab.args(["--gate", INVENTORY]);
    }
    lab.args(&args[usize::from(command.is_some())..]);
    util::run(&mut lab)?;
    if command.is_none() && !whole {
        util::say(&format!("only a part was played, so {INVENTORY} was not compared; `cargo xtask chaos` does that"));
    }
    Ok(())
}

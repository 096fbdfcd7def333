//! `cargo xtask sabotage`: the lab itself under test.
//!
//! An honest agent must hold, or the lab cries wolf. Each bug of the sabotaged agent must be caught by a judge that the
//! table names, or the lab is blind. And each judge must be needed, or it is not known to see anything.

mod bug;
mod judge;
mod lab;
mod matrix;

use std::fs;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use anyhow::{Context as _, Result, bail};

use crate::util;
use bug::{Bug, Catch};
use lab::Lab;

/// Which method and which judge caught which bug: in the folder that cargo builds into.
const TABLES: &str = "sabotage.txt";

/// So many seeds in a row must raise no alarm.
const SEEDS: u32 = 20;

pub(crate) fn run() -> Result<()> {
    let [agent, chaos, sabotaged] = util::binaries(["agent", "chaos", "sabotaged"])?;
    let lab = Lab::new(&chaos, &agent, &sabotaged)?;
    let bugs = Bug::all(&util::read(std::process::Command::new(&sabotaged).arg("--list"))?)?;
    is_not_shipped(&agent, &sabotaged, &bugs)?;
    no_false_alarm(&lab)?;
    let start = Instant::now();
    let catches = try_all(&lab, &bugs)?;
    let judges = lab.judges()?;
    let tables = [matrix::of_bugs(&bugs, &catches), matrix::of_judges(&judges, &bugs, &catches)].join("\n");
    let file = util::target_folder()?.join(TABLES);
    fs::write(&file, &tables).with_context(|| format!("cannot write {}", file.display()))?;
    let wrong = judge::judge(&judges, &bugs, &catches);
    if !wrong.is_empty() {
        bail!("{tables}\nthe lab is not as it should be:\n  {}", wrong.join("\n  "));
    }
    let caught = bugs.iter().filter(|bug| bug.open.is_none()).count();
    let alone = judge::needed(&bugs, &catches).len();
    let time = start.elapsed().as_secs_f64();
    util::say(&format!(
        "{caught} of {} bugs are caught by the judges that their rows name, the others are open with a reason \
         ({time:.0} s)\n{alone} of {} judges catch a bug that nobody else does, the others have a reason\n\
         the whole tables: {}",
        bugs.len(),
        judges.len(),
        file.display()
    ));
    Ok(())
}

/// Shown that the look finds them where they are, it must find none in the agent.
fn is_not_shipped(agent: &Path, sabotaged: &Path, bugs: &[Bug]) -> Result<()> {
    let read = |path: &Path| fs::read(path).with_context(|| format!("cannot read {}", path.display()));
    let planted = judge::traces(&read(sabotaged)?, bugs);
    if planted.len() != bugs.len() {
        bail!("of {} bugs only {} can be seen in the sabotaged agent", bugs.len(), planted.len());
    }
    match judge::traces(&read(agent)?, bugs)[..] {
        [] => Ok(()),
        [first, ..] => bail!("the agent that ships has the bug {first} in it"),
    }
}

fn no_false_alarm(lab: &Lab) -> Result<()> {
    let start = Instant::now();
    lab.wrapped_holds()?;
    for seed in 1..=SEEDS {
        lab.agent_holds(seed)?;
    }
    let time = start.elapsed().as_secs_f64();
    util::say(&format!("the honest agent holds on {SEEDS} seeds in a row, and in its wrappers ({time:.0} s)"));
    Ok(())
}

/// Each bug in turn, as many side by side as there are cores; what came of it, in the order of the bugs.
fn try_all(lab: &Lab, bugs: &[Bug]) -> Result<Vec<Catch>> {
    let next = AtomicUsize::new(0);
    let caught: Vec<Mutex<Option<Result<Catch>>>> = bugs.iter().map(|_| Mutex::default()).collect();
    let work = || {
        while let Some((bug, slot)) = take(&next, bugs, &caught) {
            let result = lab.try_bug(bug).with_context(|| format!("the bug {}", bug.name));
            if let Ok(mut slot) = slot.lock() {
                *slot = Some(result);
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(work);
        }
    });
    let result = |slot: Mutex<Option<Result<Catch>>>| {
        slot.into_inner().ok().flatten().unwrap_or_else(|| bail!("a worker has died"))
    };
    caught.into_iter().map(result).collect()
}

fn take<'a, A, B>(next: &AtomicUsize, first: &'a [A], second: &'a [B]) -> Option<(&'a A, &'a B)> {
    let place = next.fetch_add(1, Ordering::Relaxed);
    Some((first.get(place)?, second.get(place)?))
}

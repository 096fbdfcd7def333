//! The sabotaged agent: the real one with one bug planted in it.
//!
//! `sabotaged BUG ARGUMENTS…` behaves as `agent ARGUMENTS…` does, but for the bug. It exists to test the crash tests:
//! a bug that they do not catch is a hole in them. It is an example target and never ships.
//!
//! It is built from the real parts. [`plant`] says in which ways a part may be wrong; `store`, `artifact`, `log` and
//! `report` are the wrappers that do wrong, `unit` writes commits with SQL of its own, `known` is what the wrappers tell
//! each other; [`bugs`] is the table of what is planted.
//! `sabotaged --list` prints that table as JSON, and `honest` is the bug that is none: it shows that the wrappers do
//! no harm of their own.

mod artifact;
mod bugs;
mod known;
mod list;
mod log;
mod plant;
mod report;
mod store;
mod unit;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use agent::{Config, Exit, Failure, InboxRequest, LogChoice, Parts};

use crate::artifact::PlantedArtifact;
use crate::known::Known;
use crate::log::PlantedLog;
use crate::plant::Plant;
use crate::report::PlantedReport;
use crate::store::PlantedStore;

fn main() -> ExitCode {
    let mut args: Vec<OsString> = std::env::args_os().collect();
    let first = if args.len() > 1 { args.remove(1) } else { OsString::new() };
    let exit = match first.to_str() {
        Some("--list") => list::print(),
        Some(name) => match bugs::named(name) {
            Some(plant) => (plant.exit)(run(plant, args)),
            None => {
                anstream::eprintln!("sabotaged: there is no bug `{name}`; --list shows what there is");
                Exit::Usage
            }
        },
        None => Exit::Usage,
    };
    ExitCode::from(exit as u8)
}

/// What the agent does with these arguments; only `create`, `run` and `inbox` are sabotaged.
fn run(plant: &'static Plant, args: Vec<OsString>) -> Exit {
    let words: Vec<&str> = args[1..].iter().filter_map(|word| word.to_str()).collect();
    // The form in which the lab calls it.
    let result = match words[..] {
        ["--db", db, "run", task] => sabotaged_run(plant, Path::new(db), task),
        ["--db", db, "create", task, file] => sabotaged_create(plant, Path::new(db), task, Path::new(file)),
        ["--db", db, "inbox", "--task", task, "--inbox", inbox, "--log", log, "--out", out] => {
            let log = LogChoice { path: Path::new(log), best_effort: false };
            let request = InboxRequest { task, inbox: Path::new(inbox), out: Path::new(out), log };
            with_parts(plant, Path::new(db), |config, parts| agent::inbox_with(Path::new(db), request, config, parts))
        }
        _ => match agent::cli::parse(args) {
            Err(exit) => return exit,
            Ok(cli) => cli.run(),
        },
    };
    result.unwrap_or_else(|failure| {
        anstream::eprintln!("agent: {failure}");
        failure.exit()
    })
}

fn sabotaged_create(plant: &'static Plant, db: &Path, task: &str, file: &Path) -> Result<Exit, Failure> {
    with_parts(plant, db, |config, parts| agent::create_with(db, task, file, config, parts))
}

fn sabotaged_run(plant: &'static Plant, db: &Path, task: &str) -> Result<Exit, Failure> {
    wrong(db, (plant.before)(db, task))?;
    let exit = with_parts(plant, db, |config, parts| agent::run_with(db, task, config, parts))?;
    wrong(db, (plant.after)(db, task))?;
    Ok(exit)
}

/// Gives `command` the wrong parts.
fn with_parts(
    plant: &'static Plant,
    db: &Path,
    command: impl FnOnce(&Config, &Parts<'_>) -> Result<Exit, Failure>,
) -> Result<Exit, Failure> {
    let mut config = Config::from_env()?;
    (plant.config)(&mut config);
    let late = artifact::Late::default();
    let known = Known::default();
    let (for_store, known_to_store) = (late.clone(), known.clone());
    let store = |inner, crash: &::store::Crash| -> Box<dyn ::store::Store> {
        Box::new(PlantedStore::new(inner, db, plant, crash.clone(), for_store.clone(), known_to_store.clone()))
    };
    let planted: &'static PlantedArtifact = Box::leak(Box::new(PlantedArtifact::new(plant.artifact, late)));
    let tools = |name: &str| -> Option<&'static dyn tools::Tool> {
        let real = tools::find(name)?;
        if real.spec().name == planted.name() { Some(planted) } else { Some(real) }
    };
    let log = |file| -> Box<dyn agent::LogSink> { Box::new(PlantedLog::new(file, plant.log, &known)) };
    let report = PlantedReport::new(plant.report, known.clone());
    let replace = |path: &Path, key: &str, content: &mut tools::Content<'_>, sites, crash: ::store::CrashScope<'_>| {
        report.replace(path, key, content, sites, crash)
    };
    command(&config, &Parts { store: &store, tools: &tools, log: &log, replace: &replace })
}

/// A planted bug that itself does not work is no bug that anybody could catch.
fn wrong(db: &Path, result: rusqlite::Result<()>) -> Result<(), Failure> {
    result.map_err(|error| Failure::new(Exit::Internal, format!("the bug does not work in {}: {error}", db.display())))
}

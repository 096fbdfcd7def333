//! The model: the shipped machine under every interleaving of several processes, with a crash between any two actions.
//! See docs/model.md.
//!
//! `model` explores the world that is part of every check and looks for every planted bug; `model --deep` explores a
//! larger one; `model --bug NAME` prints the shortest way to what that bug breaks.

mod bug;
mod check;
mod claims;
mod command;
mod config;
mod process;
mod sabotage;
mod state;
#[cfg(test)]
mod tests;
mod trace;

use std::env;
use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::process::ExitCode;
use std::time::Instant;

use stateright::Expectation;

use crate::bug::Bug;
use crate::check::{World, counterexample, explore};
use crate::config::Config;

/// Fewer states than this in each of the deep worlds, and the model has lost something that it used to try.
const DEEP_STATES: usize = 1_500_000;

fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let (text, good) = match words[..] {
        [] => {
            let worlds = Config::EVERY.map(|(name, config, states)| world(name, config, states));
            let honest: String = worlds.iter().map(|world| world.0.as_str()).collect();
            // In a world that is broken already, nothing tells which bug broke what.
            let holds = worlds.iter().all(|world| world.1);
            let (bugs, found) = if holds { bugs() } else { (String::new(), false) };
            (honest + &bugs, found)
        }
        ["--deep"] => {
            let worlds = Config::DEEP.map(|config| world("deep", config, DEEP_STATES));
            (worlds.iter().map(|world| world.0.as_str()).collect(), worlds.iter().all(|world| world.1))
        }
        ["--bug", name] => one_bug(name),
        _ => ("usage: model [--deep | --bug NAME]\n".to_owned(), false),
    };
    // Nothing can be done where not even this can be written.
    let _best_effort = io::stdout().lock().write_all(text.as_bytes());
    if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Explores what ships.
fn world(name: &str, config: Config, at_least: usize) -> (String, bool) {
    let explored = explore(config);
    let Config { runners, steps, max_attempts, .. } = config;
    let mut text = format!(
        "{name}: runners {runners}, steps {steps}, attempts {max_attempts}; at most: {}\n\
         {} states by {} actions in {:.1} s\n",
        config.faults,
        explored.states,
        explored.actions,
        explored.took.as_secs_f64(),
    );
    for property in claims::all(&config) {
        let name = property.name;
        let says = match property.expectation {
            Expectation::Sometimes if explored.missed.contains(&name) => "NOT REACHED",
            Expectation::Sometimes => "reached",
            _ if explored.broken.contains(&name) => "BROKEN",
            _ => "holds",
        };
        let _infallible = writeln!(text, "  {says:<11}  {name}");
    }
    if !explored.broken.is_empty()
        && let Some(found) = counterexample(World { config, only: None })
    {
        text += &trace::render(&config, &found);
    }
    let enough = explored.states >= at_least;
    if !enough {
        let _infallible = writeln!(text, "  these are fewer states than {at_least}: what is tried no longer?");
    }
    (text, enough && explored.broken.is_empty() && explored.missed.is_empty())
}

/// Looks for every planted bug.
fn bugs() -> (String, bool) {
    let (start, mut good) = (Instant::now(), true);
    let mut text = "planted bugs, and the shortest way to what each breaks:\n".to_owned();
    for bug in Bug::ALL {
        let found = counterexample(World { config: bug.world(), only: None });
        let caught = found.as_ref().is_some_and(|found| found.broken.contains(&bug.breaks()));
        good &= caught;
        let (length, broken) = found.map_or((0, Vec::new()), |found| (found.actions.len(), found.broken));
        let says = if caught { "caught" } else { "MISSED" };
        let _infallible =
            writeln!(text, "  {says:<11}  {:<23} in {length:>2} actions: {}", bug.name(), broken.join("; "));
    }
    let _infallible = writeln!(text, "{} bugs in {:.1} s", Bug::ALL.len(), start.elapsed().as_secs_f64());
    (text, good)
}

/// Prints the counterexample of one bug.
fn one_bug(name: &str) -> (String, bool) {
    let Some(bug) = Bug::named(name) else {
        let names: Vec<String> = Bug::ALL.into_iter().map(Bug::name).collect();
        return (format!("there is no bug `{name}`; there are {}\n", names.join(", ")), false);
    };
    let config = bug.world();
    match counterexample(World { config, only: None }) {
        Some(found) => (trace::render(&config, &found), true),
        None => (format!("the bug `{name}` breaks nothing\n"), false),
    }
}

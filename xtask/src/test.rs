//! `cargo xtask check`, for every save, and `cargo xtask test`, which is every check there is, whole or in shards.

use std::io::Write as _;
use std::str::FromStr;
use std::time::Instant;

use anyhow::{Context as _, Result};

use crate::programs::Which;
use crate::{chaos, docs, model, programs, sabotage, tidy, util};

/// A part of the checks that is run as one.
struct Part {
    name: &'static str,
    /// What it takes on two cores, in seconds, builds and all: only for an even division into shards.
    seconds: u32,
    run: fn(&mut Done) -> Result<()>,
}

/// What was done, for the summary.
#[derive(Default)]
struct Done {
    /// Stages with their seconds.
    stages: Vec<(&'static str, f64)>,
    /// Tests that passed.
    tests: usize,
}

/// Cheapest first.
const PARTS: &[Part] = &[
    Part { name: "house", seconds: 120, run: house },
    Part { name: "tests", seconds: 120, run: |done| done.tests("tests", Which::Short) },
    Part { name: "long tests", seconds: 150, run: |done| done.tests("long tests", Which::Long) },
    Part { name: "model", seconds: 60, run: |done| done.stage("model", || model::run(false, None)) },
    Part { name: "chaos", seconds: 120, run: |done| done.stage("chaos", || chaos::run(&[])) },
    Part { name: "sabotage", seconds: 240, run: |done| done.stage("sabotage", sabotage::run) },
];

/// One of so many machines that share the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shard {
    number: usize,
    of: usize,
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.split_once('/').and_then(|(number, of)| Some((number.parse().ok()?, of.parse().ok()?)));
        match parts {
            Some((number, of)) if 1 <= number && number <= of && of <= PARTS.len() => Ok(Self { number, of }),
            _ => Err(format!("a shard is K/N, such as 1/4; N is at most {}, K at most N", PARTS.len())),
        }
    }
}

/// What a save needs to hear.
pub(crate) fn check() -> Result<()> {
    let mut done = Done::default();
    rules(&mut done)?;
    done.tests("tests", Which::Short)?;
    done.say()
}

/// Everything, or one shard of it.
pub(crate) fn run(shard: Option<Shard>) -> Result<()> {
    let parts = shard.map_or_else(|| PARTS.iter().collect(), parts_of);
    if let Some(Shard { number, of }) = shard {
        let names: Vec<&str> = parts.iter().map(|part| part.name).collect();
        util::say(&format!("== shard {number} of {of}: {}", names.join(", ")));
    }
    let mut done = Done::default();
    parts.iter().try_for_each(|part| (part.run)(&mut done))?;
    done.say()
}

/// The longest part first, each to the shard that has the least to do.
fn parts_of(shard: Shard) -> Vec<&'static Part> {
    let mut longest_first: Vec<&Part> = PARTS.iter().collect();
    longest_first.sort_by_key(|part| std::cmp::Reverse(part.seconds));
    let mut shards: Vec<(u32, Vec<&Part>)> = vec![(0, Vec::new()); shard.of];
    for part in longest_first {
        if let Some((seconds, parts)) = shards.iter_mut().min_by_key(|(seconds, _)| *seconds) {
            *seconds += part.seconds;
            parts.push(part);
        }
    }
    shards.swap_remove(shard.number - 1).1
}

fn house(done: &mut Done) -> Result<()> {
    rules(done)?;
    done.stage("each crate alone", alone)
}

fn rules(done: &mut Done) -> Result<()> {
    done.stage("format", || util::run(&mut util::cargo(&["fmt", "--all", "--check"])))?;
    done.stage("tidy", tidy::run)?;
    done.stage("clippy", || {
        util::run(&mut util::cargo(&["clippy", "--quiet", "--workspace", "--all-targets", "--", "--deny", "warnings"]))
    })?;
    done.stage("documents", docs::check)
}

/// Features of one member must not hide what another forgot to ask for.
fn alone() -> Result<()> {
    util::run(&mut util::cargo(&["check", "--quiet", "-p", "store", "--no-default-features"]))?;
    for member in ["tools", "chaos", "fixtures"] {
        util::run(&mut util::cargo(&["check", "--quiet", "-p", member]))?;
    }
    Ok(())
}

impl Done {
    fn stage<T>(&mut self, name: &'static str, check: impl FnOnce() -> Result<T>) -> Result<T> {
        util::say(&format!("== {name}"));
        let start = Instant::now();
        let result = check().with_context(|| format!("{name} failed"))?;
        let seconds = start.elapsed().as_secs_f64();
        util::say(&format!("== {name}: ok, {seconds:.1} s"));
        self.stages.push((name, seconds));
        Ok(result)
    }

    fn tests(&mut self, name: &'static str, which: Which) -> Result<()> {
        self.tests += self.stage(name, || programs::run(which))?;
        Ok(())
    }

    /// The end of a long log, where people and CI look first: what was done, and how many tests passed.
    fn say(&self) -> Result<()> {
        let stages: Vec<String> = self.stages.iter().map(|(name, seconds)| format!("{name} {seconds:.0} s")).collect();
        util::say(&format!("== all: ok; {}", stages.join(", ")));
        if self.tests > 0 {
            writeln!(std::io::stdout(), "{} passed, 0 failed", self.tests)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shards_together_are_the_whole_and_none_is_idle() {
        for of in 1..=PARTS.len() {
            let shards: Vec<Vec<&str>> =
                (1..=of).map(|number| parts_of(Shard { number, of }).iter().map(|part| part.name).collect()).collect();
            assert!(shards.iter().all(|shard| !shard.is_empty()), "{shards:?}");
            let mut all = shards.concat();
            all.sort_unstable();
            let mut whole: Vec<&str> = PARTS.iter().map(|part| part.name).collect();
            whole.sort_unstable();
            assert_eq!(all, whole);
        }
    }

    #[test]
    fn a_shard_that_is_none_is_refused() {
        assert_eq!("2/4".parse(), Ok(Shard { number: 2, of: 4 }));
        for text in ["0/4", "5/4", "1/7", "1", "a/b", "1/0", ""] {
            assert!(text.parse::<Shard>().is_err(), "{text}");
        }
    }
}

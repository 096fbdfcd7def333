//! The lab, as a program.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;
use tempfile::TempDir;

use super::bug::{Bug, Catch};
use crate::{docs, util};

const REPORT: &str = r#"{"goal": "Summarize notes into a report", "steps": [
    {"tool": "fetch", "input": {"path": "input/notes.txt"}},
    {"tool": "summarize", "input": {"from": 0}},
    {"tool": "write_artifact", "input": {"from": 1}}]}"#;

const SINGLE: &str =
    r#"{"goal": "Read the notes", "steps": [{"tool": "fetch", "input": {"path": "input/notes.txt"}}]}"#;

const NOTES: &str = "Grüße aus dem Protokoll\n\n  The pump failed at 04:12.\nTwo valves were closed by hand.\nMore.\n";

/// What the honest agent is tried with on every seed: all that depends on the seed.
const BY_CHANCE: &str = "random,fuzz";
const CASES: &str = "8";

/// What the honest agent is tried with where it is the inbox, on every so many seeds: to make it ready takes long.
const INBOX_BY_CHANCE: &str = "random";
const INBOX_EVERY: u32 = 4;

/// What the honest agent in the wrappers of the sabotaged one is tried with, by plan: all that finds planted bugs.
const SHOWN: [(&str, &str); 3] = [
    ("report", "points,race,neighbours,drift,rerun,poison,observe,control,exhaust,power,faults,pause"),
    ("single", "nested,exhaust,power"),
    (INBOX, "points,log,rerun,observe,power,faults"),
];

/// The plan of the inbox, which the lab has built in.
const INBOX: &str = "inbox";

/// Stands for all plans that the lab has built in.
const BUILT_IN: &str = "built-in";

/// How the lab ends where a bug is caught: violated, baseline failed, control silent.
const CAUGHT: [i32; 3] = [1, 2, 5];

pub(super) struct Lab {
    chaos: PathBuf,
    agent: PathBuf,
    sabotaged: PathBuf,
    folder: TempDir,
}

impl Lab {
    /// The programs are copied, so that a build that goes on beside does not change them meanwhile.
    pub(super) fn new(chaos: &Path, agent: &Path, sabotaged: &Path) -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("sabotage-").tempdir()?;
        fs::create_dir(folder.path().join("input"))?;
        for (name, text) in [("report.json", REPORT), ("single.json", SINGLE), ("input/notes.txt", NOTES)] {
            fs::write(folder.path().join(name), text)?;
        }
        let copy = |program: &Path, name: &str| -> Result<PathBuf> {
            let copy = folder.path().join(name);
            fs::copy(program, &copy).with_context(|| format!("cannot copy {}", program.display()))?;
            Ok(copy)
        };
        let (chaos, agent, sabotaged) = (copy(chaos, "chaos")?, copy(agent, "agent")?, copy(sabotaged, "sabotaged")?);
        Ok(Self { chaos, agent, sabotaged, folder })
    }

    /// The agent that ships, with everything that depends on the seed.
    pub(super) fn agent_holds(&self, seed: u32) -> Result<()> {
        let inbox = seed.is_multiple_of(INBOX_EVERY).then_some((INBOX, INBOX_BY_CHANCE));
        for (plan, methods) in [("report", BY_CHANCE)].into_iter().chain(inbox) {
            let mut run = self.run(&quoted(&self.agent), plan);
            run.args(["--method", methods, "--cases", CASES, "--seed", &seed.to_string()]);
            holds(&mut run).with_context(|| format!("a false alarm with the seed {seed}"))?;
        }
        Ok(())
    }

    /// The sabotaged agent without any bug: what the lab finds in the others is the bug's doing, not the wrapper's.
    pub(super) fn wrapped_holds(&self) -> Result<()> {
        for (plan, methods) in SHOWN {
            let mut run = self.run(&format!("{} honest", quoted(&self.sabotaged)), plan);
            holds(run.args(["--method", methods, "--seed", "1"])).context("the wrappers themselves do harm")?;
        }
        Ok(())
    }

    pub(super) fn try_bug(&self, bug: &Bug) -> Result<Catch> {
        let mut run = self.run(&format!("{} {}", quoted(&self.sabotaged), bug.name), &bug.plan);
        run.args(["--method", &bug.methods.join(","), "--shard", &bug.part]);
        run.args(["--cases", CASES, "--seed", "1", "--jobs", "1", "--json"]);
        let output = run.output().context("cannot start the lab")?;
        let code = output.status.code();
        if code != Some(0) && !code.is_some_and(|code| CAUGHT.contains(&code)) {
            bail!("{}the lab ended with {}", String::from_utf8_lossy(&output.stderr), output.status);
        }
        let report: Value = serde_json::from_slice(&output.stdout).context("the lab's report is not JSON")?;
        let catch = Catch::of(&report)?;
        if (code == Some(0)) != catch.judges().is_empty() {
            bail!("the lab ended with {} and found {:?}", output.status, catch.judges());
        }
        Ok(catch)
    }

    /// The names of the lab's properties.
    pub(super) fn judges(&self) -> Result<Vec<String>> {
        const TITLE: &str = "Properties:";
        let help = util::read(Command::new(&self.chaos).arg("--help"))?;
        let names = docs::section(&help, TITLE).into_iter().map(|(name, _)| name.trim_matches('`').to_owned());
        let names: Vec<String> = names.collect();
        if names.is_empty() {
            bail!("`chaos --help` has no section {TITLE}");
        }
        Ok(names)
    }

    fn run(&self, agent: &str, plan: &str) -> Command {
        let mut run = Command::new(&self.chaos);
        run.args(["run", "--agent", agent]).current_dir(self.folder.path());
        match plan {
            BUILT_IN => &mut run,
            INBOX => run.args(["--plan", INBOX]),
            file => run.arg("--plan").arg(self.folder.path().join(format!("{file}.json"))),
        };
        run
    }
}

/// A run of the lab that must find nothing; what it has found is told.
fn holds(run: &mut Command) -> Result<()> {
    let output = run.output().context("cannot start the lab")?;
    if !output.status.success() {
        let [told, said] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
        bail!("{told}{said}\n{run:?} ended with {}", output.status);
    }
    Ok(())
}

/// As one word of a command line.
fn quoted(path: &Path) -> String {
    format!("'{}'", path.to_string_lossy().replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_stays_one_word() {
        assert_eq!(quoted(Path::new("/a b/it's")), r"'/a b/it'\''s'");
    }
}

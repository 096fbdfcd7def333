//! The command line of the lab. The only part that prints, reads the environment and knows of terminals.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use glob::Pattern;

use super::ledger::LedgerArgs;
use super::parts::{DEADLINE, duration, own_program};
use super::tool::ToolArgs;
use crate::agent::ask;
use crate::agent::folder::Folder;
use crate::agent::target::Target;
use crate::case::plan::PlanCase;
use crate::case::{inbox, world};
use crate::crash::LAUNCH;
use crate::error::LabError;
use crate::judge;
use crate::look::lab::Lab;
use crate::look::sandbox::default_root;
use crate::method;
use crate::play::method::Method;
use crate::report::GitHub;
use crate::run::exit::Exit;
use crate::run::gate::Gate;
use crate::run::runner::{Options, Shard};

const ABOUT: &str = "\
Kills an agent at every dangerous place, resumes it, and judges the outcome from outside.

The agent is any program that keeps the agent contract: it creates, runs and resumes a
task of steps, keeps its state and its journal in SQLite, and knows three crash points a
step. The lab starts it as a process, has it killed, looks at what is left, resumes it
and checks properties of all that it sees: nothing that was committed is lost or run again, recovery
is journaled, every effect is in the world once, the journal agrees with the tables.";

const EXAMPLES: &str = "\
Examples:
  chaos run                                       this workspace's agent, all methods
  chaos run --quick                               the same in half a minute, as much as fits
  chaos run --agent 'python3 my_agent.py'         anyone's agent
  chaos run --plan mine.json --method points      your own plan, one method
  chaos run --plan inbox                          the inbox agent with its log and its report
  chaos list --method nested                      what would run, and why
  chaos replay 'after_effect:2, +3ms'             one kill schedule, told in full
  chaos replay 'points/report/after_effect:2'     one scenario of a run
  chaos tool --probe 'cat sent.txt' -- ./mail.py  which effect class a program has earned
  chaos ledger                                    a server that counts effects, for tests of your own
";

/// The whole command line.
#[derive(Debug, Parser)]
#[command(name = "chaos", version, about = ABOUT, after_help = EXAMPLES, after_long_help = long_help())]
#[command(subcommand_required = true, arg_required_else_help = true)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Play scenarios and judge them
    Run(RunArgs),
    /// Say what `run` would play, and why
    List(RunArgs),
    /// Play one scenario or one kill schedule again and tell everything
    Replay(ReplayArgs),
    /// Measure which effect class a program of the exec protocol has earned
    Tool(ToolArgs),
    /// Serve a ledger, which counts what reaches the world
    Ledger(LedgerArgs),
    /// Become an agent that stops for the tracer
    #[command(hide = true, name = LAUNCH)]
    BecomeTraced {
        /// The agent's command
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<String>,
    },
    /// Show the report of an earlier run, and write its pages anew
    Report {
        /// The folder that `run --out` wrote
        dir: PathBuf,
        /// Print the JSON document
        #[arg(long)]
        json: bool,
    },
}

/// Whom to test, with what.
#[derive(Debug, Args)]
pub struct TargetArgs {
    /// The agent's command, split as a shell would; this workspace's agent if not given
    #[arg(long, value_name = "CMD")]
    pub agent: Option<String>,
    /// A plan file to test with, instead of the built-in plans and the tools' own examples; `inbox`, `exec-once` and
    /// the like are built-in cases, `./inbox` a file of that name
    #[arg(long, value_name = "FILE")]
    pub plan: Option<PathBuf>,
    /// A folder whose content the plan finds in its working folder; without it, files that the plan names and that
    /// stand beside it are taken along
    #[arg(long, value_name = "DIR", requires = "plan")]
    pub inputs: Option<PathBuf>,
    /// The seed of every random choice; printed, and random if not given
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Cases that the method `fuzz` plays for a plan; 256 if not given, fewer where the agent is slow
    #[arg(long, value_name = "N")]
    pub cases: Option<u32>,
    /// Leave nothing out: resumes killed again, true kills, and `power`, `faults` and `pause` at full size
    #[arg(long)]
    pub deep: bool,
    /// After this time a process of the agent counts as hung
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = DEADLINE)]
    pub deadline: Duration,
    /// Files in the agent's working folder that are not judged, such as `artifacts/*.bak`; may be given more than once
    #[arg(long, value_name = "GLOB", value_parser = Pattern::new)]
    pub ignore: Vec<Pattern>,
    /// Where the scenarios' folders are made; memory if there is a file system in it
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
}

/// Arguments of `run` and `list`.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// Whom to test, with what.
    #[command(flatten)]
    pub target: TargetArgs,
    /// Methods to play, separated by commas; all of them if not given
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub method: Vec<String>,
    /// Scenarios side by side; twice as many as there are cores if not given, since half of their time is waiting
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub jobs: Option<u16>,
    /// Begin no scenario after this time, such as 90s or 5m; cut short does not count as passed
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub budget: Option<Duration>,
    /// A first verdict within half a minute: of each method as many scenarios as fit, spread over all of them
    #[arg(long, conflicts_with_all = ["budget", "deep", "gate", "shard"])]
    pub quick: bool,
    /// Begin no scenario after the first one that fails
    #[arg(long)]
    pub fail_fast: bool,
    /// Play part i of n
    #[arg(long, value_name = "I/N", value_parser = shard, default_value = "1/1")]
    pub shard: Shard,
    /// Write the reports into this folder
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Print the report as JSON on standard output
    #[arg(long)]
    pub json: bool,
    /// Compare the crash points that were found with this pinned file
    #[arg(long, value_name = "FILE", conflicts_with = "plan")]
    pub gate: Option<PathBuf>,
    /// Rewrite the pinned file instead
    #[arg(long, requires = "gate")]
    pub bless: bool,
}

/// Arguments of `replay`.
#[derive(Debug, Args)]
pub struct ReplayArgs {
    /// A scenario's id, or a kill schedule such as `after_effect:2, before_effect:2#2, +37ms, term@1`
    pub subject: String,
    /// Whom to test, with what.
    #[command(flatten)]
    pub target: TargetArgs,
    /// Print the report as JSON on standard output
    #[arg(long)]
    pub json: bool,
}

fn long_help() -> String {
    let methods: String =
        method::ALL.iter().map(|method| format!("  {:<11}  {}\n", method.name, method.about)).collect();
    let properties: String = judge::properties().map(|(name, about)| format!("  {name:<23}  {about}\n")).collect();
    format!("{EXAMPLES}\nMethods:\n{methods}\nProperties:\n{properties}\nExit codes:\n{}", Exit::help())
}

fn shard(text: &str) -> Result<Shard, String> {
    let parts = text
        .split_once('/')
        .and_then(|(number, of)| Some(Shard { number: number.parse().ok()?, of: of.parse().ok()? }));
    match parts {
        Some(shard) if shard.number >= 1 && shard.number <= shard.of => Ok(shard),
        _ => Err("write i/n with i from 1 to n, such as 2/4".to_owned()),
    }
}

/// Whom to test, with which plans.
pub struct Setup {
    /// The lab, ready to start the agent.
    pub lab: Arc<Lab>,
    /// The plans.
    pub plans: Vec<Arc<PlanCase>>,
    /// Below which everything happens; removed in the end.
    pub folder: Folder,
}

impl TargetArgs {
    /// Finds the agent, asks for its inventory and loads the plans.
    ///
    /// # Errors
    /// An agent that is not there, plans that cannot be read.
    pub fn setup(&self) -> Result<Setup, LabError> {
        let own = match &self.plan {
            Some(file) if self.inputs.is_some() && self.built_in().is_some() => {
                let why = format!("`--plan {}` brings its own inputs", file.display());
                return Err(LabError::Usage(why));
            }
            Some(_) if self.built_in().is_some() => self.built_in(),
            Some(file) => Some(PlanCase::load(file, self.inputs.as_deref())?),
            None => None,
        };
        let root = match &self.dir {
            Some(dir) => {
                std::path::absolute(dir).map_err(|e| LabError::Usage(format!("--dir {}: {e}", dir.display())))?
            }
            None => default_root(),
        };
        let folder = Folder::below(&root).map_err(|e| match &self.dir {
            Some(dir) => LabError::Usage(format!("--dir {}: {e}", dir.display())),
            None => e,
        })?;
        let target = self.target(&folder.path())?;
        let mut plans = match own {
            Some(own) if !own.kind.is_created() && !target.has_inbox => {
                return Err(LabError::Usage("the agent has no command `inbox`".to_owned()));
            }
            Some(own) => {
                if let Some(why) = own.methods.and_then(|_| world::why_not(&target)) {
                    return Err(LabError::Usage(why));
                }
                vec![own]
            }
            None => {
                let mut plans = vec![PlanCase::report()];
                plans.extend(target.has_inbox.then(inbox::case));
                plans.extend(target.examples.clone());
                plans.extend(world::played(&target, self.deep));
                plans
            }
        };
        for plan in &mut plans {
            plan.effects.ignored.clone_from(&self.ignore);
        }
        let lab = Lab {
            target,
            launcher: own_program()?,
            root: folder.path(),
            seed: self.seed.unwrap_or_else(|| rand::random_range(1..1_000_000_000)),
            cases: self.cases,
            deep: self.deep,
            replay_options: self.replay_options(),
        };
        Ok(Setup { lab: Arc::new(lab), plans: plans.into_iter().map(Arc::new).collect(), folder })
    }

    /// The case that the plan names, where it is built in and no file.
    fn built_in(&self) -> Option<PlanCase> {
        let name = self.plan.as_ref()?.to_str()?;
        let mut cases = world::cases().into_iter().chain([inbox::case()]);
        cases.find(|case| case.name == name)
    }

    /// The agent, asked for its inventory in a folder below `root`.
    fn target(&self, root: &Path) -> Result<Target, LabError> {
        let here =
            std::env::current_dir().map_err(|e| LabError::Internal(format!("there is no working folder: {e}")))?;
        let given = match &self.agent {
            Some(given) => given.clone(),
            None => shell_words::quote(&workspace_agent()?.to_string_lossy()).into_owned(),
        };
        let mut target = Target::new(&given, &here, agent_variables())?;
        target.deadline = self.deadline;
        let scratch = tempfile::Builder::new().prefix(crate::agent::stray::PREFIX).tempdir_in(root);
        let scratch = scratch.map_err(LabError::io("create a folder in", root))?;
        ask::ask_inventory(&mut target, scratch.path())?;
        ask::ask_inbox(&mut target, scratch.path())?;
        Ok(target)
    }

    fn replay_options(&self) -> String {
        let mut options = if self.deep { " --deep".to_owned() } else { String::new() };
        let path = |path: &PathBuf| path.to_string_lossy().into_owned();
        let given = [
            ("--agent", self.agent.clone()),
            ("--plan", self.plan.as_ref().map(path)),
            ("--inputs", self.inputs.as_ref().map(path)),
            ("--dir", self.dir.as_ref().map(path)),
            (
                "--deadline",
                (duration(DEADLINE) != Ok(self.deadline)).then(|| format!("{}ms", self.deadline.as_millis())),
            ),
        ];
        for pattern in &self.ignore {
            options += &format!(" --ignore {}", shell_words::quote(pattern.as_str()));
        }
        for (name, value) in given {
            if let Some(value) = value {
                options += &format!(" {name} {}", shell_words::quote(&value));
            }
        }
        options
    }
}

impl RunArgs {
    /// What to play how.
    ///
    /// # Errors
    /// A method that does not exist.
    pub fn options(&self) -> Result<Options, LabError> {
        let side_by_side = 2 * std::thread::available_parallelism().map_or(1, usize::from);
        let methods = self.methods()?;
        if let (Some(file), false) = (self.gate.as_ref().filter(|file| !file.is_file()), self.bless) {
            let file = file.display();
            return Err(LabError::Usage(format!("there is no gate file {file}; --bless writes it")));
        }
        let whole = self.shard == Shard::WHOLE && self.target.plan.is_none();
        let with_controls = whole && methods.iter().any(|method| method.name == "control");
        Ok(Options {
            jobs: self.jobs.map_or(side_by_side, usize::from),
            budget: self.budget,
            quick: self.quick,
            fail_fast: self.fail_fast,
            shard: self.shard,
            methods,
            gate: self.gate.as_ref().map(|file| Gate { file: file.clone(), bless: self.bless, with_controls }),
        })
    }

    fn methods(&self) -> Result<Vec<&'static Method>, LabError> {
        let names = self.method.iter().map(|name| name.trim());
        let mut chosen = Vec::new();
        for name in names {
            let method = method::named(name).ok_or_else(|| {
                let known: Vec<_> = method::ALL.iter().map(|method| method.name).collect();
                let known = known.join(", ");
                LabError::Usage(format!("there is no method `{name}`; there are {known}"))
            })?;
            chosen.push(method.name);
        }
        let all = method::ALL.iter().filter_map(|method| method::named(method.name));
        Ok(all.filter(|method| chosen.is_empty() || chosen.contains(&method.name)).collect())
    }
}

/// The agent beside this program, as cargo builds them.
fn workspace_agent() -> Result<PathBuf, LabError> {
    let beside = own_program()?.with_file_name("agent");
    if beside.is_file() {
        return Ok(beside);
    }
    Err(LabError::Usage(format!(
        "there is no agent at {}: build it with `cargo build -p agent`, or name one with --agent",
        beside.display()
    )))
}

/// What GitHub Actions asks for, or a service that sets the same variables.
#[must_use]
pub fn github() -> GitHub {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    GitHub { annotations: set("GITHUB_ACTIONS").is_some(), summary: set("GITHUB_STEP_SUMMARY").map(PathBuf::from) }
}

/// Names of the variables that must not reach the agent by accident.
fn agent_variables() -> Vec<OsString> {
    let names = std::env::vars_os().map(|(name, _)| name);
    let ours = |name: &OsString| {
        let name = name.to_string_lossy();
        name.starts_with("AGENT_") || name.starts_with("OLLAMA_")
    };
    names.filter(ours).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn times_and_shards_are_read_and_nonsense_is_refused() {
        assert_eq!(duration("5m"), Ok(Duration::from_secs(300)));
        assert_eq!(duration("1.5s"), Ok(Duration::from_millis(1500)));
        for text in ["", "m", "5x", "-3s", "1e400h", "0", "0.0m"] {
            assert!(duration(text).is_err(), "{text}");
        }
        assert_eq!(shard("2/4"), Ok(Shard { number: 2, of: 4 }));
        for text in ["", "2", "0/4", "5/4", "a/b", "1/0"] {
            assert!(shard(text).is_err(), "{text}");
        }
    }
}

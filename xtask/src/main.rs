//! Every chore of the workspace: `cargo xtask <task>`.

mod bench;
mod chaos;
mod docs;
mod model;
mod programs;
mod sabotage;
mod test;
mod tidy;
mod util;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Every chore of the workspace, one file each.
#[derive(Parser)]
#[command(name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// For every save: format, rules, clippy, documents, unit and process tests.
    Check,
    /// Before a push: every check there is, with the lab and the tests of the lab.
    Test {
        /// Run part K of N, where N machines share the work; what the part covers is said first.
        #[arg(long, value_name = "K/N")]
        shard: Option<test::Shard>,
    },
    /// The crash tests: build the agent and put it under the lab.
    #[command(disable_help_flag = true)]
    Chaos {
        /// Passed on to `chaos run`, or to the command of `chaos` that is named first; try --help.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
    /// Test the lab: each planted bug must be caught, the honest agent must hold.
    Sabotage,
    /// The shipped machine under every interleaving of several processes; each planted bug must be found.
    Model {
        /// Explore larger worlds instead: millions of states, minutes.
        #[arg(long, conflicts_with = "bug")]
        deep: bool,
        /// Print the shortest way to what this planted bug breaks.
        #[arg(long)]
        bug: Option<String>,
    },
    /// Speed and size, as ratios in one run.
    Bench,
    /// The rules that the compiler does not know: who may depend on whom, what may stand where, how long files get.
    Tidy,
    /// Rewrite the tables in the documents that are made from the code.
    Docs,
}

fn main() -> ExitCode {
    let result = match Cli::parse().task {
        Task::Check => test::check(),
        Task::Test { shard } => test::run(shard),
        Task::Chaos { args } => chaos::run(&args),
        Task::Sabotage => sabotage::run(),
        Task::Model { deep, bug } => model::run(deep, bug.as_deref()),
        Task::Bench => bench::run(),
        Task::Tidy => tidy::run(),
        Task::Docs => docs::write(),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            util::say(&format!("xtask: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

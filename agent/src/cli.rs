//! The command line.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::ErrorKind;
use std::path::PathBuf;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use clap_complete::Shell;

use crate::commands;
use crate::config::VARIABLES;
use crate::exit::{self, Exit, Failure};

/// Runs tasks that survive being killed: every step is checkpointed and journaled in one transaction, and after
/// `kill -9` the task goes on where it was, with its effects done once.
#[derive(Debug, Parser)]
#[command(name = "agent", version, max_term_width = 110)]
pub struct Cli {
    /// The database that holds tasks and journal.
    #[arg(long, global = true, value_name = "FILE", default_value = "state.db")]
    db: PathBuf,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Store a task with its plan; nothing runs yet.
    Create {
        /// Any name of at most 200 bytes.
        task_id: String,
        /// JSON: {"goal": "…", "steps": [{"tool": "…", "input": {…}}, …]}
        plan_file: PathBuf,
    },
    /// Run a task to its end, from wherever it stands; after a crash, call it again.
    Run {
        /// The task.
        task_id: String,
    },
    /// Print a task's state as JSON.
    Status {
        /// The task.
        task_id: String,
    },
    /// Print a task's journal, one JSON object a line.
    Export {
        /// The task.
        task_id: String,
    },
    /// List all tasks with their status and progress.
    List {
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// Check database, journal and artifacts against each other; changes nothing.
    Verify {
        /// Only this task.
        task_id: Option<String>,
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// Give a failed task a fresh attempt budget; run it afterwards.
    Retry {
        /// The task.
        task_id: String,
    },
    /// List the tools that plans may call, and the crash points.
    Tools {
        /// As JSON, with schemas and examples.
        #[arg(long)]
        json: bool,
    },
    /// Copy the database, which may be in use, to a new file.
    Backup {
        /// The new file.
        file: PathBuf,
    },
    /// Print a completion script for a shell.
    Completions {
        /// The shell.
        shell: Shell,
    },
    /// Show it: a task is killed right after its effect, and resumed; beside it, the same without protection.
    Demo {
        /// Where to work; a fresh temporary folder if not given.
        #[arg(long)]
        dir: Option<PathBuf>,
    },
}

/// Parses the arguments; the first one is the program's name.
///
/// # Errors
/// Help, version or a usage error was printed; end with that code.
pub fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Cli, Exit> {
    let parsed = command().try_get_matches_from(args).and_then(|matches| Cli::from_arg_matches(&matches));
    parsed.map_err(|error| {
        match error.print() {
            _ if error.use_stderr() => Exit::Usage,
            Err(why) if why.kind() != ErrorKind::BrokenPipe => Exit::Io,
            _ => Exit::Done,
        }
    })
}

/// The command with the tables that live elsewhere in the code.
fn command() -> clap::Command {
    let variables = VARIABLES.iter().fold(String::from("Environment:\n"), |mut text, (name, meaning)| {
        let _infallible = writeln!(text, "  {name:<24}  {meaning}");
        text
    });
    Cli::command().after_help(format!("{variables}\n{}", exit::table()))
}

impl Cli {
    /// Runs the command.
    ///
    /// # Errors
    /// What went wrong, for `main` to print.
    pub fn run(&self) -> Result<Exit, Failure> {
        let db = self.db.as_path();
        match &self.command {
            Command::Create { task_id, plan_file } => commands::create(db, task_id, plan_file),
            Command::Run { task_id } => commands::run(db, task_id),
            Command::Status { task_id } => commands::status(db, task_id),
            Command::Export { task_id } => commands::export(db, task_id),
            Command::List { json } => commands::list(db, *json),
            Command::Verify { task_id, json } => commands::verify(db, task_id.as_deref(), *json),
            Command::Retry { task_id } => commands::retry(db, task_id),
            Command::Tools { json } => commands::tools(*json),
            Command::Backup { file } => commands::backup(db, file),
            Command::Completions { shell } => commands::completions(*shell, command()),
            Command::Demo { dir } => commands::demo(dir.as_deref()),
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_definition_is_sound() {
        super::command().debug_assert();
    }
}

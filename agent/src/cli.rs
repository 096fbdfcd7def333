//! The command line.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgGroup, Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use clap_complete::Shell;
use store::sqlite::Place;

use crate::commands::{self, InboxRequest, LogChoice, Moves, NewTask, Says};
use crate::config::{self, VARIABLES};
use crate::exit::{self, Exit, Failure};
use crate::output::Output;
use crate::signals;

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
    Create(Create),
    /// Check a plan without storing anything, and say what a crash at each of its steps would do.
    Check {
        /// The plan, as for `create`.
        plan_file: PathBuf,
        #[command(flatten)]
        given: GivenInputs,
        /// Draw it, as a Mermaid diagram.
        #[arg(long)]
        mermaid: bool,
    },
    /// Run a task to its end, from wherever it stands; after a crash, call it again.
    Run {
        /// The task.
        task_id: String,
        /// Append an action log to this file: a JSON object a line for every event. It may be shared by tasks.
        #[arg(long, value_name = "FILE")]
        log: Option<PathBuf>,
        /// Go on, with a warning, where the action log cannot be written; a later run writes what it lacks.
        #[arg(long, requires = "log")]
        log_best_effort: bool,
        /// How long what is under way may take after SIGTERM or SIGINT [default: 10].
        #[arg(long, value_name = "SECONDS", value_parser = pause, allow_negative_numbers = true)]
        grace: Option<Duration>,
        /// End with code 7 where nothing is due yet, and do not wait for it.
        #[arg(long)]
        no_wait: bool,
    },
    /// Say what has happened of a step that is in doubt.
    Resolve(Resolve),
    /// Answer the question of a step.
    Approve {
        /// The task.
        task_id: String,
        /// The step, by its id or its index.
        step: String,
        /// The answer, as JSON [default: true].
        #[arg(long, value_name = "JSON")]
        answer: Option<String>,
        /// Why.
        #[arg(long, value_name = "TEXT")]
        why: Option<String>,
    },
    /// Refuse what a step asks for.
    Reject {
        /// The task.
        task_id: String,
        /// The step, by its id or its index.
        step: String,
        /// Why.
        #[arg(long, value_name = "TEXT")]
        why: String,
    },
    /// End a task; nothing of it runs any more.
    Cancel {
        /// The task.
        task_id: String,
        /// Why.
        #[arg(long, value_name = "TEXT")]
        why: Option<String>,
    },
    /// Count the words of the notes in a folder, and publish the results as one report. Creates the task where it is
    /// new, resumes it where it is not.
    Inbox(Inbox),
    /// Print a task's state as JSON.
    Status {
        /// The task.
        task_id: String,
        /// As JSON, which it is in any case.
        #[arg(long)]
        json: bool,
    },
    /// Print a task's journal, one JSON object a line.
    Export {
        /// The task.
        task_id: String,
    },
    /// List all tasks with their status and progress.
    List {
        /// Only what waits for a person, each with the command that goes on.
        #[arg(long)]
        waiting: bool,
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
    /// Say where a task's files are now, where they have moved.
    Rebind(Rebind),
    /// List the tools that plans may call, and the crash points.
    Tools {
        /// Only this one, with all its fields and an example plan.
        name: Option<String>,
        /// As JSON, with schemas and examples.
        #[arg(long)]
        json: bool,
    },
    /// Print what the attempts of a step have said on standard error.
    Stderr {
        /// The task.
        task_id: String,
        /// The step, by its id or its index.
        step: String,
    },
    /// Stands between the agent and a program that a step starts; the agent itself calls it.
    #[command(hide = true)]
    Keeper,
    /// Copy the database, which may be in use, to a new file.
    Backup {
        /// The new file.
        file: PathBuf,
    },
    /// Put a backup in the place of the database, while no task of it is run. Artifacts and reports stay as they are.
    Restore {
        /// What `agent backup` made, or another database of this program.
        backup: PathBuf,
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

/// What `create --help` teaches.
const PLANS: &str = r#"A plan is JSON, or YAML where its name ends in .yaml or .yml:

    goal: Greet
    inputs: { name: world }
    steps:
      - tool: echo
        input: { value: "Hello {{ inputs.name }}" }

`agent check PLAN` says how a plan is understood, `agent tools` lists the tools, `agent tools NAME` says all of one,
with an example plan."#;

#[derive(Debug, Args)]
#[command(after_help = PLANS)]
struct Create {
    /// Any name of at most 200 bytes.
    task_id: String,
    /// The plan; - reads JSON from standard input.
    plan_file: PathBuf,
    #[command(flatten)]
    given: GivenInputs,
    /// A label of the task, before one of that name in the plan; may be given more than once.
    #[arg(long = "label", value_name = "NAME=TEXT", value_parser = pair)]
    labels: Vec<(String, String)>,
    /// It is fine where the task is there already, with the same plan and the same inputs.
    #[arg(long)]
    exists_ok: bool,
}

#[derive(Debug, Args)]
struct GivenInputs {
    /// An input of the plan, read by its type; may be given more than once.
    #[arg(long = "input", value_name = "NAME=VALUE", value_parser = pair)]
    inputs: Vec<(String, String)>,
    /// Inputs of the plan, as a JSON map.
    #[arg(long = "inputs", value_name = "FILE")]
    inputs_file: Option<PathBuf>,
}

fn pair(text: &str) -> Result<(String, String), String> {
    let pair = text.split_once('=').filter(|(name, _)| !name.is_empty());
    pair.map(|(name, value)| (name.to_owned(), value.to_owned())).ok_or_else(|| "it must be NAME=VALUE".to_owned())
}

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("word").required(true).args(["happened", "absent", "abandon"])))]
struct Resolve {
    /// The task.
    task_id: String,
    /// The step, by its id or its index.
    step: String,
    /// Its effect has happened, with this output.
    #[arg(long, value_name = "JSON", num_args = 0..=1)]
    happened: Option<Option<String>>,
    /// Its effect has not happened and will not: it is tried again.
    #[arg(long)]
    absent: bool,
    /// It is given up.
    #[arg(long)]
    abandon: bool,
    /// Why, or how that is known.
    #[arg(long, value_name = "TEXT")]
    why: String,
}

impl Resolve {
    fn says(&self) -> Says<'_> {
        match &self.happened {
            Some(output) => Says::Happened(output.as_deref()),
            None if self.absent => Says::Absent,
            None => Says::Abandon,
        }
    }
}

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("moves").required(true).multiple(true).args(["home", "inbox", "out"])))]
struct Rebind {
    /// The task.
    task_id: String,
    /// The folder that relative paths of its plan and its artifacts folder start from.
    #[arg(long, value_name = "DIR")]
    home: Option<PathBuf>,
    /// The folder of the notes that are not counted yet.
    #[arg(long, value_name = "DIR")]
    inbox: Option<PathBuf>,
    /// Where its report goes.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

#[derive(Debug, Args)]
struct Inbox {
    /// Any name of at most 200 bytes.
    #[arg(long, value_name = "TASK_ID")]
    task: String,
    /// The folder of the notes: its *.txt files, by name, as they are when the task is created.
    #[arg(long, value_name = "DIR")]
    inbox: PathBuf,
    /// The report, a JSON list of the results; it appears whole, once every note is counted.
    #[arg(long, value_name = "FILE", default_value = "report.json")]
    out: PathBuf,
    /// The action log: a JSON object a line for every event. It may be shared by tasks.
    #[arg(long, value_name = "FILE", default_value = "actions.jsonl")]
    log: PathBuf,
    /// Go on, with a warning, where the action log cannot be written; a later run writes what it lacks.
    #[arg(long)]
    log_best_effort: bool,
    /// Pause inside every step, before its effect [default: AGENT_STEP_DELAY].
    #[arg(long, value_name = "SECONDS", value_parser = pause, allow_negative_numbers = true)]
    delay: Option<Duration>,
    /// How long what is under way may take after SIGTERM or SIGINT [default: 10].
    #[arg(long, value_name = "SECONDS", value_parser = pause, allow_negative_numbers = true)]
    grace: Option<Duration>,
}

fn pause(text: &str) -> Result<Duration, String> {
    config::parse_seconds(text).ok_or_else(|| format!("it must be {}", config::SECONDS))
}

/// Parses the arguments; the first one is the program's name.
///
/// # Errors
/// Help, version or a usage error was printed; end with that code.
pub fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Cli, Exit> {
    let parsed = command().try_get_matches_from(args).and_then(|matches| Cli::from_arg_matches(&matches));
    parsed.map_err(|error| {
        if error.use_stderr() || std::io::stdout().is_terminal() {
            let _best_effort = error.print();
            return if error.use_stderr() { Exit::Usage } else { Exit::Done };
        }
        // Help and version are results like any other: where they are lost, the command has failed.
        let mut out = Output::new();
        let shown = out.line(error.render().to_string().trim_end()).and_then(|()| out.finish());
        shown.map_or_else(|failure| failure.exit(), |()| Exit::Done)
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
        signals::survive_size_limits();
        let place = Place::of(&self.db);
        let db = place.path();
        match &self.command {
            Command::Create(Create { task_id, plan_file, given, labels, exists_ok }) => {
                let GivenInputs { inputs, inputs_file } = given;
                let (plan, inputs_file, exists_ok) = (plan_file.as_path(), inputs_file.as_deref(), *exists_ok);
                commands::create(db, task_id, NewTask { plan, inputs, inputs_file, labels, exists_ok })
            }
            Command::Check { plan_file, given, mermaid } => {
                commands::check(plan_file, &given.inputs, given.inputs_file.as_deref(), *mermaid)
            }
            Command::Run { task_id, log, log_best_effort, grace, no_wait } => {
                let log = log.as_deref().map(|path| LogChoice { path, best_effort: *log_best_effort });
                commands::run(db, task_id, log, *grace, *no_wait)
            }
            Command::Resolve(word) => commands::speak(db, &word.task_id, &word.step, word.says(), Some(&word.why)),
            Command::Approve { task_id, step, answer, why } => {
                commands::speak(db, task_id, step, Says::Approve(answer.as_deref()), why.as_deref())
            }
            Command::Reject { task_id, step, why } => commands::speak(db, task_id, step, Says::Reject, Some(why)),
            Command::Cancel { task_id, why } => commands::cancel(db, task_id, why.as_deref()),
            Command::Inbox(Inbox { task, inbox, out, log, log_best_effort, delay, grace }) => {
                let log = LogChoice { path: log, best_effort: *log_best_effort };
                commands::inbox(db, InboxRequest { task, inbox, out, log }, *delay, *grace)
            }
            Command::Status { task_id, .. } => commands::status(db, task_id),
            Command::Export { task_id } => commands::export(db, task_id),
            Command::List { waiting: true, json } => commands::list_waiting(db, *json),
            Command::List { waiting: false, json } => commands::list(db, *json),
            Command::Verify { task_id, json } => commands::verify(db, task_id.as_deref(), *json),
            Command::Rebind(Rebind { task_id, home, inbox, out }) => {
                let moves = Moves { home: home.as_deref(), inbox: inbox.as_deref(), out: out.as_deref() };
                commands::rebind(db, task_id, moves)
            }
            Command::Retry { task_id } => commands::retry(db, task_id),
            Command::Tools { name, json } => commands::tools(name.as_deref(), *json),
            Command::Stderr { task_id, step } => commands::stderr(db, task_id, step),
            Command::Keeper => commands::keeper(),
            Command::Backup { file } => commands::backup(db, file),
            Command::Restore { backup } => commands::restore(db, backup),
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

//! `chaos tool`

use std::time::Duration;

use clap::Args;
use serde_json::Value;

use super::parts::{DEADLINE, duration, own_program, print};
use crate::agent::folder::Folder;
use crate::error::LabError;
use crate::look::sandbox::default_root;
use crate::run::exit::Exit;
use crate::tool::{Class, Gauge, Measured, Probe, Program};

const ABOUT: &str = "\
Measures a program of the exec protocol: it is called as an agent calls it, twice with one
key, killed at its system calls and at moments in between and called again, two at once.
What it did to the world, the probe tells, and nobody else: a shell command that prints
the outcomes, one a line. The answer is the class that the program has earned.";

const EXAMPLES: &str = "\
Examples:
  chaos tool --probe 'cat sent.txt' --claims keyed -- ./mail.py
  chaos tool --probe 'curl -s $API/tickets | jq -c .[]' --pass API --input '{\"title\": \"x\"}' -- ./ticket.sh
  chaos tool --probe 'ls out' --check './made.sh' --claims verifiable -- ./make.sh
";

/// Arguments of `tool`.
#[derive(Debug, Args)]
#[command(about = "Measure which effect class a program of the exec protocol has earned", long_about = ABOUT)]
#[command(after_help = EXAMPLES)]
pub struct ToolArgs {
    /// A shell command that prints the outcomes in the world, one a line
    #[arg(long, value_name = "CMD")]
    probe: Option<String>,
    /// The class that the program is said to have; less is exit code 1
    #[arg(long, value_name = "CLASS")]
    claims: Option<Class>,
    /// The command that finds out whether an effect has happened, as the plan has it in `check`
    #[arg(long, value_name = "CMD")]
    check: Option<String>,
    /// What the program is given as `input`
    #[arg(long, value_name = "JSON", default_value = "{}", value_parser = json)]
    input: Value,
    /// A variable that is passed on to the program; may be given more than once
    #[arg(long, value_name = "NAME")]
    pass: Vec<String>,
    /// After this time a call counts as hung
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = DEADLINE)]
    deadline: Duration,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "PROGRAM")]
    words: Vec<String>,
}

fn json(text: &str) -> Result<Value, String> {
    serde_json::from_str(text).map_err(|error| format!("not JSON: {error}"))
}

/// Does it; the exit code.
///
/// # Errors
/// A program that fails where nothing is done to it, and the lab's own failures.
pub(super) fn measure(args: &ToolArgs) -> Result<i32, LabError> {
    let here = std::env::current_dir();
    let here = here.map_err(|e| LabError::Internal(format!("there is no working folder: {e}")))?;
    let folder = Folder::below(&default_root())?;
    let own = folder.path();
    let mut program = Program::new(&args.words, &here, &own, &own_program()?, args.input.clone(), &args.pass)?;
    program.deadline(args.deadline);
    let check = args.check.as_ref().map(|check| program.other(check)).transpose()?;
    let probe = args.probe.clone().map(|command| Probe { command });
    let prefix = format!("chaos-{:08x}", rand::random::<u32>());
    let mut gauge = Gauge::new(&program, check.as_ref(), probe.as_ref(), prefix)?;
    let plays = gauge.play()?;
    let measured = Measured::of(plays, gauge.outcomes(), check.is_some());
    if args.json {
        print(&format!("{:#}\n", measured.json(args.claims)))?;
    } else {
        print(&measured.text(args.claims))?;
    }
    let enough = args.claims.is_none_or(|claimed| claimed <= measured.earned);
    Ok(if enough { Exit::Held.code() } else { Exit::Violated.code() })
}

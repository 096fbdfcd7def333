//! `chaos`: parse, dispatch, exit.

use std::io::IsTerminal as _;
use std::process::ExitCode;

use chaos::cli::args::Cli;
use chaos::run::exit::Exit;
use clap::Parser as _;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are not errors. A closed pipe is nobody's fault.
            let _ = error.print();
            let usage = error.use_stderr();
            return exit(if usage { Exit::Usage.code() } else { 0 });
        }
    };
    let done = chaos::agent::live::end_on_signals(complain).and_then(|()| chaos::cli::commands::dispatch(cli.command));
    chaos::agent::live::pass();
    match done {
        Ok(code) => exit(code),
        Err(error) => {
            complain(&error.to_string());
            exit(Exit::from(&error).code())
        }
    }
}

fn complain(why: &str) {
    // A progress bar may stand where the line begins.
    let fresh = if std::io::stderr().is_terminal() { "\r\x1b[2K" } else { "" };
    anstream::eprintln!("{fresh}chaos: {why}");
}

fn exit(code: i32) -> ExitCode {
    ExitCode::from(u8::try_from(code).unwrap_or(u8::MAX))
}

//! `chaos`: parse, dispatch, exit.

use std::process::ExitCode;

use chaos::cli::Cli;
use chaos::exit::Exit;
use clap::Parser as _;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are no errors. A closed pipe is nobody's fault.
            let _ = error.print();
            let usage = error.use_stderr();
            return exit(if usage { Exit::Usage.code() } else { 0 });
        }
    };
    match chaos::commands::dispatch(cli.command) {
        Ok(code) => exit(code),
        Err(error) => {
            anstream::eprintln!("chaos: {error}");
            exit(Exit::from(&error).code())
        }
    }
}

fn exit(code: i32) -> ExitCode {
    ExitCode::from(u8::try_from(code).unwrap_or(u8::MAX))
}

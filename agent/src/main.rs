//! The `agent` binary: parse, dispatch, report.

use std::process::ExitCode;

use agent::cli;

fn main() -> ExitCode {
    let exit = match cli::parse() {
        Err(exit) => exit,
        Ok(cli) => cli.run().unwrap_or_else(|failure| {
            anstream::eprintln!("agent: {failure}");
            failure.exit()
        }),
    };
    ExitCode::from(exit as u8)
}

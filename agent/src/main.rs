//! The `agent` binary: parse, dispatch, report.

use std::io::Write;
use std::process::ExitCode;

use agent::cli;

fn main() -> ExitCode {
    let exit = match cli::parse(std::env::args_os()) {
        Err(exit) => exit,
        Ok(cli) => cli.run().unwrap_or_else(|failure| {
            // The exit code says it too, where standard error cannot be written.
            let _best_effort = writeln!(anstream::stderr(), "agent: {failure}");
            failure.exit()
        }),
    };
    ExitCode::from(exit as u8)
}

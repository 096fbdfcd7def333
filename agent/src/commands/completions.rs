//! `agent completions`

use clap_complete::Shell;

use crate::exit::{Exit, Failure};
use crate::output::Output;

pub(crate) fn completions(shell: Shell, mut command: clap::Command) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, "agent", &mut script);
    let mut out = Output::new();
    out.line(String::from_utf8_lossy(&script).trim_end())?;
    out.finish()?;
    Ok(Exit::Done)
}

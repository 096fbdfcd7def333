//! A process of the agent under the tracer, in a sandbox.

use crate::agent::process::{Env, Launch, Outcome, now};
use crate::error::LabError;
use crate::look::lab::Lab;
use crate::look::sandbox::Sandbox;
use crate::trace::{Recorder, Start, Watch, trace};

/// The command of the lab that becomes an agent.
pub const LAUNCH: &str = "become-traced";

/// A process that was traced to its end.
pub struct Traced {
    /// How it ended.
    pub outcome: Outcome,
    /// The most threads and children that were there at the same time.
    pub threads: usize,
}

/// Runs the agent to its end like [`Sandbox::start`], under the tracer.
///
/// # Errors
/// See [`trace`].
pub fn traced(
    lab: &Lab,
    sandbox: &mut Sandbox,
    args: &[impl AsRef<str>],
    env: &Env,
    recorder: &mut Recorder,
    watch: &mut (dyn Watch + Send),
) -> Result<Traced, LabError> {
    traced_launch(lab, &sandbox.launch(&lab.target, args, env), recorder, watch)
}

/// The same for what a sandbox has made ready to be launched.
///
/// # Errors
/// See [`trace`].
pub fn traced_launch(
    lab: &Lab,
    launch: &Launch<'_>,
    recorder: &mut Recorder,
    watch: &mut (dyn Watch + Send),
) -> Result<Traced, LabError> {
    let (given, printed, deadline) = (launch.given(), launch.printed(), launch.time());
    let begin =
        Start { command: launch.command(&[&lab.launcher.to_string_lossy(), LAUNCH])?, given, printed, deadline };
    let started_at = now();
    let traced = trace(begin, recorder, watch)?;
    let outcome = launch.outcome(started_at, traced.ended, traced.survivors)?;
    Ok(Traced { outcome, threads: traced.threads })
}

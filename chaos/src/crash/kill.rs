//! True kills at a system call.

use super::tape::{counts, record};
use super::traced::traced;
use crate::agent::process::{Env, Outcome};
use crate::error::LabError;
use crate::look::lab::Lab;
use crate::look::sandbox::Sandbox;
use crate::schedule::CallPoint;
use crate::trace::{Call, Done, Recorder, Verb, Watch};

/// On which side of a call the kill comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The call is not made any more.
    Before,
    /// The call was the last one.
    After,
}

struct Sniper {
    left: usize,
    side: Side,
    /// The call that the kill hit.
    hit: Option<&'static str>,
}

impl Sniper {
    fn aim(&mut self, call: &Call, side: Side) -> Verb {
        if side != self.side || !counts(call) || self.hit.is_some() {
            return Verb::Go;
        }
        if self.left > 0 {
            self.left -= 1;
            return Verb::Go;
        }
        self.hit = Some(call.name);
        Verb::Kill
    }
}

impl Watch for Sniper {
    fn before(&mut self, call: &Call) -> Result<Verb, LabError> {
        Ok(self.aim(call, Side::Before))
    }

    fn after(&mut self, call: &Call, _: Done) -> Result<Verb, LabError> {
        Ok(self.aim(call, Side::After))
    }
}

/// Kills the process at the call that has `index` others with an address before it; with the name of the call that was
/// hit.
///
/// # Errors
/// The lab's own failures.
pub fn kill_nth(
    lab: &Lab,
    sandbox: &mut Sandbox,
    args: &[impl AsRef<str>],
    env: &Env,
    index: usize,
    side: Side,
) -> Result<(Outcome, Option<&'static str>), LabError> {
    let mut recorder = Recorder::new(&sandbox.world())?;
    let mut sniper = Sniper { left: index, side, hit: None };
    let done = traced(lab, sandbox, args, env, &mut recorder, &mut sniper)?;
    Ok((done.outcome, sniper.hit))
}

/// Kills the process after the call of this address, and says whether there was one. Where the call is, a recording in
/// a twin of the folder tells.
///
/// # Errors
/// The lab's own failures.
pub fn kill_at(
    lab: &Lab,
    sandbox: &mut Sandbox,
    args: &[impl AsRef<str>],
    env: &Env,
    point: &CallPoint,
) -> Result<(Outcome, bool), LabError> {
    let tape = record(lab, &mut sandbox.fork(&lab.root)?, args, env)?;
    let index = tape.frames.iter().position(|frame| frame.at == *point);
    let (outcome, hit) = kill_nth(lab, sandbox, args, env, index.unwrap_or(usize::MAX), Side::After)?;
    Ok((outcome, hit.is_some()))
}

//! The method `faults` for the inbox case: each call on the log, the report and
//! their folder fails once, or writes half; then the same line without a fault.
//! The log may not fall behind: where a line cannot be written, the task stands
//! still, or says so.

use std::sync::Arc;

use super::exhaust::remark;
use super::exhaust_inbox::{Reel, reel, run, to_the_end};
use super::faults::{METHOD, each, ways};
use crate::bench::Bench;
use crate::disk::Frame;
use crate::error::LabError;
use crate::facts::Expect;
use crate::power::log::{Blow, strike};
use crate::process::Ended;
use crate::sandbox::{DB_FILE, Sandbox};
use crate::scenario::{Played, Scenario};
use crate::stage::{Env, TASK};

/// See the file's head.
///
/// # Errors
/// The lab's own failures.
pub(super) fn scenarios(bench: &Arc<Bench>) -> Result<Vec<Scenario>, LabError> {
    let reel = Arc::new(reel(bench, None)?);
    // The database's own calls are the same as with any other plan.
    let own = |frame: &Frame| bench.lab.deep.whole || !frame.call.path.starts_with(DB_FILE);
    let places = reel.tape.frames.iter().enumerate().filter(|(_, frame)| own(frame));
    Ok(places.map(|(at, _)| scenario(bench, &reel, at)).collect())
}

fn scenario(bench: &Arc<Bench>, reel: &Arc<Reel>, at: usize) -> Scenario {
    let frame = &reel.tape.frames[at];
    let what = frame.at.to_string();
    let title = format!("{what} on {} fails or writes half, then a run without faults", frame.call.path);
    let ways = ways(bench, frame);
    let reel = Arc::clone(reel);
    let play = move |bench: &Bench| {
        let note = remark(reel.tape.threads, &reel.tape.blind);
        each(&ways, &reel.tape.frames[at], note, |verb| fail(bench, &reel, Blow { call: at, verb }))
    };
    Scenario::new(METHOD.name, bench, &what, title, play)
}

/// A run with a fault may end with any code that it has words for, but it must end.
fn fail(bench: &Bench, reel: &Reel, blow: Blow) -> Result<Played, LabError> {
    let mut sandbox = Sandbox::empty(&bench.lab.root, &bench.case)?;
    reel.tape.images[0].write(&sandbox.world())?;
    let words = bench.case.words(TASK);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let outcome = strike(&bench.lab, &mut sandbox, &words, &Env::new(), blow)?;
    let expect = match outcome.ended {
        Ended::Exited(code) if code == 0 || !outcome.stderr.trim().is_empty() => Expect::Ends(code),
        _ => Expect::Ends(0),
    };
    let left = sandbox.look()?;
    to_the_end(bench, reel, sandbox, run(None, expect, outcome, left))
}

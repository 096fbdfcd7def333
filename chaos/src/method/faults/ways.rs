//! The ways in which a call can fail, and how they are played.

use nix::errno::Errno;

use crate::crash::Frame;
use crate::error::LabError;
use crate::judge::verdict::VerdictKind;
use crate::play::prepared::Prepared;
use crate::play::scenario::Played;
use crate::trace::{Class, Verb};

/// The method's name.
pub(super) const NAME: &str = "faults";

/// What is noted of a process that gave up over a fault and said so, which is the right end of it.
pub(super) const STOPPED: &str = "stopped with a message, nothing promised";

/// The ways in which a call can fail.
pub(super) fn ways(ready: &Prepared, frame: &Frame) -> Vec<(String, Verb)> {
    let all = [Errno::EIO, Errno::ENOSPC, Errno::EINTR, Errno::EAGAIN];
    let few = if ready.lab.deep { 4 } else { 2 };
    let mut ways: Vec<_> = all.into_iter().take(few).map(|e| (format!("{e:?}"), Verb::Fail(e))).collect();
    if frame.call.class == Class::Change && frame.call.bytes > 1 {
        ways.push(("short".to_owned(), Verb::Shorten(frame.call.bytes / 2)));
    }
    ways
}

/// Plays a call's failures one after another; what was found says which it was.
///
/// # Errors
/// The lab's own failures.
pub(super) fn each(
    ways: &[(String, Verb)],
    frame: &Frame,
    note: Option<String>,
    fail: impl Fn(Verb) -> Result<Played, LabError>,
) -> Result<Played, LabError> {
    let mut sum = Played::default();
    let mut stopped = 0;
    for (name, verb) in ways {
        let mut played = fail(*verb)?;
        (sum.cycles, sum.checked) = (sum.cycles + 1, sum.checked + played.checked);
        stopped += usize::from(played.note.as_deref() == Some(STOPPED));
        for finding in &mut played.findings {
            finding.why = format!("{name} at {} on {}: {}", frame.at, frame.call.path, finding.why);
        }
        if played.verdict() != VerdictKind::Holds || sum.findings.is_empty() {
            sum.evidence = played.evidence;
        }
        sum.findings.extend(played.findings);
    }
    let stops = (stopped > 0).then(|| format!("{stopped} of {} {STOPPED}", ways.len()));
    let notes: Vec<String> = [stops, note].into_iter().flatten().collect();
    sum.note = (!notes.is_empty()).then(|| notes.join("; "));
    Ok(sum)
}

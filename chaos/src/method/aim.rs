//! A kill after a delay falls somewhere else each time. Where one has shown a bug, it is aimed anew: at the call after
//! which the folder looks as that kill has left it, which is the same place in each replay.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::agent::process::Env;
use crate::case::TASK;
use crate::case::plan::PlanCase;
use crate::contract::DB_FILE;
use crate::error::LabError;
use crate::look::evidence::{Baseline, Evidence, TaskEnd};
use crate::look::lab::Lab;
use crate::look::tables::Tables;
use crate::play::scenario::{Played, play_schedule};
use crate::play::stage::Stage;
use crate::play::taped::Taped;
use crate::schedule::{Kill, KillSchedule};
use crate::trace;

/// How long calls are tried.
const AIMING: Duration = Duration::from_secs(20);

/// What can be compared of two folders whose times and names of runs differ.
type Look = (Vec<String>, Vec<String>, BTreeSet<String>);

/// What was played: a plan, compared with its outcome without a crash, with these variables.
pub struct Range<'a> {
    /// The lab.
    pub lab: &'a Lab,
    /// The plan.
    pub case: &'a Arc<PlanCase>,
    /// Its outcome without a crash.
    pub baseline: &'a Baseline,
    /// The variables of its runs.
    pub env: &'a Env,
}

impl Range<'_> {
    /// The calls after one of which the first kill of the schedule fell, by how it left the folder; none where it was
    /// not a delay, or cannot be told.
    ///
    /// # Errors
    /// The lab's own failures.
    pub fn fell(&self, schedule: &KillSchedule, evidence: Option<&Evidence>) -> Result<Vec<Kill>, LabError> {
        let left = evidence.and_then(|evidence| first_left(evidence, schedule));
        let (Some(left), true) = (left, trace::available()) else { return Ok(Vec::new()) };
        let taped = Taped::of_next(Stage::single(self.lab, self.case)?)?;
        let places = (0..taped.tape.frames.len()).filter(|at| look_of_tape(self.case, &taped, *at) == left);
        Ok(places.map(|at| Kill::Call(taped.tape.frames[at].at.clone())).collect())
    }

    /// The schedule with its first delay replaced by a call that shows the same bug, and what came of that; nothing
    /// where none does, or the first kill is not a delay.
    ///
    /// # Errors
    /// The lab's own failures.
    pub fn anew(&self, schedule: &KillSchedule, failed: &Played) -> Result<Option<(KillSchedule, Played)>, LabError> {
        let Some(root) = failed.findings.first().map(|finding| &finding.property) else { return Ok(None) };
        let begin = Instant::now();
        for kill in self.fell(schedule, failed.evidence.as_ref())? {
            let mut aimed = schedule.clone();
            aimed.0[0] = kill;
            let mut stage = Stage::single(self.lab, self.case)?;
            play_schedule(&mut stage, TASK, &aimed, self.env, &|_| Vec::new())?;
            let played = Played::judged(stage.close(TaskEnd::Done), self.baseline);
            if played.findings.first().map(|finding| &finding.property) == Some(root) {
                return Ok(Some((aimed, played)));
            }
            if begin.elapsed() > AIMING {
                break;
            }
        }
        Ok(None)
    }
}

/// How the folder looked after the first kill, where that came after a delay and hit.
fn first_left(evidence: &Evidence, schedule: &KillSchedule) -> Option<Look> {
    let run = evidence.runs.first().filter(|run| run.was_killed())?;
    let Some(Kill::Delay(_)) = schedule.0.first() else { return None };
    let after = run.after.as_ref()?;
    Some(look(&after.tables, after.world.keys().cloned().collect()))
}

fn look_of_tape(case: &PlanCase, taped: &Taped, at: usize) -> Look {
    let image = &taped.tape.images[taped.tape.frames[at].image];
    let own = |name: &&String| {
        let judged = !case.is_input(name) && case.kind.log() != Some(name);
        judged && !name.starts_with(DB_FILE) && case.is_effect(name)
    };
    look(taped.tables(at), image.files.keys().filter(own).cloned().collect())
}

fn look(tables: &Tables, files: BTreeSet<String>) -> Look {
    let events = tables.events.iter().map(|event| format!("{} {:?}", event.kind, event.step)).collect();
    let steps = tables.steps.iter().map(|step| step.status.clone()).collect();
    // A temporary file has the number of its process in its name.
    let files = files.into_iter().map(|name| name.replace(|c: char| c.is_ascii_digit(), "#")).collect();
    (events, steps, files)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Story;

    #[test]
    fn only_a_delay_that_has_killed_is_aimed_anew() {
        let delay: KillSchedule = "+3ms".parse().expect("a schedule");
        let mut story = Story::killed_at("after_effect:1");
        assert!(first_left(&story.evidence, &"after_effect:1".parse().expect("a schedule")).is_none());
        assert!(first_left(&Story::clean().evidence, &delay).is_none());
        let left = first_left(&story.evidence, &delay).expect("a look");
        assert_eq!(left.1, ["done", "running", "pending"]);
        story.after(0).world.insert("artifacts/.t1-2.77.tmp".to_owned(), Vec::new());
        assert_ne!(first_left(&story.evidence, &delay), Some(left), "a file more is another place");
    }
}

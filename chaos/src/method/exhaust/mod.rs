//! Every state that a SIGKILL can leave: one traced run, the folder after each call that changed it, and each distinct
//! folder asked for what it holds, resumed and judged. Covered are `create`, the run, the recovery of a run that was
//! killed with its last effect in the world and no commit of it, and what mends a torn or a lost action log.
//!
//! With `--deep` the resume of every state is traced and cut again, and true kills come before and after every call.

mod real;

use std::sync::Arc;

use crate::case::TASK;
use crate::crash::damage::Damage;
use crate::error::LabError;
use crate::judge::verdict::{Verdict, VerdictKind};
use crate::look::evidence::Expect;
use crate::play::discover::damage_point;
use crate::play::method::{Method, not_here};
use crate::play::prepared::Prepared;
use crate::play::resume::Resumed;
use crate::play::scenario::{Played, Scenario};
use crate::play::taped::Taped;
use crate::schedule::Kill;
use crate::trace;

/// See the file's head.
pub(super) const METHOD: Method = Method {
    name: "exhaust",
    about: "every folder that a SIGKILL can leave, after each system call, resumed",
    scenarios,
};

fn scenarios(ready: &Arc<Prepared>) -> Result<Vec<Scenario>, LabError> {
    if !trace::available() {
        return Ok(vec![not_here(ready, METHOD.name)]);
    }
    let mut all = Vec::new();
    let (example, deep) = (ready.case.example_of.is_some(), ready.lab.deep);
    // Only the last step of a tool's example is its own; all else is in the other plans.
    if ready.case.kind.is_created() && (!example || deep) {
        let create = Arc::new(Taped::of_create(ready)?);
        all.extend(create.states().into_iter().map(|at| cut(ready, &create, at, "created and run again")));
    }
    let run = Arc::new(Taped::of_run(ready)?);
    let own = |at: &usize| ready.is_own(&run.tape.frames[*at].at);
    all.extend(run.states().into_iter().filter(own).map(|at| cut(ready, &run, at, "resumed")));
    if let (Some(recovery), false) = (recovery(ready, &run)?, example) {
        all.extend(recovery.states().into_iter().map(|at| cut(ready, &recovery, at, "resumed")));
    }
    if ready.case.kind.log().is_some() {
        for damage in [Damage::Torn, Damage::Lost] {
            let mended = Arc::new(damaged(ready, damage)?);
            all.extend(mended.states().into_iter().map(|at| mend(ready, &mended, at, damage)));
        }
    }
    if deep {
        all.extend(run.states().into_iter().map(|at| twice(ready, &run, at)));
        all.extend((0..run.tape.frames.len()).map(|at| real::scenario(ready, &run, at)));
    }
    Ok(all)
}

/// A run on a damaged action log, on tape.
fn damaged(ready: &Prepared, damage: Damage) -> Result<Taped, LabError> {
    let mut stage = ready.stage()?;
    stage.run(TASK, Some(&Kill::Point(damage_point(&ready.case))), Expect::Dies, &[])?;
    stage.damage_log(|sandbox| damage.apply(sandbox))?;
    Taped::of_next(stage)
}

/// The resume after a kill with the last effect in the world and no commit of it.
fn recovery(ready: &Prepared, run: &Taped) -> Result<Option<Arc<Taped>>, LabError> {
    let running = |at: &usize| !run.tables(*at).with_status(TASK, "running").is_empty();
    let last = run.states().into_iter().rfind(running);
    last.map(|at| run.resume(ready, at).map(Arc::new)).transpose()
}

fn cut(ready: &Arc<Prepared>, taped: &Arc<Taped>, at: usize, then: &str) -> Scenario {
    let schedule = taped.kills(at);
    let title = format!("killed after {}, {then}", what(taped, at));
    let creates = taped.tape.frames[at].at.phase == "create";
    let taped = Arc::clone(taped);
    let play = move |ready: &Prepared| {
        let told = taped.asked(ready, at)?;
        let resumed = if creates { taped.created_again(ready, at)? } else { taped.resumed(ready, at)? };
        let mut played = judged(ready, &taped, resumed);
        played.and("told_true", Verdict::of(&told));
        Ok(played)
    };
    Scenario::new(METHOD.name, ready, &schedule.to_string(), title, play).kills(schedule)
}

fn mend(ready: &Arc<Prepared>, taped: &Arc<Taped>, at: usize, damage: Damage) -> Scenario {
    let schedule = taped.kills(at);
    let title = format!("{}, killed after {}, resumed", damage.about(), what(taped, at));
    let taped = Arc::clone(taped);
    let play = move |ready: &Prepared| Ok(judged(ready, &taped, taped.resumed(ready, at)?));
    Scenario::new(METHOD.name, ready, &format!("{}, {schedule}", damage.word()), title, play).kills(schedule)
}

/// A call with what it did.
fn what(taped: &Taped, at: usize) -> String {
    let frame = &taped.tape.frames[at];
    let did: Vec<String> = frame.ops.iter().map(ToString::to_string).collect();
    format!("{} ({})", frame.at, did.join(", "))
}

fn judged(ready: &Prepared, taped: &Taped, resumed: Resumed) -> Played {
    let mut played = Played::judged(resumed.evidence, &ready.baseline);
    played.cycles = played.cycles.max(1);
    played.and("whole_or_nothing", resumed.create);
    played.note = taped.remark();
    played
}

/// All cuts of the resume after one cut.
fn twice(ready: &Arc<Prepared>, run: &Arc<Taped>, at: usize) -> Scenario {
    let first = run.tape.frames[at].at.clone();
    let title = format!("killed after {first}, killed again after every call of the resume, resumed");
    let schedule = run.kills(at);
    let run = Arc::clone(run);
    let play = move |ready: &Prepared| {
        let second = run.resume(ready, at)?;
        let mut sum = Played::default();
        for at in second.states() {
            let played = judged(ready, &second, second.resumed(ready, at)?);
            (sum.cycles, sum.checked) = (sum.cycles + played.cycles, sum.checked + played.checked);
            let failed = played.verdict() != VerdictKind::Holds;
            sum.evidence = played.evidence;
            if failed {
                sum.findings = played.findings;
                sum.subject = Some(format!("{}/{}/{}", METHOD.name, ready.case.name, second.kills(at)));
                break;
            }
        }
        sum.note = Some(format!("{} distinct states after the second kill", sum.cycles));
        Ok(sum)
    };
    Scenario::new(METHOD.name, ready, &format!("{first}, *"), title, play).kills(schedule)
}

//! Plays one scenario again: by its id, or a bare kill schedule.

use std::sync::Arc;

use crate::case::plan::PlanCase;
use crate::case::random::RandomPlan;
use crate::error::LabError;
use crate::judge::verdict::Verdict;
use crate::look::evidence::Evidence;
use crate::look::lab::Lab;
use crate::method::aim::Range;
use crate::method::{self, fuzz};
use crate::play::company::Company;
use crate::play::prepared::Prepared;
use crate::play::scenario::{Done, Played, Scenario};
use crate::schedule::{Kill, KillSchedule};

/// The method's name of a bare schedule.
const NAME: &str = "replay";

/// Plays `subject`: `method/plan/what`, or a kill schedule for the first plan.
///
/// # Errors
/// A subject that is neither, and the lab's own failures.
pub fn replay(lab: &Arc<Lab>, plans: &[Arc<PlanCase>], subject: &str, jobs: usize) -> Result<Done, LabError> {
    let scenario = find(lab, plans, subject, jobs)?;
    scenario.report(|subject| lab.replay_command(subject))
}

fn find(lab: &Arc<Lab>, plans: &[Arc<PlanCase>], subject: &str, jobs: usize) -> Result<Scenario, LabError> {
    let parts: Vec<&str> = subject.splitn(3, '/').collect();
    // Kills at calls have slashes too.
    let schedule = subject.parse::<KillSchedule>().is_ok();
    let (&[method, plan, what], false) = (&parts[..], schedule) else {
        let first = plans.first().ok_or_else(|| LabError::Usage("there is no plan".to_owned()))?;
        return bare(lab, first, subject, jobs);
    };
    if method::named(method).is_none() {
        return Err(LabError::Usage(format!("there is no method `{method}`")));
    }
    if let ("fuzz", Ok(plan)) = (method, plan.parse::<RandomPlan>()) {
        return fuzzed(lab, plans, &plan, what);
    }
    let case = plans.iter().find(|case| case.name == plan).ok_or_else(|| {
        let known: Vec<_> = plans.iter().map(|case| case.name.as_str()).collect();
        LabError::Usage(format!("there is no plan `{plan}`; there are {}", known.join(", ")))
    })?;
    let ready = Arc::new(Prepared::prepare(lab, case, jobs)?);
    if !ready.is_sound() {
        return baseline(&ready);
    }
    let all = method::named(method).map(|method| method::scenarios_for(method, &ready)).transpose()?;
    let mut found = all.into_iter().flatten().filter(|scenario| scenario.id == subject);
    match found.next() {
        Some(scenario) => Ok(scenario),
        // Random delays and recordings of another day are schedules all the same.
        None => of_schedule(&ready, what),
    }
}

/// Where the plan fails without a crash, that is what there is to tell.
fn baseline(ready: &Arc<Prepared>) -> Result<Scenario, LabError> {
    let method = method::named(method::BASELINE);
    let scenarios = method.map(|method| method::scenarios_for(method, ready)).transpose()?;
    let first = scenarios.into_iter().flatten().next();
    first.ok_or_else(|| LabError::Internal("there is no baseline".to_owned()))
}

/// A case that fuzzing has found: plan and schedule are both in the subject.
fn fuzzed(lab: &Arc<Lab>, plans: &[Arc<PlanCase>], plan: &RandomPlan, what: &str) -> Result<Scenario, LabError> {
    let (company, kills) = Company::parse(what);
    let kills: KillSchedule = kills.parse().map_err(|e| LabError::Usage(format!("{e}")))?;
    let given = plans.first().ok_or_else(|| LabError::Usage("there is no plan".to_owned()))?;
    let case = plan.build(given, &lab.target.examples)?;
    let schedule = kills.clone();
    let lab = Arc::clone(lab);
    Ok(Scenario {
        id: format!("fuzz/{plan}/{company}{kills}"),
        method: "fuzz",
        plan: plan.to_string(),
        title: format!("a random plan under the schedule {kills}"),
        schedule: kills,
        play: Box::new(move || fuzz::play_case(&lab, &case, company, &schedule)),
    })
}

fn bare(lab: &Arc<Lab>, case: &Arc<PlanCase>, text: &str, jobs: usize) -> Result<Scenario, LabError> {
    // Before any process is started: a slip of the pen should not cost seconds.
    let _: KillSchedule = text.parse().map_err(|e| LabError::Usage(format!("{e}")))?;
    let ready = Arc::new(Prepared::prepare(lab, case, jobs)?);
    if ready.is_sound() { of_schedule(&ready, text) } else { baseline(&ready) }
}

fn of_schedule(ready: &Arc<Prepared>, text: &str) -> Result<Scenario, LabError> {
    let (company, kills) = Company::parse(text);
    let schedule: KillSchedule = kills.parse().map_err(|e| LabError::Usage(format!("{e}")))?;
    let kills = schedule.clone();
    let title = format!("killed by the schedule {schedule}, resumed");
    let play = move |ready: &Prepared| play(ready, company, &kills);
    Ok(Scenario::new(NAME, ready, text, title, play).kills(schedule))
}

/// Plays any schedule on a plan and judges it.
///
/// # Errors
/// The lab's own failures.
pub fn play(ready: &Prepared, company: Company, schedule: &KillSchedule) -> Result<Played, LabError> {
    // Many kills may hit one step; the attempt limit is not what is tested here.
    let limit = (schedule.0.len() + 3).to_string();
    let env = vec![("AGENT_MAX_ATTEMPTS", limit)];
    let evidence = company.play(&ready.lab, &ready.case, schedule, &env)?;
    let (hit, excused) = hit(&evidence, schedule);
    let mut played = company.judge(ready, evidence)?;
    played.and("hit", hit);
    played.unreachable = excused;
    let range = Range { lab: &ready.lab, case: &ready.case, baseline: &ready.baseline, env: &env };
    if company == Company(None) {
        aim(&range, schedule, &mut played)?;
    }
    if excused {
        let why = "a kill was unreachable by design: its step was committed before";
        played.note = Some(why.to_owned());
    }
    Ok(played)
}

/// A delay hits another place each time: says at which call it fell, and where that shows the same bug, tells of that
/// one, which can be replayed.
fn aim(range: &Range<'_>, schedule: &KillSchedule, played: &mut Played) -> Result<(), LabError> {
    match range.anew(schedule, played)? {
        Some((aimed, again)) => {
            played.note = Some(format!("the kill of {schedule} fell at {aimed}"));
            played.subject = Some(format!("{aimed}"));
            (played.findings, played.evidence) = (again.findings, again.evidence);
        }
        None => {
            let fell = range.fell(schedule, played.evidence.as_ref())?;
            played.note = fell.first().map(|call| format!("the kill fell after {call}, which can be replayed"));
        }
    }
    Ok(())
}

/// Whether each kill of a schedule was delivered. One that was not has tested nothing, except where an earlier kill of
/// the same schedule has let its step be committed; `true` where that is so.
fn hit(evidence: &Evidence, schedule: &KillSchedule) -> (Verdict, bool) {
    let mut excused = false;
    let own: Vec<usize> = (0..evidence.runs.len()).filter(|&i| evidence.runs[i].task == evidence.tasks[0]).collect();
    for (nth, kill) in schedule.0.iter().enumerate() {
        let i = own.get(nth).copied().unwrap_or(evidence.runs.len());
        let run = evidence.runs.get(i).filter(|run| run.kill.as_ref() == Some(kill));
        let delivered = run.is_some_and(|run| match kill {
            Kill::Signal { .. } => run.signalled,
            Kill::Point(_) | Kill::Delay(_) | Kill::Call(_) => run.was_killed(),
        });
        if delivered {
            continue;
        }
        if run.is_some() && nth > 0 && was_committed(evidence, i, kill) {
            excused = true;
            continue;
        }
        let why = match run {
            Some(run) => format!("`{kill}` did not come: {} {}", evidence.label(i), run.outcome.ended),
            None => format!("`{kill}` did not come: the task was over before"),
        };
        return (Verdict::NotReached(why), excused);
    }
    (Verdict::Holds, excused)
}

/// Whether the step that a kill names was done when the `i`-th run began.
fn was_committed(evidence: &Evidence, i: usize, kill: &Kill) -> bool {
    let step = match kill {
        Kill::Point(point) => point.step,
        Kill::Signal { step, .. } => Some(*step),
        Kill::Delay(_) | Kill::Call(_) => None,
    };
    let before = evidence.runs[i - 1].after.as_ref().map(|after| &after.tables);
    let row = before.zip(step).and_then(|(tables, step)| tables.step(&evidence.tasks[0], step));
    row.is_some_and(|row| row.status == "done")
}

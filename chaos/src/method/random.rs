//! SIGKILL after random delays, seeded, aimed at the run's real duration. A kill that came too late is counted as
//! missed; too few hits are a failure.

use std::sync::Arc;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use crate::error::LabError;
use crate::judge::verdict::{Verdict, VerdictKind};
use crate::method::aim::Range;
use crate::play::company::Company;
use crate::play::method::Method;
use crate::play::prepared::Prepared;
use crate::play::scenario::{Played, Scenario};
use crate::schedule::{Kill, KillSchedule};

/// See the file's head.
pub(super) const METHOD: Method =
    Method { name: "random", about: "SIGKILL after random delays, aimed at the run's real duration", scenarios };

/// Hits that end a scenario.
const HITS: usize = 8;

/// Trials that it may take: on a busy machine many kills come late.
const MAX_TRIALS: usize = 24;

/// Scenarios for a plan and for a tool's own example; the inbox gets half of a plan's.
const BATCHES: (usize, usize) = (4, 1);

/// One trial in so many has a neighbour that is easily taken for the task.
const ALONE: usize = 4;

/// Fewer hits than this are too few.
const MIN_HITS: usize = 4;

fn scenarios(ready: &Arc<Prepared>) -> Result<Vec<Scenario>, LabError> {
    let batches = match ready.case.example_of {
        None if !ready.case.kind.is_created() => BATCHES.0 / 2,
        None => BATCHES.0,
        Some(_) => BATCHES.1,
    };
    let scenario = |batch| {
        let title = format!("{HITS} times killed after a random delay, resumed");
        let what = format!("batch-{batch}");
        let play = move |ready: &Prepared| play(ready, batch);
        Scenario::new(METHOD.name, ready, &what, title, play)
    };
    Ok((1..=batches).map(scenario).collect())
}

fn play(ready: &Prepared, batch: usize) -> Result<Played, LabError> {
    let name = &ready.case.name;
    let seed = ready.lab.seed_for(&format!("random/{name}/{batch}"));
    let mut luck = StdRng::seed_from_u64(seed);
    let mut seconds = clean_seconds(ready);
    let mut sum = Played::default();
    let (mut hits, mut trials) = (0, 0);
    while hits < HITS && trials < MAX_TRIALS {
        trials += 1;
        let schedule = delays(&mut luck, seconds);
        let company = company(ready, batch, trials)?;
        let evidence = company.play(&ready.lab, &ready.case, &schedule, &Vec::new())?;
        let first = &evidence.runs[company.tasks().len() - 1];
        hits += usize::from(first.was_killed());
        if !first.was_killed() {
            // The machine is faster now than when the baseline was played.
            seconds = seconds.min(first.outcome.seconds());
        }
        let trial = company.judge(ready, evidence)?;
        sum.cycles += trial.cycles;
        sum.checked += trial.checked;
        if trial.verdict() != VerdictKind::Holds {
            // Where the task has company, the first run is another one's.
            let alone = company == Company(None);
            let env = Vec::new();
            let range = Range { lab: &ready.lab, case: &ready.case, baseline: &ready.baseline, env: &env };
            let aimed = if alone { range.anew(&schedule, &trial)? } else { None };
            let (schedule, trial) = match aimed {
                Some((aimed, again)) => {
                    sum.note = Some(format!("first seen with the schedule {schedule}, whose kill fell at {aimed}"));
                    (aimed, again)
                }
                None => (schedule, trial),
            };
            (sum.evidence, sum.findings) = (trial.evidence, trial.findings);
            sum.subject = Some(format!("random/{name}/{company}{schedule}"));
            return Ok(sum);
        }
        sum.evidence = trial.evidence;
    }
    sum.note = Some(format!("{hits} of {trials} kills hit, the others came too late"));
    sum.and("enough_hits", enough(hits, trials));
    Ok(sum)
}

/// Of each batch a few trials have company, each another one.
fn company(ready: &Prepared, batch: usize, trial: usize) -> Result<Company, LabError> {
    if !trial.is_multiple_of(ALONE) {
        return Ok(Company(None));
    }
    let nth = batch * MAX_TRIALS / ALONE + trial / ALONE;
    Company::welcome(ready, nth)
}

/// How long a run takes: the quicker one of the two clean runs.
fn clean_seconds(ready: &Prepared) -> f64 {
    let second = ready.second.runs.iter().map(|run| run.outcome.seconds());
    second.fold(ready.baseline.run_seconds(), f64::min)
}

/// One delay in the run's duration, sometimes a second one for the resume.
fn delays(luck: &mut StdRng, seconds: f64) -> KillSchedule {
    let kills = if luck.random_bool(0.3) { 2 } else { 1 };
    let delay = |_| Kill::Delay((luck.random::<f64>() * seconds * 1e6) as u64);
    KillSchedule((0..kills).map(delay).collect())
}

fn enough(hits: usize, trials: usize) -> Verdict {
    if hits >= MIN_HITS {
        return Verdict::Holds;
    }
    Verdict::NotReached(format!("only {hits} of {trials} kills came before the run's end"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_delays_and_all_within_the_run() {
        let draw = |seed| {
            let mut luck = StdRng::seed_from_u64(seed);
            (0..20).map(|_| delays(&mut luck, 0.01)).collect::<Vec<_>>()
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
        for kill in draw(3).into_iter().flat_map(|schedule| schedule.0) {
            assert!(matches!(kill, Kill::Delay(us) if us <= 10_000), "{kill}");
        }
    }

    #[test]
    fn too_few_hits_are_not_reached() {
        assert!(enough(HITS, HITS).holds());
        assert!(enough(MIN_HITS, MAX_TRIALS).holds());
        assert!(matches!(enough(MIN_HITS - 1, MAX_TRIALS), Verdict::NotReached(_)));
    }
}

//! SIGKILL after random delays, seeded, aimed at the run's real duration. A kill
//! that came too late is counted as missed; too few hits are a failure.

use std::sync::Arc;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use super::Method;
use crate::bench::Bench;
use crate::error::LabError;
use crate::facts::TaskEnd;
use crate::report::model::VerdictKind;
use crate::scenario::{Played, Scenario, play_schedule};
use crate::schedule::{Kill, KillSchedule};
use crate::stage::{Stage, TASK};
use crate::verdict::Verdict;

/// See the file's head.
pub(super) const METHOD: Method =
    Method { name: "random", about: "SIGKILL after random delays, aimed at the run's real duration", scenarios };

/// Trials in one scenario.
const TRIALS: usize = 8;

/// Scenarios for a plan and for a tool's own example.
const BATCHES: (usize, usize) = (4, 1);

/// Of so many trials at least one must hit.
const WORST_OF: usize = 2;

fn scenarios(bench: &Arc<Bench>) -> Result<Vec<Scenario>, LabError> {
    let batches = match bench.case.example_of {
        None => BATCHES.0,
        Some(_) => BATCHES.1,
    };
    let scenario = |batch| {
        let title = format!("{TRIALS} times killed after a random delay, resumed");
        let what = format!("batch-{batch}");
        let play = move |bench: &Bench| play(bench, batch);
        Scenario::new(METHOD.name, bench, &what, title, play)
    };
    Ok((1..=batches).map(scenario).collect())
}

fn play(bench: &Bench, batch: usize) -> Result<Played, LabError> {
    let name = &bench.case.name;
    let seed = bench.lab.seed_for(&format!("random/{name}/{batch}"));
    let mut luck = StdRng::seed_from_u64(seed);
    let mut sum = Played::default();
    let mut hits = 0;
    for _ in 0..TRIALS {
        let schedule = delays(&mut luck, bench.baseline.run_seconds());
        let mut stage = Stage::single(&bench.lab, &bench.case)?;
        play_schedule(&mut stage, TASK, &schedule, &[], &|_| Vec::new())?;
        let evidence = stage.close(TaskEnd::Done);
        hits += usize::from(evidence.runs[0].was_killed());
        let trial = Played::judged(evidence, &bench.baseline);
        sum.cycles += trial.cycles;
        sum.checked += trial.checked;
        let failed = trial.verdict() != VerdictKind::Holds;
        sum.evidence = trial.evidence;
        if failed {
            sum.findings = trial.findings;
            sum.subject = Some(format!("random/{name}/{schedule}"));
            return Ok(sum);
        }
    }
    sum.note = Some(format!("{hits} of {TRIALS} kills hit"));
    sum.and("enough_hits", enough(hits));
    Ok(sum)
}

/// One delay in the run's duration, sometimes a second one for the resume.
fn delays(luck: &mut StdRng, seconds: f64) -> KillSchedule {
    let longest = ((seconds * 1e6) as u64).max(1);
    let kills = if luck.random_bool(0.3) { 2 } else { 1 };
    let delay = |_| Kill::Delay(luck.random_range(0..=longest));
    KillSchedule((0..kills).map(delay).collect())
}

fn enough(hits: usize) -> Verdict {
    if hits * WORST_OF >= TRIALS {
        return Verdict::Holds;
    }
    Verdict::NotReached(format!("only {hits} of {TRIALS} kills came before the run's end"))
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
        assert!(enough(TRIALS).holds());
        assert!(enough(TRIALS / WORST_OF).holds());
        assert!(matches!(enough(1), Verdict::NotReached(_)));
    }
}

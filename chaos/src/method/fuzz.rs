//! Random plans of 1 to 8 steps under schedules of up to 4 kills of mixed kinds. A failure shrinks to a minimal plan
//! and schedule, and its replay command carries both.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};

use crate::agent::process::Env;
use crate::agent::target::Target;
use crate::case::names;
use crate::case::plan::PlanCase;
use crate::case::random::RandomPlan;
use crate::error::LabError;
use crate::judge::verdict::VerdictKind;
use crate::look::evidence::Baseline;
use crate::look::lab::Lab;
use crate::method::aim::Range;
use crate::play::company::{self, Company};
use crate::play::method::Method;
use crate::play::prepared::{Prepared, baseline_of, clean_run};
use crate::play::scenario::{Played, Scenario};
use crate::schedule::{CrashPoint, Kill, KillSchedule, Sign};

/// See the file's head.
pub(super) const METHOD: Method = Method {
    name: "fuzz",
    about: "proptest: random plans of 1 to 8 steps under random schedules of up to 4 kills",
    scenarios,
};

/// Steps of a random plan.
const MAX_STEPS: usize = 8;

/// Kills of a random schedule.
const MAX_KILLS: usize = 4;

/// Cases of one scenario, so that several can be played side by side.
const CHUNK: u32 = 16;

/// Cases for a plan, where nobody chooses.
const CASES: u32 = 256;

/// So many they are even for the slowest agent.
const LEAST: u32 = 48;

/// A clean run of at most so many seconds lets all cases be played. An agent that takes ten times as long, such as one
/// that starts an interpreter, would have the lab fuzz for minutes.
const QUICK: f64 = 0.04;

/// The inbox case is played one time in so many.
const INBOX_SHARE: u32 = 8;

/// Cases that shrinking may play, and how long it may take: an agent that hangs costs a whole deadline each time.
const MAX_SHRINKS: u32 = 100;
const MAX_SHRINKING: Duration = Duration::from_secs(60);

/// How often the task has company, of all cases.
const COMPANY: f64 = 0.125;

/// A plan and a schedule for it.
#[derive(Debug, Clone)]
pub struct Case {
    /// The plan.
    pub plan: RandomPlan,
    /// Which tasks it is played with.
    pub company: Company,
    /// Who is killed when.
    pub kills: KillSchedule,
}

/// Random plans belong to the first plan's ready; a plan of the user's own is played as it is under random schedules,
/// and a tool's example is a part of the random plans.
fn scenarios(ready: &Arc<Prepared>) -> Result<Vec<Scenario>, LabError> {
    if ready.case.example_of.is_some() {
        return Ok(Vec::new());
    }
    let mut cases = ready.lab.cases.unwrap_or_else(|| bearable(ready.baseline.run_seconds()));
    if !ready.case.kind.is_created() {
        // It is one plan, and there are no random ones to be drawn.
        cases = cases.div_ceil(INBOX_SHARE);
    }
    let chunks = cases.div_ceil(CHUNK);
    let scenario = |chunk| {
        let count = CHUNK.min(cases - chunk * CHUNK);
        let title = format!("{count} random plans under random kills");
        let play = move |ready: &Prepared| play(ready, chunk, count);
        Scenario::new(METHOD.name, ready, &format!("chunk-{:03}", chunk + 1), title, play)
    };
    Ok((0..chunks).map(scenario).collect())
}

/// As many cases as an agent is quick, whose clean run takes so many seconds.
fn bearable(seconds: f64) -> u32 {
    let share = QUICK / seconds.max(QUICK);
    ((f64::from(CASES) * share) as u32).clamp(LEAST, CASES).next_multiple_of(CHUNK)
}

fn play(ready: &Prepared, chunk: u32, count: u32) -> Result<Played, LabError> {
    let hunt = RefCell::new(Hunt::default());
    let broken: RefCell<Option<LabError>> = RefCell::new(None);
    let test = |case: Case| {
        if hunt.borrow_mut().is_over() {
            return Ok(());
        }
        match one(ready, &case) {
            Ok(played) => hunt.borrow_mut().take(case, played),
            Err(error) => {
                broken.borrow_mut().get_or_insert(error);
                Err(TestCaseError::fail("the lab failed"))
            }
        }
    };
    let result = runner(&ready.lab, chunk, count).run(&strategy(ready), test);
    if let Some(error) = broken.into_inner() {
        return Err(error);
    }
    if let Err(TestError::Abort(why)) = result {
        return Err(LabError::Internal(format!("fuzzing was given up: {why}")));
    }
    let Hunt { mut sum, failed, .. } = hunt.into_inner();
    match failed {
        None => sum.note = Some(format!("{count} cases")),
        Some((case, played)) => {
            let least = match simplest(ready, &case, &played)? {
                Some(simplest) => simplest,
                None => shortened(ready, case)?,
            };
            fail(ready, &least, played, &mut sum)?;
        }
    }
    Ok(sum)
}

/// What a run of proptest has come to so far.
#[derive(Default)]
struct Hunt {
    /// The cases that held, added up.
    sum: Played,
    /// The smallest case that failed, and how.
    failed: Option<(Case, Played)>,
    /// When the first one failed: from then on it is being shrunk.
    since: Option<Instant>,
    shrinks: u32,
}

impl Hunt {
    /// Whether shrinking has cost enough. Every further case is then said to hold, unplayed, so that proptest comes to
    /// its end; its own bounds would tell themselves to the user's terminal.
    fn is_over(&mut self) -> bool {
        let Some(since) = self.since else { return false };
        self.shrinks += 1;
        self.shrinks > MAX_SHRINKS || since.elapsed() > MAX_SHRINKING
    }

    fn take(&mut self, case: Case, played: Played) -> Result<(), TestCaseError> {
        if played.verdict() == VerdictKind::Holds {
            self.sum.cycles += played.cycles;
            self.sum.checked += played.checked;
            return Ok(());
        }
        self.since.get_or_insert_with(Instant::now);
        self.failed = Some((case, played));
        Err(TestCaseError::fail("a property is violated"))
    }
}

/// One step and one kill of the contract, where that violates the same property: what is drawn may not lead there
/// within the time that shrinking has.
fn simplest(ready: &Prepared, case: &Case, failed: &Played) -> Result<Option<Case>, LabError> {
    let root = failed.findings.first().map(|finding| &finding.property);
    if case.plan.steps().is_none() {
        return Ok(None);
    }
    for point in CrashPoint::of_contract(1) {
        let kills = KillSchedule::points([&point]);
        let simple = Case { plan: RandomPlan::simplest(), company: Company(None), kills };
        let played = one(ready, &simple)?;
        if played.findings.first().map(|finding| &finding.property) == root {
            return Ok(Some(simple));
        }
    }
    Ok(None)
}

/// The case without the company and every kill that it fails without as well: proptest may have had
/// no time left for them.
fn shortened(ready: &Prepared, mut case: Case) -> Result<Case, LabError> {
    let begin = Instant::now();
    if case.company != Company(None) {
        let alone = Case { company: Company(None), ..case.clone() };
        if one(ready, &alone)?.verdict() != VerdictKind::Holds {
            case = alone;
        }
    }
    let mut at = 0;
    while at < case.kills.0.len() && begin.elapsed() < MAX_SHRINKING {
        let mut shorter = case.clone();
        shorter.kills.0.remove(at);
        if one(ready, &shorter)?.verdict() == VerdictKind::Holds {
            at += 1;
        } else {
            case = shorter;
        }
    }
    Ok(case)
}

/// Plays the minimal case once more, to say whether it fails each time; where its first kill is a delay, aimed at the
/// call at which that fell.
fn fail(ready: &Prepared, minimal: &Case, failed: Played, sum: &mut Played) -> Result<(), LabError> {
    let aimed = if minimal.company == Company(None) { aimed(ready, minimal, &failed)? } else { None };
    let (kills, again) = match aimed {
        Some((aimed, again)) => {
            sum.note = Some(format!("first seen with the schedule {}, whose kill fell at {aimed}", minimal.kills));
            (aimed, again)
        }
        None => (minimal.kills.clone(), one(ready, minimal)?),
    };
    sum.subject = Some(match minimal.plan.steps() {
        // A plan that was not drawn is found by its name.
        None => format!("fuzz/{}/{}{kills}", ready.case.name, minimal.company),
        Some(_) => format!("fuzz/{}/{}{kills}", minimal.plan, minimal.company),
    });
    let repeatable = again.verdict() != VerdictKind::Holds;
    let shown = if repeatable { again } else { failed };
    sum.evidence = shown.evidence;
    sum.findings = shown.findings;
    if !repeatable {
        let why = "the case failed, and held when it was played once more";
        sum.and("repeatable", crate::judge::verdict::Verdict::Violated(why.to_owned()));
    }
    Ok(())
}

fn aimed(ready: &Prepared, case: &Case, failed: &Played) -> Result<Option<(KillSchedule, Played)>, LabError> {
    let Some(Kill::Delay(_)) = case.kills.0.first() else { return Ok(None) };
    let plan = case.plan.build(&ready.case, &ready.lab.target.examples)?;
    let (plan, baseline) = clean(&ready.lab, &plan, case.company)?;
    Range { lab: &ready.lab, case: &plan, baseline: &baseline, env: &env() }.anew(&case.kills, failed)
}

/// Plays one case.
///
/// # Errors
/// The lab's own failures.
pub fn one(ready: &Prepared, case: &Case) -> Result<Played, LabError> {
    let plan = case.plan.build(&ready.case, &ready.lab.target.examples)?;
    let company = case.company.0.map_or(Ok(Company(None)), |nth| Company::welcome(ready, nth))?;
    play_case(&ready.lab, &plan, company, &case.kills)
}

/// Plays a random plan under a schedule and judges it.
///
/// # Errors
/// The lab's own failures.
pub fn play_case(lab: &Lab, case: &PlanCase, company: Company, kills: &KillSchedule) -> Result<Played, LabError> {
    let (case, baseline) = clean(lab, case, company)?;
    Ok(company::judged(company.play(lab, &case, kills, &env())?, &baseline))
}

/// The plan, of which is known now which files are judged, and its outcome without a crash.
fn clean(lab: &Lab, case: &PlanCase, company: Company) -> Result<(Arc<PlanCase>, Baseline), LabError> {
    let clean = clean_run(lab, &Arc::new(case.clone()), &company.tasks(), &Vec::new())?;
    let case = Arc::clone(&clean.case);
    let mut baseline = baseline_of(clean, None);
    let contract = |spec: &crate::case::plan::StepSpec| crate::contract::is_of_contract(&spec.tool);
    baseline.comparable = case.steps.iter().map(contract).collect();
    Ok((case, baseline))
}

/// More attempts than kills: the limit has a method of its own.
fn env() -> Env {
    vec![("AGENT_MAX_ATTEMPTS", (MAX_KILLS + 3).to_string())]
}

fn runner(lab: &Lab, chunk: u32, count: u32) -> TestRunner {
    // Shrinking is bounded by the hunt; the largest number would mean a bound again.
    let max_shrink_iters = u32::MAX - 1;
    let config = Config { cases: count, max_shrink_iters, failure_persistence: None, verbose: 0, ..Config::default() };
    let word = lab.seed_for(&format!("fuzz/{chunk}")).to_le_bytes();
    let seed: Vec<u8> = word.iter().copied().cycle().take(32).collect();
    TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &seed))
}

/// Random plans under random schedules; the user's own plan as it is.
pub fn strategy(ready: &Prepared) -> impl Strategy<Value = Case> + use<> {
    let plans = if ready.case.is_built_in() {
        RandomPlan::strategy(&ready.lab.target.examples, MAX_STEPS).boxed()
    } else {
        Just(RandomPlan::fixed()).boxed()
    };
    let longest = ((ready.baseline.run_seconds() * 1.5e6) as u64).max(1);
    let given = Arc::clone(&ready.case);
    let lab = Arc::clone(&ready.lab);
    plans.prop_flat_map(move |plan| {
        let tools = plan.tools(&given, &lab.target.examples);
        let kill = kill(&tools, longest, &lab.target, given.kind.log().is_some());
        let kills = prop::collection::vec(kill, 0..=MAX_KILLS);
        let company = prop::option::weighted(COMPANY, 0..names::COUNT).prop_map(Company);
        (company, kills).prop_map(move |(company, kills)| Case {
            plan: plan.clone(),
            company,
            kills: KillSchedule(kills),
        })
    })
}

fn kill(tools: &[String], longest: u64, target: &Target, log: bool) -> BoxedStrategy<Kill> {
    let contract = prop::sample::select(CrashPoint::of_contract(tools.len())).prop_map(Kill::Point);
    let delay = (0..=longest).prop_map(Kill::Delay);
    // Few of these, and early ones: each lets every step before it sleep.
    let signs = vec![Sign::Kill, Sign::Term, Sign::Int];
    let signal = (0..tools.len().min(3), prop::sample::select(signs)).prop_map(|(step, sign)| Kill::Signal {
        sign,
        group: false,
        step,
    });
    let further = further_points(tools, target, log);
    if further.is_empty() {
        return prop_oneof![12 => contract, 7 => delay, 1 => signal].boxed();
    }
    let further = prop::sample::select(further).prop_map(Kill::Point);
    prop_oneof![8 => contract, 6 => further, 5 => delay, 1 => signal].boxed()
}

/// What the agent declares beyond the contract, at the steps where it can be.
fn further_points(tools: &[String], target: &Target, log: bool) -> Vec<CrashPoint> {
    let Some(inventory) = &target.inventory else {
        return Vec::new();
    };
    let mut points = Vec::new();
    let of_log = if log { &inventory.further_crash_points[..] } else { &[] };
    for site in inventory.crash_points.iter().chain(of_log) {
        match site.scope.as_str() {
            "run" => points.push(CrashPoint { site: site.site.clone(), step: None, hit: 1 }),
            _ => points.extend((0..tools.len()).map(|step| CrashPoint::new(&site.site, step))),
        }
    }
    for (step, tool) in tools.iter().enumerate() {
        let own = target.tool(tool).map_or(&[][..], |facts| &facts.crash_points);
        points.extend(own.iter().map(|site| CrashPoint::new(site, step)));
    }
    points.retain(|point| !point.is_of_contract());
    points
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_agent_is_played_with_fewer_cases() {
        assert_eq!((bearable(0.005), bearable(0.12), bearable(60.0)), (256, 96, 48));
    }
    use crate::judge::verdict::Verdict;

    fn case() -> Case {
        Case { plan: RandomPlan::fixed(), company: Company(None), kills: KillSchedule::default() }
    }

    fn failed() -> Played {
        let mut played = Played::default();
        played.and("any", Verdict::Violated("no".to_owned()));
        played
    }

    /// Shrinking went on for minutes, and proptest told its bound to the user's terminal when it came to it.
    #[test]
    fn shrinking_is_bounded_in_cases_and_in_time_and_searching_is_not() {
        let mut hunt = Hunt::default();
        for _ in 0..2 * MAX_SHRINKS {
            assert!(!hunt.is_over() && hunt.take(case(), Played::default()).is_ok());
        }
        assert!(hunt.take(case(), failed()).is_err());
        assert_eq!((0..2 * MAX_SHRINKS).filter(|_| !hunt.is_over()).count(), MAX_SHRINKS as usize);

        let mut hunt = Hunt::default();
        assert!(hunt.take(case(), failed()).is_err());
        assert!(!hunt.is_over());
        hunt.since = Instant::now().checked_sub(2 * MAX_SHRINKING);
        assert!(hunt.since.is_none() || hunt.is_over());
    }

    #[test]
    fn proptest_comes_to_its_end_when_every_further_case_is_said_to_hold() {
        let left = RefCell::new(3);
        let test = |_: Vec<u64>| match *left.borrow() {
            0 => Ok(()),
            _ => {
                *left.borrow_mut() -= 1;
                Err(TestCaseError::fail("no"))
            }
        };
        let config = Config { max_shrink_iters: u32::MAX - 1, failure_persistence: None, ..Config::default() };
        let values = prop::collection::vec(any::<u64>(), 4..8).prop_flat_map(|many| Just(many).prop_shuffle());
        assert!(matches!(TestRunner::new(config).run(&values, test), Err(TestError::Fail(..))));
    }
}

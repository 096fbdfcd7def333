//! One whole run of the lab: every plan made ready, every method played, within a budget, and the one word that comes
//! of it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::agent::live;
use crate::agent::process::now;
use crate::agent::target::ToolFacts;
use crate::case::plan::PlanCase;
use crate::case::world;
use crate::error::LabError;
use crate::judge::verdict::VerdictKind;
use crate::look::lab::Lab;
use crate::method::{self, BASELINE, RUNS_CLEAN};
use crate::play::method::Method;
use crate::play::pool::{parallel, parallel_while};
use crate::play::prepared::Prepared;
use crate::play::scenario::{Done, Scenario};
use crate::report::model::{Conclusion, ControlReport, MethodReport, RunReport, SCHEMA, ScenarioReport};
use crate::run::exit::Exit;
use crate::run::gate::{self, Gate};

/// Methods whose cycles per second are the lab's figure.
const TIMED: [&str; 2] = ["points", "nested"];

/// When a quick run shall have come to its end, some of the last scenarios and the report included.
const QUICK: Duration = Duration::from_secs(22);

/// Methods with scenarios that each take long: a quick run leaves them for the end, where they take time from no other.
const LONG: [&str; 3] = ["random", "large", "fuzz"];

/// How much of everything is played.
pub struct Options {
    /// Scenarios side by side.
    pub jobs: usize,
    /// The time after which no further scenario is begun.
    pub budget: Option<Duration>,
    /// Whether each method plays only as many scenarios as fit into its share of a short time.
    pub quick: bool,
    /// Whether no further scenario is begun after the first one that fails.
    pub fail_fast: bool,
    /// Which part of the scenarios is played here.
    pub shard: Shard,
    /// The methods, in the order in which they are played.
    pub methods: Vec<&'static Method>,
    /// The pinned inventory, where it is to be checked.
    pub gate: Option<Gate>,
}

impl Options {
    /// How many methods are played, with the one that all others are compared with.
    fn count(&self) -> usize {
        self.methods.iter().filter(|method| method.name != BASELINE).count() + 1
    }
}

/// Part `number` of `of`, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shard {
    /// Which part, from 1.
    pub number: usize,
    /// How many parts there are.
    pub of: usize,
}

impl Shard {
    /// Everything.
    pub const WHOLE: Self = Self { number: 1, of: 1 };

    /// Whether the scenario at this place of the whole list belongs to the part. Neighbours go to different parts, so
    /// that all parts take about as long.
    #[must_use]
    pub fn has(self, index: usize) -> bool {
        index % self.of == self.number - 1
    }
}

/// What a run tells while it is at work.
pub enum Progress<'a> {
    /// A plan is made ready.
    Preparing(&'a str),
    /// A method begins: its place among all, from 1, how many there are, and its scenarios.
    Begins(&'a str, (usize, usize), usize),
    /// A scenario has been played.
    Played(&'a ScenarioReport),
    /// A method has come to its end; with everything so far.
    Ended(&'a MethodReport, &'a RunReport),
    /// A scenario has failed. Everything so far, in the form in which it would be left if the lab ended now.
    SoFar(&'a RunReport),
}

/// Listens to [`Progress`]; called from several threads.
pub type Listener<'a> = &'a (dyn Fn(&Progress<'_>) + Sync);

/// Plays everything that is selected.
///
/// # Errors
/// The lab's own failures: then there is no verdict.
pub fn run(
    lab: &Arc<Lab>,
    plans: &[Arc<PlanCase>],
    options: &Options,
    tell: Listener<'_>,
) -> Result<RunReport, LabError> {
    let mut run = Run::new(lab, options);
    run.plans.extend(plans.iter().map(|case| case.name.clone()));
    let mut prepared = run.prepare(plans, tell)?;
    if prepared.iter().all(|ready| !ready.discovery.records) {
        let why = "crash points beyond the contract's, because the agent does not write `AGENT_CRASH_RECORD`";
        run.not_applicable.push(why.to_owned());
    }
    // Where a clean run fails, nothing else is told, and one plan is enough to tell it.
    if let Some(broken) = prepared.iter().find(|ready| !ready.is_sound()).cloned() {
        prepared = vec![broken];
    }
    run.play(method_named(BASELINE)?, &prepared, Shard::WHOLE, tell)?;
    if run.scenarios.iter().any(failed) {
        // A run that came to its end and shows a bug has been judged; there is nothing to compare with all the same.
        let broken = run.scenarios.iter().any(cannot_be_judged);
        run.cut_short = (!broken).then(|| "the clean run shows it already, nothing was killed".to_owned());
        let outcome = if broken { Conclusion::BaselineFailed } else { Conclusion::Violated };
        return Ok(run.finish(Some(outcome), None));
    }
    let mut first = 0;
    let mut selected = 0;
    let mut methods: Vec<&Method> = options.methods.iter().copied().filter(|method| method.name != BASELINE).collect();
    if options.quick {
        methods.sort_by_key(|method| LONG.contains(&method.name));
    }
    for method in methods {
        let count = run.play(method, &prepared, options.shard, tell)?;
        selected += count.played;
        first += count.all;
        run.offset = first;
    }
    let only_baseline = options.methods.iter().all(|method| method.name == BASELINE);
    if selected == 0 && !only_baseline && run.cut_short.is_none() {
        run.cut_short = Some("nothing was selected: no scenario fits".to_owned());
    }
    let gate = match &options.gate {
        Some(pinned) => Some(gate::check(pinned, lab, &prepared, &run.controls)?),
        None => None,
    };
    Ok(run.finish(None, gate))
}

/// Every scenario that [`run`] would play, in its order.
///
/// # Errors
/// The lab's own failures.
pub fn list(
    lab: &Arc<Lab>,
    plans: &[Arc<PlanCase>],
    options: &Options,
    tell: Listener<'_>,
) -> Result<Vec<Scenario>, LabError> {
    let mut all = Vec::new();
    let prepared = Run::new(lab, options).prepare(plans, tell)?;
    let mut index = 0;
    for method in &options.methods {
        for ready in &prepared {
            let scenarios = method::scenarios_for(method, ready)?;
            if method.name == BASELINE {
                all.extend(scenarios);
                continue;
            }
            for scenario in scenarios {
                if options.shard.has(index) {
                    all.push(scenario);
                }
                index += 1;
            }
        }
    }
    Ok(all)
}

fn method_named(name: &str) -> Result<&'static Method, LabError> {
    method::named(name).ok_or_else(|| LabError::Internal(format!("there is no method {name}")))
}

fn failed(report: &ScenarioReport) -> bool {
    report.verdict != VerdictKind::Holds
}

/// Whether a clean run did not come to where it could be judged.
#[must_use]
pub fn cannot_be_judged(report: &ScenarioReport) -> bool {
    report.findings.iter().any(|finding| finding.property == RUNS_CLEAN)
}

struct Count {
    all: usize,
    played: usize,
}

#[derive(Clone)]
struct Run<'a> {
    lab: &'a Arc<Lab>,
    options: &'a Options,
    begin: Instant,
    started_at: f64,
    plans: Vec<String>,
    offset: usize,
    methods: Vec<MethodReport>,
    scenarios: Vec<ScenarioReport>,
    controls: Vec<ControlReport>,
    cut_short: Option<String>,
    sample_of: Option<usize>,
    not_applicable: Vec<String>,
}

impl<'a> Run<'a> {
    fn new(lab: &'a Arc<Lab>, options: &'a Options) -> Self {
        Self {
            lab,
            options,
            begin: Instant::now(),
            started_at: now(),
            plans: Vec::new(),
            offset: 0,
            methods: Vec::new(),
            scenarios: Vec::new(),
            controls: Vec::new(),
            cut_short: None,
            sample_of: options.quick.then_some(0),
            not_applicable: missing(lab),
        }
    }

    /// Makes every plan ready; the row in the table says how long that takes.
    fn prepare(&mut self, plans: &[Arc<PlanCase>], tell: Listener<'_>) -> Result<Vec<Arc<Prepared>>, LabError> {
        let begin = Instant::now();
        let prepared = parallel(self.options.jobs, plans, |case| {
            tell(&Progress::Preparing(&case.name));
            Prepared::prepare(self.lab, case, self.options.jobs.div_ceil(plans.len())).map(Arc::new)
        })?;
        self.methods.push(MethodReport {
            name: "prepare".to_owned(),
            duration_s: begin.elapsed().as_secs_f64(),
            ..MethodReport::default()
        });
        Ok(prepared)
    }

    /// Plays one method on every plan.
    fn play(
        &mut self,
        method: &Method,
        prepared: &[Arc<Prepared>],
        shard: Shard,
        tell: Listener<'_>,
    ) -> Result<Count, LabError> {
        let begin = Instant::now();
        let share = self.share();
        // Tapes are recorded here, side by side.
        let scenarios = parallel(self.options.jobs, prepared, |ready| method::scenarios_for(method, ready))?;
        let scenarios: Vec<Scenario> = scenarios.into_iter().flatten().collect();
        self.note_not_applicable(method, prepared);
        let all = scenarios.len();
        let offset = self.offset;
        let mut chosen: Vec<Scenario> = scenarios
            .into_iter()
            .enumerate()
            .filter(|(i, _)| shard.has(offset + i))
            .map(|(_, scenario)| scenario)
            .collect();
        if share.is_some() {
            chosen = spread(chosen);
        }
        tell(&Progress::Begins(method.name, (self.methods.len(), self.options.count()), chosen.len()));
        // A failure of an earlier method counts as well.
        let stopped = AtomicBool::new(self.options.fail_fast && self.scenarios.iter().any(failed));
        let in_budget = || self.options.budget.is_none_or(|b| self.begin.elapsed() < b);
        let begun = AtomicUsize::new(0);
        // What was made ready is shown to be of use: a tape takes longer than a scenario.
        let is_first = || begun.fetch_add(1, Ordering::Relaxed) < self.options.jobs && !LONG.contains(&method.name);
        let in_share = || share.is_none_or(|share| begin.elapsed() < share || is_first());
        let go_on = || in_budget() && in_share() && !stopped.load(Ordering::Relaxed);
        let finished = Mutex::new(Vec::new());
        let results = parallel_while(self.options.jobs, &chosen, go_on, |scenario| {
            let done = scenario.report(|subject| self.lab.replay_command(subject))?;
            live::played();
            tell(&Progress::Played(&done.report));
            if failed(&done.report) {
                stopped.fetch_or(self.options.fail_fast, Ordering::Relaxed);
                // A lab that is stopped or dies leaves the failures that it had.
                let mut finished = finished.lock().map_err(|_| LabError::poisoned())?;
                finished.push(done.report.clone());
                tell(&Progress::SoFar(&self.so_far(&finished)));
            }
            Ok(done)
        })?;
        let played: Vec<Done> = results.into_iter().flatten().collect();
        let (count, of) = (played.len(), chosen.len());
        if let (true, Some(sample_of)) = (share.is_some(), &mut self.sample_of) {
            *sample_of += of;
        } else if count < of {
            let reason = if in_budget() { "the first failure ended the run" } else { "the budget ended" };
            let why = format!("{reason} in `{}`, {count} of {of} scenarios in", method.name);
            self.cut_short.get_or_insert(why);
        }
        self.sum_up(method, played, begin.elapsed());
        if let Some(ended) = self.methods.last() {
            tell(&Progress::Ended(ended, &self.so_far(&[])));
        }
        Ok(Count { all, played: count })
    }

    /// What a method may take of the time that a quick run has left; none where it may take as long as it likes.
    fn share(&self) -> Option<Duration> {
        let left = u32::try_from(self.options.count().saturating_sub(self.methods.len() - 1)).unwrap_or(1);
        self.options.quick.then(|| QUICK.saturating_sub(self.begin.elapsed()) / left.max(1))
    }

    /// Says once for each reason to which plans the method does not apply.
    fn note_not_applicable(&mut self, method: &Method, prepared: &[Arc<Prepared>]) {
        let mut plans: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for ready in prepared {
            if let Some(why) = method::why_not_ready(method, ready) {
                plans.entry(why).or_default().push(&ready.case.name);
            }
        }
        let told = plans.iter().map(|(why, plans)| format!("{} to {}, because {why}", method.name, plans.join(", ")));
        self.not_applicable.extend(told);
    }

    fn sum_up(&mut self, method: &Method, played: Vec<Done>, time: Duration) {
        let with = |verdict| {
            let same = played.iter().filter(|done| done.report.verdict == verdict);
            same.count()
        };
        self.methods.push(MethodReport {
            name: method.name.to_owned(),
            scenarios: played.len(),
            held: with(VerdictKind::Holds),
            violated: with(VerdictKind::Violated),
            not_reached: with(VerdictKind::NotReached),
            cycles: played.iter().map(|done| done.report.cycles).sum(),
            unreachable: played.iter().filter(|done| done.unreachable).count(),
            duration_s: time.as_secs_f64(),
        });
        for mut done in played {
            // One of a kind is enough to show how it goes; what failed is shown whole.
            let known = |known: &ScenarioReport| known.method == done.report.method && known.plan == done.report.plan;
            if !failed(&done.report) && self.scenarios.iter().any(known) {
                done.report.timeline.clear();
                // Its id is enough to play it again.
                done.report.replay.clear();
            }
            self.scenarios.push(done.report);
            self.controls.extend(done.control);
        }
    }

    /// The report that is left if the lab ends now, with these scenarios of the present method.
    fn so_far(&self, more: &[ScenarioReport]) -> RunReport {
        let mut now = self.clone();
        now.scenarios.extend(more.iter().cloned());
        now.cut_short.get_or_insert("the lab was ended before it had played everything".to_owned());
        now.finish(None, None)
    }

    fn finish(self, known: Option<Conclusion>, gate: Option<crate::report::model::GateReport>) -> RunReport {
        let silent = |control: &ControlReport| control.must_bite && !control.bit;
        let shut = gate.as_ref().is_some_and(|gate| !gate.open);
        // A silent control is a failed scenario too; it has a code of its own.
        let silent_ids: Vec<&String> = self.controls.iter().filter(|c| silent(c)).map(|c| &c.scenario).collect();
        let violated = self.scenarios.iter().any(|report| failed(report) && !silent_ids.contains(&&report.id));
        let outcome = known.unwrap_or(if violated || (shut && silent_ids.is_empty()) {
            Conclusion::Violated
        } else if !silent_ids.is_empty() {
            Conclusion::ControlSilent
        } else if self.cut_short.is_some() {
            Conclusion::CutShort
        } else {
            Conclusion::Held
        });
        RunReport {
            schema: SCHEMA,
            agent: self.lab.target.given.clone(),
            plans: self.plans,
            seed: self.lab.seed,
            jobs: self.options.jobs,
            started_at: self.started_at,
            duration_s: self.begin.elapsed().as_secs_f64(),
            cycles: self.methods.iter().map(|method| method.cycles).sum(),
            cycles_per_second: speed(&self.methods),
            outcome,
            exit_code: Exit::from(outcome).code(),
            cut_short: self.cut_short,
            sample_of: self.sample_of,
            not_applicable: self.not_applicable,
            methods: self.methods,
            scenarios: self.scenarios,
            controls: self.controls,
            gate,
        }
    }
}

/// The same in an order in which each beginning is spread over the whole: first the one in the middle, then those of
/// the quarters, and so on.
fn spread<T>(all: Vec<T>) -> Vec<T> {
    let bits = usize::BITS - all.len().leading_zeros();
    let place = |at: usize| (at + 1).reverse_bits() >> (usize::BITS - bits);
    let mut all: Vec<(usize, T)> = all.into_iter().enumerate().map(|(at, one)| (place(at), one)).collect();
    all.sort_by_key(|(place, _)| *place);
    all.into_iter().map(|(_, one)| one).collect()
}

/// What an agent need not offer, and what the lab leaves out where it does not.
fn missing(lab: &Lab) -> Vec<String> {
    let by_inventory = "the tools' own examples and the control by keys, because the agent has no `tools --json`";
    let Some(inventory) = &lab.target.inventory else { return vec![by_inventory.to_owned()] };
    let world = world::why_not(&lab.target).map(|why| format!("the effects in the world, because {why}"));
    let needs = |tool: &ToolFacts| {
        Some(format!("the example of `{}`, because it needs {}", tool.name, tool.example.needs.as_ref()?))
    };
    inventory.tools.iter().filter_map(needs).chain(world).collect()
}

fn speed(methods: &[MethodReport]) -> Option<f64> {
    let timed = methods.iter().filter(|method| TIMED.contains(&method.name.as_str()));
    let (cycles, time) =
        timed.fold((0, 0.0), |(cycles, time), method| (cycles + method.cycles, time + method.duration_s));
    (cycles > 0 && time > 0.0).then(|| cycles as f64 / time)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_beginning_of_a_spread_order_is_spread_over_the_whole() {
        let order = spread((1..16).collect());
        assert_eq!(order[..3], [8, 4, 12]);
        let mut all = order.clone();
        all.sort_unstable();
        assert_eq!(all, (1..16).collect::<Vec<_>>());
        assert!(spread(Vec::<u8>::new()).is_empty());
    }

    #[test]
    fn shards_share_the_whole_without_gap_or_overlap() {
        for of in 1..6 {
            for index in 0..40 {
                let owners = (1..=of).filter(|&number| Shard { number, of }.has(index));
                assert_eq!(owners.count(), 1, "index {index} of {of} parts");
            }
        }
    }
}

//! The commands behind the command line.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::cli::args::{self, Command, ReplayArgs, RunArgs, Setup};
use crate::cli::parts::{print, printed};
use crate::cli::progress;
use crate::error::LabError;
use crate::judge::verdict::VerdictKind;
use crate::method;
use crate::play::method::Method;
use crate::play::scenario::Scenario;
use crate::report;
use crate::report::model::ScenarioReport;
use crate::run::exit::Exit;
use crate::run::replay::replay;
use crate::run::runner::{self, Progress};

/// Does what the command line says; the exit code.
///
/// # Errors
/// Usage, and the lab's own failures.
pub fn dispatch(command: Command) -> Result<i32, LabError> {
    match command {
        Command::Run(args) => run(&args),
        Command::List(args) => list(&args),
        Command::Replay(args) => replay_one(&args),
        Command::Tool(args) => super::tool::measure(&args),
        Command::Ledger(args) => super::ledger::serve(&args),
        Command::BecomeTraced { words } => crate::trace::become_traced(&words).map(|()| 0),
        Command::Report { dir, json } => show(&dir, json),
    }
}

fn run(args: &RunArgs) -> Result<i32, LabError> {
    let options = args.options()?;
    if let Some(dir) = &args.out {
        report::prepare(dir)?;
    }
    let setup = args.target.setup()?;
    let bar = progress::Bar::new();
    let keep = Keeper::new(args.out.as_deref());
    let report = runner::run(&setup.lab, &setup.plans, &options, &|told| {
        // What is told of a method is kept by then.
        keep.tell(told);
        bar.tell(told);
    })?;
    bar.close();
    // First what people wait for: a full disk must not hide the verdict.
    let github = args::github();
    if args.json {
        print(&report::json(&report)?)?;
    } else {
        print(&report::summary(&report))?;
    }
    if github.annotations {
        annotate(&report::annotations(&report), args.json)?;
    }
    if let Some(dir) = &args.out {
        report::write(dir, &report)?;
    }
    if let Some(file) = &github.summary {
        report::append_summary(file, &report::markdown(&report))?;
    }
    Ok(report.exit_code)
}

/// Keeps the report of what there is so far: a lab that is stopped, or dies, leaves it.
struct Keeper<'a> {
    dir: Option<&'a Path>,
    /// When it was written last, by one thread at a time.
    last: Mutex<Option<Instant>>,
}

impl<'a> Keeper<'a> {
    /// Between two of its reports while failures come; writing must not cost more than playing.
    const PAUSE: Duration = Duration::from_secs(1);

    fn new(dir: Option<&'a Path>) -> Self {
        Self { dir, last: Mutex::default() }
    }

    fn tell(&self, told: &Progress<'_>) {
        let (report, pause) = match told {
            Progress::Ended(_, report) => (report, Duration::ZERO),
            Progress::SoFar(report) => (report, Self::PAUSE),
            _ => return,
        };
        let (Some(dir), Ok(mut last)) = (self.dir, self.last.lock()) else { return };
        if last.is_none_or(|last| last.elapsed() > pause) {
            // What cannot be written now is an error in the end, where it is written for good.
            let _ = report::write(dir, report);
            *last = Some(Instant::now());
        }
    }
}

fn list(args: &RunArgs) -> Result<i32, LabError> {
    let options = args.options()?;
    let setup = args.target.setup()?;
    let scenarios = runner::list(&setup.lab, &setup.plans, &options, &|_| {})?;
    print(&listed(&options.methods, &setup, &scenarios))?;
    if scenarios.is_empty() {
        return Ok(Exit::CutShort.code());
    }
    Ok(0)
}

fn listed(methods: &[&Method], setup: &Setup, scenarios: &[Scenario]) -> String {
    let mut text = String::new();
    for method in methods {
        let own: Vec<_> = scenarios.iter().filter(|s| s.method == method.name).collect();
        let _ = writeln!(text, "{} ({}): {}", method.name, own.len(), method.about);
        for scenario in own {
            let _ = writeln!(text, "  {}  {}", scenario.id, scenario.title);
        }
        for case in &setup.plans {
            if let Some(why) = method::why_not(method, &setup.lab.target, case) {
                let _ = writeln!(text, "  not applicable to {}, because {why}", case.name);
            }
        }
    }
    let _ = writeln!(text, "{} scenarios", scenarios.len());
    text
}

fn replay_one(args: &ReplayArgs) -> Result<i32, LabError> {
    let setup = args.target.setup()?;
    let done = replay(&setup.lab, &setup.plans, &args.subject, 1)?;
    let silent = done.control.is_some_and(|control| control.must_bite && !control.bit);
    let report = done.report;
    if args.json {
        print(&report::json(&report)?)?;
    } else {
        print(&told_in_full(&report))?;
    }
    Ok(match report.verdict {
        VerdictKind::Holds => Exit::Held.code(),
        _ if runner::cannot_be_judged(&report) => Exit::BaselineFailed.code(),
        _ if silent => Exit::ControlSilent.code(),
        _ => Exit::Violated.code(),
    })
}

fn told_in_full(report: &ScenarioReport) -> String {
    let mut text = String::new();
    for run in &report.timeline {
        let time = (run.ended_at - run.started_at) * 1000.0;
        let _ = writeln!(text, "{}: {} after {time:.1} ms", run.run, run.ended);
        for event in &run.events {
            let step = event.step.map_or(String::new(), |step| format!(":{step}"));
            let at = (event.ts - run.started_at) * 1000.0;
            let _ = writeln!(text, "  {at:>9.1} ms  {}{step}", event.kind);
        }
    }
    if report.verdict == VerdictKind::Holds {
        let _ = writeln!(text, "held {}: {}", report.id, report.title);
    } else {
        text += &report::failure_in_full(report);
    }
    if let Some(note) = &report.note {
        let _ = writeln!(text, "  {note}");
    }
    text
}

fn show(dir: &Path, as_json: bool) -> Result<i32, LabError> {
    let report = report::load(dir)?;
    if as_json {
        print(&report::json(&report)?)?;
    } else {
        print(&report::summary(&report))?;
    }
    report::render(dir, &report)?;
    Ok(report.exit_code)
}

/// GitHub reads both outputs; beside a JSON document there is only one free.
fn annotate(text: &str, beside_json: bool) -> Result<(), LabError> {
    if beside_json { printed(anstream::stderr().write_all(text.as_bytes())) } else { print(text) }
}

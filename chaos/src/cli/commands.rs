//! The commands behind the command line.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;

use crate::case::plan::PlanCase;
use crate::cli::args::{self, Command, ReplayArgs, RunArgs};
use crate::cli::progress;
use crate::error::LabError;
use crate::judge::verdict::VerdictKind;
use crate::method::{self, BASELINE};
use crate::play::method::Method;
use crate::play::scenario::Scenario;
use crate::report;
use crate::report::model::ScenarioReport;
use crate::run::exit::Exit;
use crate::run::replay::replay;
use crate::run::runner;

/// Does what the command line says; the exit code.
///
/// # Errors
/// Usage, and the lab's own failures.
pub fn dispatch(command: Command) -> Result<i32, LabError> {
    match command {
        Command::Run(args) => run(&args),
        Command::List(args) => list(&args),
        Command::Replay(args) => replay_one(&args),
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
    let report = runner::run(&setup.lab, &setup.plans, &options, &|told| bar.tell(told))?;
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

fn list(args: &RunArgs) -> Result<i32, LabError> {
    let options = args.options()?;
    let setup = args.target.setup()?;
    let scenarios = runner::list(&setup.lab, &setup.plans, &options, &|_| {})?;
    print(&listed(&options.methods, &setup.plans, &scenarios))?;
    if scenarios.is_empty() {
        return Ok(Exit::CutShort.code());
    }
    Ok(0)
}

fn listed(methods: &[&Method], plans: &[Arc<PlanCase>], scenarios: &[Scenario]) -> String {
    let mut text = String::new();
    for method in methods {
        let own: Vec<_> = scenarios.iter().filter(|s| s.method == method.name).collect();
        let _ = writeln!(text, "{} ({}): {}", method.name, own.len(), method.about);
        for scenario in own {
            let _ = writeln!(text, "  {}  {}", scenario.id, scenario.title);
        }
        let why_not = |case: &Arc<PlanCase>| Some((case.name.clone(), method::why_not(method, case)?));
        for (name, why) in plans.iter().filter_map(why_not) {
            let _ = writeln!(text, "not {name}: {why}");
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
        _ if report.method == BASELINE => Exit::BaselineFailed.code(),
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

/// Prints; a reader that has gone away is not the lab's failure.
fn print(text: &str) -> Result<(), LabError> {
    crate::agent::live::pass();
    printed(anstream::stdout().write_all(text.as_bytes()))
}

/// GitHub reads both outputs; beside a JSON document there is only one free.
fn annotate(text: &str, beside_json: bool) -> Result<(), LabError> {
    if beside_json { printed(anstream::stderr().write_all(text.as_bytes())) } else { print(text) }
}

fn printed(written: std::io::Result<()>) -> Result<(), LabError> {
    match written {
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => Err(LabError::Internal(format!("cannot print: {e}"))),
        _ => Ok(()),
    }
}

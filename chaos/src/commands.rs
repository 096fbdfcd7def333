//! The commands behind the command line.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;

use crate::cli::{Command, ReplayArgs, RunArgs};
use crate::error::LabError;
use crate::exit::Exit;
use crate::method::Method;
use crate::progress;
use crate::replay::replay;
use crate::report;
use crate::report::model::{FILE_NAME, RunReport, ScenarioReport, VerdictKind};
use crate::runner;
use crate::scenario::Scenario;

/// Does what the command line says; the exit code.
///
/// # Errors
/// Usage, and the lab's own failures.
pub fn dispatch(command: Command) -> Result<i32, LabError> {
    match command {
        Command::Run(args) => run(&args),
        Command::List(args) => list(&args),
        Command::Replay(args) => replay_one(&args),
        Command::Report { dir, json } => show(&dir, json),
    }
}

fn run(args: &RunArgs) -> Result<i32, LabError> {
    let options = args.options()?;
    let setup = args.target.setup()?;
    let bar = progress::Bar::new();
    let report = runner::run(&setup.lab, &setup.plans, &options, &|told| bar.tell(told))?;
    bar.close();
    if let Some(dir) = &args.out {
        write(dir, &report)?;
    }
    if args.json {
        print(&(json(&report)? + "\n"))?;
    } else {
        print(&report::summary(&report))?;
    }
    Ok(report.exit_code)
}

fn list(args: &RunArgs) -> Result<i32, LabError> {
    let options = args.options()?;
    let setup = args.target.setup()?;
    let scenarios = runner::list(&setup.lab, &setup.plans, &options, &|_| {})?;
    print(&listed(&options.methods, &scenarios))?;
    if scenarios.is_empty() {
        return Ok(Exit::CutShort.code());
    }
    Ok(0)
}

fn listed(methods: &[&Method], scenarios: &[Scenario]) -> String {
    let mut text = String::new();
    for method in methods {
        let own: Vec<_> = scenarios.iter().filter(|s| s.method == method.name).collect();
        let _ = writeln!(text, "{} ({}): {}", method.name, own.len(), method.about);
        for scenario in own {
            let _ = writeln!(text, "  {}  {}", scenario.id, scenario.title);
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
        print(&(json(&report)? + "\n"))?;
    } else {
        print(&told_in_full(&report))?;
    }
    Ok(match report.verdict {
        VerdictKind::Holds => 0,
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
        text += &report::failure(report);
    }
    if let Some(note) = &report.note {
        let _ = writeln!(text, "  {note}");
    }
    text
}

fn show(dir: &Path, as_json: bool) -> Result<i32, LabError> {
    let file = dir.join(FILE_NAME);
    let bad = |why: String| LabError::Usage(format!("cannot read {}: {why}", file.display()));
    let text = std::fs::read_to_string(&file).map_err(|e| bad(e.to_string()))?;
    let report: RunReport = serde_json::from_str(&text).map_err(|e| bad(e.to_string()))?;
    if as_json {
        print(&text)?;
    } else {
        print(&report::summary(&report))?;
    }
    Ok(report.exit_code)
}

fn write(dir: &Path, report: &RunReport) -> Result<(), LabError> {
    std::fs::create_dir_all(dir).map_err(LabError::io("create", dir))?;
    let file = dir.join(FILE_NAME);
    std::fs::write(&file, json(report)? + "\n").map_err(LabError::io("write", &file))
}

fn json<T: serde::Serialize>(value: &T) -> Result<String, LabError> {
    serde_json::to_string_pretty(value).map_err(|e| LabError::Internal(e.to_string()))
}

/// Prints; a reader that has gone away is no failure of the lab.
fn print(text: &str) -> Result<(), LabError> {
    match anstream::stdout().write_all(text.as_bytes()) {
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => Err(LabError::Internal(format!("cannot print: {e}"))),
        _ => Ok(()),
    }
}

//! Crash points, armed: what `AGENT_CRASH_AT` and `AGENT_CRASH_RECORD` ask for.

use std::fs::{self, OpenOptions};
use std::io::Write;

use store::crash::{RUN_SITES, STEP_SITES};
use store::{Crash, CrashPoint, CrashSite};
use tools::Registry;

use crate::config::Config;
use crate::exit::{Exit, Failure};
use crate::signals::kill_this_process;
use crate::{action_log, engine};

/// The crash handle of this process.
pub(crate) fn arm(config: &Config) -> Result<Crash, Failure> {
    if config.crash_at.is_none() && config.crash_record.is_none() {
        return Ok(Crash::off());
    }
    let record = match &config.crash_record {
        None => None,
        Some(path) => {
            let there = fs::metadata(path).map_or(Ok(()), |there| tools::check_appendable(there.file_type()));
            let file = there.and_then(|()| OpenOptions::new().create(true).append(true).open(path));
            let why = |error| Failure::new(Exit::Usage, format!("AGENT_CRASH_RECORD={}: {error}", path.display()));
            Some(file.map_err(why)?)
        }
    };
    let at = config.crash_at.clone();
    Ok(Crash::watching(move |point| {
        if let Some(mut file) = record.as_ref() {
            // One write per line, so that the file says what was passed even if the next instruction is the last. A
            // recording with a gap would make a crash test pass that has tested nothing.
            if let Err(error) = file.write_all(format!("{point}\n").as_bytes()) {
                let _best_effort = writeln!(anstream::stderr(), "agent: cannot write AGENT_CRASH_RECORD: {error}");
                std::process::exit(Exit::Io as i32);
            }
        }
        if at.as_ref() == Some(point) {
            kill_this_process();
        }
    }))
}

/// What a task passes on its way, as far as crash points go.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Course<'a> {
    /// The tools that its steps may call.
    pub(crate) tools: &'a Registry,
    /// How many steps its plan has.
    pub(crate) steps: u32,
    /// Whether it has an action log.
    pub(crate) log: bool,
    /// Whether it has a completion.
    pub(crate) completion: bool,
}

/// Refuses a crash point that a task can never pass. `tool_of` names the tool of a step.
pub(crate) fn check(
    point: &CrashPoint,
    course: Course<'_>,
    tool_of: impl FnOnce(u32) -> Result<String, Failure>,
) -> Result<(), Failure> {
    let refused = |why: String| Failure::new(Exit::Usage, format!("AGENT_CRASH_AT={point}: {why}"));
    let among = |sites: &[CrashSite]| sites.iter().any(|site| site.0 == point.site);
    let (log_step, log_run) = (among(action_log::STEP_SITES), among(action_log::RUN_SITES));
    if (log_step || log_run) && !course.log {
        return Err(refused("it is passed only where there is an action log, see --log".to_owned()));
    }
    let completion = among(engine::RUN_SITES);
    if completion && !course.completion {
        return Err(refused("it is passed only by tasks of `agent inbox`, which have a report".to_owned()));
    }
    let of_step = among(STEP_SITES) || log_step;
    let of_run = among(RUN_SITES) || log_run || completion;
    let steps = course.steps;
    let owner = course
        .tools
        .iter()
        .map(|tool| tool.spec())
        .find(|spec| spec.crash_points.iter().any(|site| site.0 == point.site));
    match (point.step, owner) {
        (None, _) if of_run => Ok(()),
        (None, _) if of_step || owner.is_some() => {
            Err(refused(format!("`{}` needs a step, such as {}:0", point.site, point.site)))
        }
        (Some(step), _) if (of_step || owner.is_some()) && step >= steps => {
            Err(refused(format!("the plan has {steps} steps, 0 to {}", steps.saturating_sub(1))))
        }
        (Some(_), _) if of_step => Ok(()),
        (Some(step), Some(spec)) => match tool_of(step)? {
            tool if tool == spec.name => Ok(()),
            tool => Err(refused(format!("step {step} calls {tool}, the point is in {}", spec.name))),
        },
        (Some(_), None) if of_run => Err(refused(format!("`{}` is outside the steps, leave the step out", point.site))),
        _ => Err(refused("there is no such crash point, `agent tools` lists them".to_owned())),
    }
}

//! A way through the world, for people: one action a line, with what it changed.

use std::fmt::Write as _;

use store::model::{Event, StepState};

use crate::check::Counterexample;
use crate::config::Config;
use crate::process::{Action, Job, Outcome, Pc, What, act};
use crate::state::State;

/// The counterexample: each action with what it changed, then what is broken by it.
pub(crate) fn render(config: &Config, found: &Counterexample) -> String {
    let mut text = String::new();
    let mut state = State::created(config);
    for (number, action) in (1..).zip(&found.actions) {
        let outcome = act(config, &state, *action);
        let does = says(&state, *action, &outcome);
        let changes = changes(&state, &outcome.state).join("; ");
        let line = format!("{number:>3}  {}  {does:<44}  {changes}", name(action.who));
        let _infallible = writeln!(text, "{}", line.trim_end());
        state = outcome.state;
    }
    for claim in &found.broken {
        let _infallible = writeln!(text, "     broken: {claim}");
    }
    text
}

/// Processes are called A, B, C; after its end the letter is free for the next.
fn name(who: u8) -> char {
    char::from(b'A' + who)
}

fn says(before: &State, action: Action, outcome: &Outcome) -> String {
    let runner = &before.runners[usize::from(action.who)];
    match action.what {
        What::Look | What::Speak | What::Cancel | What::Idle => {
            let started = outcome.state.runners[usize::from(action.who)].pc;
            let job = match started {
                Pc::Looked(Job::Retry) => "retry",
                Pc::Looked(Job::Cancel) => "cancel",
                Pc::Looked(Job::Speak) => "approve` or `resolve",
                _ => "run",
            };
            format!("starts `{job}`, sees the task {}", before.tables.task)
        }
        What::Tick => "time passes".to_owned(),
        What::Upgrade => "a later plan and program are installed".to_owned(),
        What::Probe => "asks whether the effect has happened".to_owned(),
        What::Blind => "asks, and nobody knows".to_owned(),
        What::Lose => "hears nothing".to_owned(),
        What::Refuse => "is refused for good".to_owned(),
        What::Defer => "is asked to come again later".to_owned(),
        What::TurnAway => "finds the lock held and ends".to_owned(),
        What::Lock => "takes the lock".to_owned(),
        What::TakeToken => format!("takes token {}", outcome.state.tables.fence),
        What::Load => format!("loads the task: {}", at(&outcome.state, action.who)),
        What::Commit => match &outcome.refused {
            Some(why) => format!("is refused ({why}) and ends"),
            None if outcome.events.is_empty() => "commits no event".to_owned(),
            None => format!("commits {}", events(&outcome.events)),
        },
        What::Send => "sends the effect".to_owned(),
        What::Answer => "hears that the effect is done".to_owned(),
        What::Err => match runner.pc {
            Pc::Sent => "hears an error, with the effect done".to_owned(),
            _ => "hears an error, with nothing done".to_owned(),
        },
        What::Stop => "is asked to stop before the effect".to_owned(),
        What::Crash => "is killed".to_owned(),
        What::Expire => "loses the lock and does not notice".to_owned(),
        What::Leave => "ends".to_owned(),
    }
}

/// The state that a process works on.
fn at(state: &State, who: u8) -> String {
    let held = &state.runners[usize::from(who)].state;
    match held.no_step_left() {
        true => format!("{}, no step left, completion {}", held.status, held.current.status),
        false => format!("{}, step {} {}", held.status, held.cursor, held.current.status),
    }
}

fn events(list: &[Event]) -> String {
    let names = list.iter().map(|event| match event {
        Event::StepStarted { step, attempt, .. } => format!("step_started {step} (attempt {attempt})"),
        Event::RunStarted { recovered, .. } if !recovered.is_empty() => {
            format!("run_started (recovered {recovered:?})")
        }
        Event::TaskRetried { step, forgiven } => {
            let what = step.map_or("the completion".to_owned(), |step| step.to_string());
            format!("task_retried {what} (forgiven {forgiven})")
        }
        other => match other.step() {
            Some(step) => format!("{} {step}", other.kind().as_str()),
            None => other.kind().as_str().to_owned(),
        },
    });
    names.collect::<Vec<_>>().join(", ")
}

/// What is different, in the tables first.
fn changes(before: &State, after: &State) -> Vec<String> {
    let mut list = Vec::new();
    if before.tables.task != after.tables.task {
        list.push(format!("task {}", after.tables.task));
    }
    for (place, (old, new)) in before.tables.places().iter().zip(after.tables.places()).enumerate() {
        if old != new {
            let is_step = place < after.tables.steps().len();
            let what = if is_step { format!("step {place}") } else { "completion".to_owned() };
            list.push(format!("{what} {}", row(new)));
        }
    }
    for (step, (old, new)) in before.effects.iter().zip(&after.effects).enumerate() {
        if old != new {
            list.push(format!("effect {step} asked for {}x, happened {}x", new.requested, new.happened()));
        }
    }
    if before.lock != after.lock {
        let holder = after.lock.map_or("free".to_owned(), |who| format!("with {}", name(who)));
        list.push(format!("lock {holder}"));
    }
    list
}

fn row(step: &StepState) -> String {
    let forgiven = if step.forgiven > 0 { format!(", {} forgiven", step.forgiven) } else { String::new() };
    format!("{}, attempts {}{forgiven}", step.status, step.attempts)
}

//! Every process ends as the contract has it. A process that was meant to be killed and ended by itself makes the
//! scenario not reached.

use nix::sys::signal::Signal;

use crate::agent::process::Ended;
use crate::contract::code::{DONE, FAILED, LOCKED, USAGE};
use crate::judge::verdict::Verdict;
use crate::look::evidence::{Baseline, Evidence, Expect, RunRecord};
use crate::schedule::Sign;

const SIGKILL: i32 = 9;

/// Words that only an unhandled error prints.
const PANICS: [&str; 2] = ["panicked at", "Traceback (most recent call last)"];

pub(super) fn check(evidence: &Evidence, _: &Baseline) -> Verdict {
    let mut violated = Vec::new();
    let mut missed = Vec::new();
    for create in &evidence.creates {
        if create.ended != Ended::Exited(DONE) {
            violated.push(format!("create: {}", create.describe()));
        }
    }
    for (i, run) in evidence.runs.iter().enumerate() {
        let label = evidence.label(i);
        match of_run(run) {
            Verdict::Holds => {}
            Verdict::Violated(why) => violated.push(format!("{label}: {why}")),
            Verdict::NotReached(why) => missed.push(format!("{label}: {why}")),
        }
    }
    if violated.is_empty() && !missed.is_empty() {
        return Verdict::NotReached(missed.join("\n"));
    }
    violated.extend(missed);
    Verdict::of(&violated)
}

fn of_run(run: &RunRecord) -> Verdict {
    let ended = run.outcome.ended;
    let said = run.outcome.describe();
    let promised = run.expect != Expect::Faulted && promises_a_message(ended);
    if let (true, Some(word)) = (promised, unhandled(&run.outcome.stderr)) {
        return Verdict::Violated(format!("{ended}, with `{word}` where the contract promises a message"));
    }
    let good = match run.expect {
        Expect::Ends(code) => ended == Ended::Exited(code),
        Expect::Dies => ended == Ended::Signaled(SIGKILL),
        Expect::MayDie => matches!(ended, Ended::Signaled(SIGKILL) | Ended::Exited(DONE)),
        Expect::Interrupted(sign) => {
            let number = number(sign);
            ended == Ended::Signaled(number) || ended == Ended::Exited(128 + number)
        }
        Expect::Refused => ended == Ended::Exited(LOCKED),
        Expect::Contends => matches!(ended, Ended::Exited(DONE | LOCKED)),
        Expect::Survives | Expect::Heard => ended == Ended::Exited(DONE),
        Expect::Faulted => ended == Ended::Exited(DONE) || run.outcome.stopped_loudly(),
    };
    if good && run.expect == Expect::Survives && !run.signalled {
        return Verdict::NotReached("it ended before it could be stopped".to_owned());
    }
    if good {
        return Verdict::Holds;
    }
    let must = match run.expect {
        Expect::Ends(code) => format!("must end with {code}"),
        Expect::Dies => "must be killed".to_owned(),
        Expect::MayDie => "must be killed or end with 0".to_owned(),
        Expect::Interrupted(sign) => format!("must end by the signal, or with {}", 128 + number(sign)),
        Expect::Refused => "must be refused with 3".to_owned(),
        Expect::Contends => "must end with 0 or 3".to_owned(),
        Expect::Survives => "must go on after SIGCONT and end with 0".to_owned(),
        Expect::Faulted => "must end with 0, or stop with a message".to_owned(),
        Expect::Heard => "must be heard and end with 0".to_owned(),
    };
    let wanted_death = matches!(run.expect, Expect::Dies | Expect::Interrupted(_));
    if wanted_death && matches!(ended, Ended::Exited(DONE | USAGE)) {
        return Verdict::NotReached(format!("the kill missed: {said}, {must}"));
    }
    Verdict::Violated(format!("{said}, {must}"))
}

/// Whether the contract has words for people at such an end: a refusal. A death by a signal is a death, whatever was
/// said before it, and what a run that goes to its end logs is its own affair.
fn promises_a_message(ended: Ended) -> bool {
    matches!(ended, Ended::Exited(code) if ![DONE, FAILED].contains(&code) && code < 128)
}

/// The word on stderr that only an unhandled error prints.
fn unhandled(stderr: &str) -> Option<&'static str> {
    PANICS.into_iter().find(|word| stderr.contains(word))
}

fn number(sign: Sign) -> i32 {
    let signal = match sign {
        Sign::Kill => Signal::SIGKILL,
        Sign::Term => Signal::SIGTERM,
        Sign::Int => Signal::SIGINT,
        Sign::Stop => Signal::SIGCONT,
    };
    signal as i32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Story, breaks, holds, misses};
    use rstest::rstest;

    #[test]
    fn death_where_death_was_meant_is_accepted() {
        holds("exit_code", &Story::killed_at("after_effect:1"));
    }

    #[test]
    fn a_kill_that_missed_is_not_reached_and_no_pass() {
        for code in [0, 64] {
            let mut story = Story::killed_at("after_effect:1");
            story.evidence.runs[0].outcome.ended = Ended::Exited(code);
            misses("exit_code", &story, "the kill missed");
        }
    }

    #[rstest]
    #[case(Expect::Ends(0), Ended::Exited(2))]
    #[case(Expect::Ends(0), Ended::Hung)]
    #[case(Expect::Ends(2), Ended::Exited(0))]
    #[case(Expect::Ends(0), Ended::Signaled(9))]
    #[case(Expect::Dies, Ended::Exited(70))]
    #[case(Expect::MayDie, Ended::Signaled(11))]
    #[case(Expect::Refused, Ended::Exited(0))]
    #[case(Expect::Contends, Ended::Exited(75))]
    #[case(Expect::Interrupted(Sign::Term), Ended::Exited(1))]
    #[case(Expect::Faulted, Ended::Hung)]
    #[case(Expect::Faulted, Ended::Exited(74))]
    #[case(Expect::Faulted, Ended::Signaled(6))]
    fn another_end_than_the_contract_has_is_rejected(#[case] expect: Expect, #[case] ended: Ended) {
        let mut story = Story::clean();
        story.evidence.runs[0].expect = expect;
        story.evidence.runs[0].outcome.ended = ended;
        breaks("exit_code", &story, "must");
    }

    #[rstest]
    #[case(Expect::Interrupted(Sign::Term), Ended::Exited(143))]
    #[case(Expect::Interrupted(Sign::Int), Ended::Signaled(2))]
    #[case(Expect::Contends, Ended::Exited(3))]
    #[case(Expect::MayDie, Ended::Exited(0))]
    #[case(Expect::Survives, Ended::Exited(0))]
    fn each_end_that_the_contract_has_is_accepted(#[case] expect: Expect, #[case] ended: Ended) {
        let mut story = Story::clean();
        story.evidence.runs[0].expect = expect;
        story.evidence.runs[0].outcome.ended = ended;
        story.evidence.runs[0].signalled = true;
        holds("exit_code", &story);
    }

    /// Agents that stopped with a traceback when the disk refused a write were accused of it, although nobody had been
    /// promised anything.
    #[rstest]
    #[case(Ended::Exited(1), "Traceback (most recent call last):\nOSError: [Errno 28] No space left on device\n")]
    #[case(Ended::Exited(101), "thread 'main' panicked at src/main.rs:1:1:\nno space\n")]
    #[case(Ended::Signaled(6), "agent: disk I/O error\n")]
    fn whoever_stops_loudly_over_a_fault_is_accepted(#[case] ended: Ended, #[case] stderr: &str) {
        let mut story = Story::clean();
        let run = &mut story.evidence.runs[0];
        (run.expect, run.outcome.ended, run.outcome.stderr) = (Expect::Faulted, ended, stderr.to_owned());
        holds("exit_code", &story);
    }

    #[test]
    fn a_process_that_was_never_stopped_has_survived_nothing() {
        let mut story = Story::clean();
        story.evidence.runs[0].expect = Expect::Survives;
        misses("exit_code", &story, "before it could be stopped");
    }

    #[test]
    fn a_failed_create_and_a_refusal_with_a_panic_are_rejected() {
        let mut story = Story::clean();
        story.evidence.creates[0].ended = Ended::Exited(1);
        breaks("exit_code", &story, "create: exit 1");
        let mut story = Story::clean();
        let run = &mut story.evidence.runs[0];
        (run.expect, run.outcome.ended) = (Expect::Refused, Ended::Exited(3));
        run.outcome.stderr = "thread main panicked at x.rs".to_owned();
        breaks("exit_code", &story, "panicked at");
    }

    /// Python tells a KeyboardInterrupt as a traceback and dies of the signal, and a logger tells each error that was
    /// handled as one. Honest agents were accused of both.
    #[rstest]
    #[case(Expect::Interrupted(Sign::Int), Ended::Signaled(2))]
    #[case(Expect::Interrupted(Sign::Term), Ended::Exited(143))]
    #[case(Expect::Ends(0), Ended::Exited(0))]
    #[case(Expect::Ends(2), Ended::Exited(2))]
    fn a_traceback_where_no_message_is_promised_is_accepted(#[case] expect: Expect, #[case] ended: Ended) {
        let mut story = Story::clean();
        let run = &mut story.evidence.runs[0];
        (run.expect, run.outcome.ended) = (expect, ended);
        run.outcome.stderr = "Traceback (most recent call last):\nKeyboardInterrupt\n".to_owned();
        holds("exit_code", &story);
    }
}

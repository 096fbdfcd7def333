//! Many people answer one question at the same moment: an approval, or a doubt. The lab holds the task's lock until all
//! of them wait for it, so that none has answered before the last one has come. One is heard; the others are refused,
//! with what the first one has said, and the run that follows uses that.

use std::fs::File;
use std::sync::Arc;
use std::time::Duration;

use nix::fcntl::{Flock, FlockArg};
use serde_json::{Value, json};

use crate::agent::process::{Ended, Env, Outcome};
use crate::case::TASK;
use crate::contract::DB_FILE;
use crate::contract::code::{DONE, PERSON, REFUSED};
use crate::error::LabError;
use crate::judge::verdict::Verdict;
use crate::look::evidence::{Expect, RunRecord, TaskEnd};
use crate::look::tables::Tables;
use crate::play::method::Method;
use crate::play::person;
use crate::play::prepared::Prepared;
use crate::play::scenario::{Played, Scenario};
use crate::play::stage::Stage;
use crate::schedule::{CrashPoint, Kill};

/// See the file's head.
pub(super) const METHOD: Method = Method {
    name: "people",
    about: "up to sixteen people answer one question at the same moment: one is heard, once",
    scenarios,
};

/// So many at once.
const CROWDS: [usize; 4] = [2, 4, 8, 16];

/// How long the last one has to come to the lock.
const COMING: Duration = Duration::from_millis(60);

fn scenarios(ready: &Arc<Prepared>) -> Result<Vec<Scenario>, LabError> {
    let scenario = |crowd: usize| {
        let title = format!("{crowd} people answer at the same moment, then it goes on");
        Scenario::new(METHOD.name, ready, &format!("{crowd} at once"), title, move |ready| play(ready, crowd))
    };
    Ok(CROWDS.into_iter().map(scenario).collect())
}

fn play(ready: &Prepared, crowd: usize) -> Result<Played, LabError> {
    let mut stage = ready.stage()?;
    if ready.case.kind.promise(0).is_some() {
        // Only what was cut is in doubt.
        let kill = Kill::Point(CrashPoint::new("after_effect", 0));
        stage.run(TASK, Some(&kill), Expect::Dies, &[])?;
    }
    let asking = stage.start(TASK, &[])?;
    stage.finish(TASK, asking, Expect::Ends(PERSON), true)?;
    let Some(words) = person::words(ready.case.kind, stage.last(), TASK) else {
        let mut missed = Played::default();
        missed.and("heard_once", Verdict::NotReached("nobody is asked".to_owned()));
        return Ok(missed);
    };
    let step = words[2].parse().unwrap_or_default();
    let outcomes = all_at_once(&mut stage, &words, crowd)?;
    let after = stage.sandbox.look()?;
    let last = outcomes.len() - 1;
    for (nth, outcome) in outcomes.iter().enumerate() {
        let heard = outcome.ended == Ended::Exited(DONE);
        stage.record(RunRecord {
            task: TASK.to_owned(),
            kill: None,
            expect: if heard { Expect::Heard } else { Expect::Ends(REFUSED) },
            outcome: outcome.clone(),
            signalled: false,
            after: (nth == last).then(|| after.clone()),
        });
    }
    stage.run(TASK, None, Expect::Ends(DONE), &[])?;
    let verdict = Verdict::of(&heard_once(&outcomes, &stage.last().tables, step));
    // Each of them says who he is, so that the output is that of one of them.
    let mut baseline = ready.baseline.clone();
    baseline.comparable[step] = false;
    let mut played = Played::judged(stage.close(TaskEnd::Done), &baseline);
    played.and("heard_once", verdict);
    Ok(played)
}

/// Why the `nth` one says what he says.
fn why(nth: usize) -> String {
    format!("person {nth}")
}

fn all_at_once(stage: &mut Stage<'_>, words: &[String], crowd: usize) -> Result<Vec<Outcome>, LabError> {
    let path = stage.sandbox.world().join(format!("{DB_FILE}.{TASK}.lock"));
    let file = File::options().append(true).open(&path).map_err(LabError::io("open", &path))?;
    let locked = Flock::lock(file, FlockArg::LockExclusiveNonblock);
    let door = locked.map_err(|(_, error)| LabError::Internal(format!("the lock of {TASK} is taken: {error}")))?;
    let mut people = Vec::new();
    for nth in 0..crowd {
        let mut words = words.to_vec();
        if let Some(last) = words.last_mut() {
            *last = why(nth);
        }
        people.push(stage.sandbox.start(&stage.lab.target, &words, &Env::new())?);
    }
    if let Some(last) = people.last_mut() {
        last.ended_within(COMING);
    }
    drop(door);
    people.into_iter().map(|person| stage.sandbox.finish(person)).collect()
}

/// What is wrong with who was heard, by their exit codes and by the journal.
fn heard_once(outcomes: &[Outcome], tables: &Tables, step: usize) -> Vec<String> {
    let mut wrong = Vec::new();
    let heard = |(_, outcome): &(usize, &Outcome)| outcome.ended == Ended::Exited(DONE);
    let winners: Vec<usize> = outcomes.iter().enumerate().filter(heard).map(|(nth, _)| nth).collect();
    if winners.len() != 1 {
        wrong.push(format!("{} of {} people were told that they were heard", winners.len(), outcomes.len()));
    }
    for (nth, outcome) in outcomes.iter().enumerate().filter(|one| !heard(one)) {
        if outcome.ended != Ended::Exited(REFUSED) || outcome.stderr.trim().is_empty() {
            wrong.push(format!("person {nth}, who was not heard: {}", outcome.describe()));
        }
    }
    let answer = |kind: &str| matches!(kind, "answer_given" | "doubt_resolved");
    let said: Vec<Value> = tables
        .events_of(TASK)
        .filter(|event| answer(&event.kind) && event.step == Some(step))
        .map(|event| event.field("why"))
        .collect();
    let due: Vec<Value> = winners.iter().map(|&nth| json!(why(nth))).collect();
    if said != due {
        wrong.push(format!("the journal has the answers {said:?}, heard were {due:?}"));
    }
    let used = tables.step(TASK, step).and_then(|row| row.output.as_ref()?.get("why").cloned());
    if used.is_some_and(|used| !due.contains(&used)) {
        wrong.push(format!("step {step} has used another answer than {due:?}"));
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Story, outcome};

    fn story() -> (Vec<Outcome>, Story) {
        let mut refused = outcome(Ended::Exited(REFUSED));
        refused.stderr = "agent: person 1 has answered".to_owned();
        let mut story = Story::clean();
        story.insert_event("answer_given", Some(1), "step_started", 1);
        story.event("answer_given", 0).data = json!({ "why": why(1) }).to_string();
        story.last().tables.steps[1].output = Some(json!({ "why": why(1) }));
        (vec![refused.clone(), outcome(Ended::Exited(DONE)), refused], story)
    }

    #[test]
    fn one_who_is_heard_is_accepted_and_two_or_none_are_rejected() {
        let (mut outcomes, mut story) = story();
        let wrong = |outcomes: &[Outcome], story: &mut Story| heard_once(outcomes, &story.last().tables, 1);
        assert_eq!(wrong(&outcomes, &mut story), Vec::<String>::new());
        outcomes[0].ended = Ended::Exited(DONE);
        assert!(wrong(&outcomes, &mut story)[0].contains("2 of 3 people"));
        outcomes[0].ended = Ended::Exited(REFUSED);
        outcomes[0].stderr.clear();
        assert!(wrong(&outcomes, &mut story)[0].contains("person 0"), "refused without a word");
    }

    #[test]
    fn an_answer_that_is_kept_twice_and_one_that_is_used_for_another_are_rejected() {
        let (outcomes, mut first) = story();
        first.insert_event("answer_given", Some(1), "step_started", 1);
        assert!(heard_once(&outcomes, &first.last().tables, 1)[0].contains("the journal has the answers"));
        let (outcomes, mut second) = story();
        second.last().tables.steps[1].output = Some(json!({ "why": why(2) }));
        assert!(heard_once(&outcomes, &second.last().tables, 1)[0].contains("used another answer"));
    }
}

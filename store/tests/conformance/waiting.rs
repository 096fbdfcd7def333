//! Waits, doubts, answers, and steps that the task is past without an output.

use std::borrow::Cow;

use serde_json::json;
use store::machine::{Budget, Command};
use store::model::{
    Digest, Effect, Event, Failure, Intent, Origin, Plan, PlanSource, PlannedStep, StepState, StepStatus, TaskId,
    TaskState, TaskStatus, Timestamp, Wait, Word,
};
use store::{Commit, ErrorKind, Reader, TaskSession};

use crate::support::{Backend, Ticking, at, begin, create, creation, id, object, plan, run_steps, session, start};

const INPUT: Digest = Digest([0xa7; 32]);

fn start_as(step: u32, effect: Effect) -> Command {
    let intent = Some(Intent { digest: INPUT, effect });
    Command::Start { step, tool: "echo".to_owned(), budget: Budget::of(9), intent }
}

fn fail(step: u32, failure: Failure) -> Command {
    Command::Fail { step, failure, goes_on: true }
}

fn ask(step: u32, expires: Option<Timestamp>) -> Command {
    Command::Wait { step, wait: Wait::Approval { expires }, shown: Some(INPUT) }
}

fn answer(step: u32, yes: bool) -> Command {
    let answer = yes.then(|| r#"{"grün":[1]}"#.to_owned());
    Command::Answer { step, answer, by: "ada".to_owned(), why: None, shown: Some(INPUT), goes_on: true }
}

fn resolve(step: u32, word: Word) -> Command {
    Command::Resolve { step, word, by: "ada".to_owned(), why: Some("seen".to_owned()), goes_on: true }
}

/// Applies it, and looks whether another handle sees the state that the session has.
fn apply(session: &mut TaskSession<'_>, other: &mut dyn Reader, command: &Command) {
    session.apply(command).unwrap();
    let task = session.task().clone();
    assert_eq!(other.load(&task).unwrap(), Some(session.state()), "after {command:?}");
    assert_eq!(store::audit::audit(other, Some(&task)).unwrap(), [], "after {command:?}");
}

pub(crate) fn every_state_comes_back_as_it_was_committed(backend: &dyn Backend) {
    let (mut store, mut other) = (backend.connect(), backend.connect());
    let task = create(&mut *store, "t", 9);
    let clock = Ticking::from(100.0);
    let mut session = session(&mut *store, &clock, &task, "r");
    let retry_at = Some(at(1_790_000_000.123_457));
    let later = Failure { unknown: true, ..Failure::plain("lost") };
    for command in [
        begin(),
        Command::Wait { step: 0, wait: Wait::Until(at(3.000_001)), shown: None },
        start_as(0, Effect::Keyed),
        fail(0, later.clone()),
        start_as(0, Effect::Keyed),
        fail(0, Failure { permanent: true, ..Failure::plain("it exists") }),
        resolve(0, Word::Absent),
        start_as(0, Effect::Keyed),
        fail(0, Failure { permanent: true, ..Failure::plain("no") }),
        Command::Skip { step: 1 },
        ask(2, None),
        answer(2, true),
        start_as(2, Effect::Once),
        Command::Finish { step: 2, tool: "echo".to_owned(), adopted: false },
    ] {
        match command {
            // An output goes with it.
            Command::Finish { .. } => drop(session.apply_with(&command, "{}".to_owned(), &mut |_| false).unwrap()),
            command => apply(&mut session, &mut *other, &command),
        }
    }
    for command in [
        ask(3, Some(at(5e9))),
        answer(3, false),
        start_as(4, Effect::Once),
        fail(4, later.clone()),
        resolve(4, Word::Abandon),
        start_as(5, Effect::Verifiable),
        fail(5, Failure { retry_at, ..later }),
        Command::Cancel { by: "ada".to_owned(), why: None },
    ] {
        apply(&mut session, &mut *other, &command);
    }
    drop(session);
    let statuses: Vec<_> = other.steps(&task, 0, 9).unwrap().iter().map(|row| row.state.status).collect();
    use StepStatus::{Done, Failed, Pending, Skipped, Waiting};
    assert_eq!(statuses, [Failed, Skipped, Done, Failed, Failed, Waiting, Pending, Pending, Pending]);
    let state = other.load(&task).unwrap().unwrap();
    assert_eq!((state.cursor, state.status), (5, TaskStatus::Cancelled));
}

/// The step that failed its task and one that was left behind look alike in their rows.
pub(crate) fn the_cursor_is_found_among_steps_that_have_failed(backend: &dyn Backend) {
    let mut store = backend.connect();
    let clock = Ticking::from(0.0);
    for failed in 0..6 {
        let task = create(&mut *store, &format!("t{failed}"), 6);
        let mut run = session(&mut *store, &clock, &task, "r");
        run.apply(&begin()).unwrap();
        let no = Failure { permanent: true, ..Failure::plain("no") };
        for step in 0..6 {
            if step == 5 - failed {
                run.apply(&Command::Skip { step }).unwrap();
                continue;
            }
            run.apply(&start(step)).unwrap();
            let goes_on = step != failed;
            run.apply(&Command::Fail { step, failure: no.clone(), goes_on }).unwrap();
            if !goes_on {
                break;
            }
        }
        let state = run.state();
        drop(run);
        assert_eq!(store.load(&task).unwrap(), Some(state));
        let over = if state.status == TaskStatus::Failed { failed } else { 6 };
        assert_eq!(state.cursor, over);
    }
}

pub(crate) fn a_word_that_it_happened_brings_its_output(backend: &dyn Backend) {
    let (mut store, mut other) = (backend.connect(), backend.connect());
    let task = create(&mut *store, "t", 1);
    let clock = Ticking::from(0.0);
    let mut session = session(&mut *store, &clock, &task, "r");
    session.apply(&begin()).unwrap();
    session.apply(&start_as(0, Effect::Once)).unwrap();
    session.apply(&fail(0, Failure { unknown: true, ..Failure::plain("lost") })).unwrap();
    assert_eq!(other.output(&task, 0).unwrap(), None);
    let output = object(json!({ "id": 7 }));
    session.apply_with(&resolve(0, Word::Happened), json!(output).to_string(), &mut |_| false).unwrap();
    assert_eq!(other.output(&task, 0).unwrap(), Some(output));
    assert_eq!(other.load(&task).unwrap(), Some(session.state()));
    session.apply(&begin()).unwrap();
    session.apply(&Command::Complete).unwrap();
    assert_eq!(store::audit::audit(&mut *other, None).unwrap(), []);
}

pub(crate) fn a_checkpoint_is_kept_until_its_step_is_done(backend: &dyn Backend) {
    let (mut store, mut other) = (backend.connect(), backend.connect());
    let task = create(&mut *store, "t", 2);
    let clock = Ticking::from(0.0);
    let mut session = session(&mut *store, &clock, &task, "r");
    let mut kept = |step: u32| other.steps(&task, step, 1).unwrap().remove(0).checkpoint;
    session.apply(&begin()).unwrap();
    session.apply(&start(0)).unwrap();
    assert_eq!(kept(0), None);
    for page in [3, 4] {
        let checkpoint = json!({ "page": page }).to_string();
        session.apply(&Command::Checkpoint { step: 0, checkpoint }).unwrap();
        assert_eq!(kept(0), Some(json!({ "page": page })));
    }
    session.apply(&fail(0, Failure::plain("no"))).unwrap();
    assert_eq!(kept(0), Some(json!({ "page": 4 })), "the next attempt is to know it");
    session.apply(&start(0)).unwrap();
    session.finish(0, "echo", object(json!({}))).unwrap();
    assert_eq!((kept(0), kept(1)), (None, None));
}

pub(crate) fn what_waits_for_a_person_is_listed_and_nothing_else(backend: &dyn Backend) {
    let (mut store, mut other) = (backend.connect(), backend.connect());
    assert!(other.questions().unwrap().is_empty());
    let clock = Ticking::from(0.0);
    let mut open = |name: &str, commands: &[Command]| {
        let task = create(&mut *store, name, 3);
        let mut session = session(&mut *store, &clock, &task, "r");
        session.apply(&begin()).unwrap();
        run_steps(&mut session, 1);
        commands.iter().for_each(|command| drop(session.apply(command).unwrap()));
    };
    let lost = Failure { unknown: true, ..Failure::plain("lost") };
    open("asks", &[ask(1, None)]);
    open("sleeps", &[Command::Wait { step: 1, wait: Wait::Until(at(9e9)), shown: None }]);
    open("runs", &[start(1)]);
    open("is in doubt", &[start_as(1, Effect::Once), fail(1, lost.clone())]);
    open("was answered", &[ask(1, None), answer(1, true)]);
    let cancel = Command::Cancel { by: "ada".to_owned(), why: None };
    open("was cancelled", &[start_as(1, Effect::Once), fail(1, lost), cancel]);

    let listed = other.questions().unwrap().into_iter().map(Result::unwrap);
    let listed: Vec<_> =
        listed.map(|found| (found.task.id.to_string(), found.step.idx, found.step.state.status)).collect();
    let expected = [("asks", StepStatus::Waiting), ("is in doubt", StepStatus::InDoubt)];
    assert_eq!(listed, expected.map(|(name, status)| (name.to_owned(), 1, status)));
    let row = other.steps(&id("was answered"), 1, 1).unwrap().remove(0);
    assert_eq!(row.answer, Some(object(json!({ "answer": { "grün": [1] }, "by": "ada", "why": null }))));
}

/// Of two people, and of two versions of a program, one acts on rows that the other has changed.
pub(crate) fn a_commit_on_another_wait_or_intent_is_a_conflict(backend: &dyn Backend) {
    let mut store = backend.connect();
    let task = create(&mut *store, "t", 1);
    let clock = Ticking::from(0.0);
    let mut session = session(&mut *store, &clock, &task, "r");
    session.apply(&begin()).unwrap();
    session.apply(&start_as(0, Effect::Keyed)).unwrap();
    session.apply(&fail(0, Failure { unknown: true, retry_at: Some(at(5.0)), ..Failure::plain("lost") })).unwrap();
    let is = session.state();
    drop(session);
    let lease = store.acquire(&task, &crate::support::run("r")).unwrap();
    let other_input = Some(Intent { digest: Digest([1; 32]), effect: Effect::Keyed });
    for (what, current) in [
        ("time", StepState { wait: Some(Wait::Until(at(6.0))), ..is.current }),
        ("input", StepState { intent: other_input, ..is.current }),
        ("answer", StepState { answered: true, ..is.current }),
        ("outcome", StepState { unknown: false, ..is.current }),
    ] {
        let before = TaskState { current, ..is };
        let event = Event::StepStarted { step: 0, tool: "echo".to_owned(), attempt: 2, intent: current.intent };
        let commit = Commit::new(lease.fence().clone(), at(7.0), before, vec![event], None).unwrap();
        assert_eq!(store.commit(&commit).unwrap_err().kind(), ErrorKind::Conflict, "{what}");
    }
    assert_eq!(store.load(&task).unwrap(), Some(is));
}

/// A plan that says more than goal and steps.
#[derive(Debug)]
struct FromFile(Plan, Origin, &'static str);

impl PlanSource for FromFile {
    fn goal(&self) -> &str {
        &self.0.goal
    }

    fn count(&self) -> u32 {
        PlanSource::count(&self.0)
    }

    fn steps(&self) -> Box<dyn Iterator<Item = Cow<'_, PlannedStep>> + '_> {
        PlanSource::steps(&self.0)
    }

    fn origin(&self) -> Origin {
        self.1.clone()
    }

    fn source(&self) -> Option<&str> {
        Some(self.2)
    }
}

pub(crate) fn what_a_plan_file_says_is_kept(backend: &dyn Backend) {
    let (mut store, mut other) = (backend.connect(), backend.connect());
    let task: TaskId = id("t");
    let origin = Origin {
        inputs: Some(object(json!({ "folder": "inbox", "n": [1, null] }))),
        labels: Some(object(json!({ "team": "ops" }))),
        digest: Some(INPUT),
        language: Some(1),
    };
    let settings = object(json!({ "id": "a", "when": "true", "retry": { "max_attempts": 6 } }));
    let mut plan = plan(2);
    plan.steps[1].settings = Some(settings.clone());
    store.commit(&creation(&task, FromFile(plan, origin.clone(), "goal: 日本\n"), "r", 1.0)).unwrap();
    let plain = create(&mut *store, "plain", 1);

    assert_eq!(other.task(&task).unwrap().unwrap().origin, origin);
    assert_eq!(other.source(&task).unwrap().as_deref(), Some("goal: 日本\n"));
    let kept: Vec<_> = other.steps(&task, 0, 9).unwrap().into_iter().map(|row| row.settings).collect();
    assert_eq!(kept, [None, Some(settings)]);
    assert_eq!(other.task(&plain).unwrap().unwrap().origin, Origin::default());
    assert_eq!((other.source(&plain).unwrap(), other.source(&id("unknown")).unwrap()), (None, None));
}

//! Storing tasks.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::{Map, Value, json};
use store::machine::Command;
use store::model::{Plan, PlanSource, PlannedStep, StepState, TaskId, TaskState, TaskStatus, Terms};
use store::{Commit, ErrorKind, TaskSession};

use crate::support::{
    Backend, Ticking, at, create, creation, everything, id, journal, object, plan, run, run_to_end, session,
};

pub(crate) fn a_new_task_has_its_row_its_steps_and_its_event(backend: &dyn Backend) {
    let mut store = backend.connect();
    let task = create(&mut *store, "t", 3);

    let row = store.task(&task).unwrap().unwrap();
    assert_eq!((row.id, row.goal.as_str(), row.status), (task.clone(), "echo 3 values", TaskStatus::Pending));
    assert_eq!((row.created_at, row.updated_at), (at(100.0), at(100.0)));
    assert_eq!(store.load(&task).unwrap(), Some(TaskState::created(3)));

    let steps = store.steps(&task, 0, 10).unwrap();
    assert_eq!(steps.iter().map(|step| step.idx).collect::<Vec<_>>(), [0, 1, 2]);
    for step in steps {
        assert_eq!((step.tool.as_str(), step.state, step.has_output), ("echo", StepState::default(), false));
        assert_eq!(step.input, object(json!({ "value": step.idx })));
    }

    let journal = journal(&mut *store, None);
    assert_eq!(journal.len(), 1);
    let entry = &journal[0];
    assert_eq!((entry.kind.as_str(), entry.step, entry.ts), ("task_created", None, at(100.0)));
    assert_eq!((&entry.task, &entry.run), (&task, &run("maker")));
    assert_eq!(entry.data, object(json!({ "steps": 3 })));
}

pub(crate) fn an_id_is_given_once_and_the_second_plan_is_not_stored(backend: &dyn Backend) {
    let mut store = backend.connect();
    let task = create(&mut *store, "t", 3);
    let before = everything(&mut *store);

    for handle in [&mut *store, &mut *backend.connect()] {
        let again = creation(&task, plan(5), "other", 200.0);
        assert_eq!(handle.commit(&again).unwrap_err().kind(), ErrorKind::Exists);
        assert_eq!(everything(handle), before);
    }
}

/// Of eight processes that made and ran the same task at once, the one that had stored it was refused: another had
/// taken the lease in between, so a process that exits as "held" had changed something.
pub(crate) fn who_creates_a_task_under_lease_holds_it_from_the_first_moment(backend: &dyn Backend) {
    let (mut store, mut other) = (backend.connect(), backend.connect());
    let (task, plan) = (id("t"), Arc::new(plan(2)));
    let clock = Ticking::from(0.0);
    let (first, second) = (run("first"), run("second"));

    let mut session = TaskSession::create(&mut *store, &clock, &task, &first, plan.clone(), None).unwrap();
    let before = everything(&mut *other);
    assert_eq!(other.acquire(&task, &second).unwrap_err().kind(), ErrorKind::Held);
    // Its row is there by now; had the second process looked a moment earlier, it would have met the lock.
    assert_eq!(other.reserve(&task, &second).unwrap_err().kind(), ErrorKind::Exists);
    assert_eq!(everything(&mut *other), before);
    run_to_end(&mut session);
    let created = &session.reader().journal(Some(&task), 0, 1).unwrap()[0];
    assert_eq!((created.kind.as_str(), &created.run), ("task_created", &first));

    session.release().unwrap();
    let new = id("u");
    let lease = store.reserve(&new, &first).unwrap();
    assert_eq!(other.reserve(&new, &second).unwrap_err().kind(), ErrorKind::Held);
    store.commit(&Commit::create(lease.fence().clone(), at(1.0), plan, None)).unwrap();
    assert_eq!(other.acquire(&new, &second).unwrap_err().kind(), ErrorKind::Held);
    let token = lease.fence().token;
    store.release(lease).unwrap();
    assert!(other.acquire(&new, &second).unwrap().fence().token > token);
}

pub(crate) fn ids_with_spaces_other_alphabets_and_200_bytes_are_kept_apart(backend: &dyn Backend) {
    let mut store = backend.connect();
    let longest_plain = "x".repeat(200);
    let longest_other = "報".repeat(66);
    let names = [
        "my task",
        "my%20task",
        "报告",
        "報告",
        "Über/..",
        "..",
        ".hidden",
        "a'b\"c;--",
        &longest_plain,
        &longest_other,
        "T",
        "t",
        "e\u{301}",
        "\u{e9}",
    ];
    let tasks: Vec<TaskId> = names.iter().map(|name| create(&mut *store, name, 1)).collect();

    // All leases at once: two ids that shared one lock would be `Held`.
    let leases: Vec<_> = tasks.iter().map(|task| store.acquire(task, &run("r")).unwrap()).collect();
    drop(leases);
    for (at, task) in tasks.iter().enumerate() {
        let row = store.task(task).unwrap().unwrap();
        assert_eq!((&row.id, row.status), (task, TaskStatus::Pending), "{}", names[at]);
        let clock = Ticking::from(0.0);
        run_to_end(&mut session(&mut *store, &clock, task, "r"));
    }
    assert_eq!(store.tasks().unwrap().len(), names.len());
    assert_eq!(store::audit::audit(&mut *store, None).unwrap(), []);
}

pub(crate) fn a_plan_comes_back_as_it_was_given(backend: &dyn Backend) {
    let input = object(json!({
        "text": "日本 \u{1F600} \"quoted\" \\ back\nslash \u{0} '';--", "nested": {"list": [1, 2.5, null, true, {"deep": []}]},
        "large": 9_007_199_254_740_993_i64, "": "an empty name",
    }));
    let tool = "no_such_tool: the store does not ask".to_owned();
    let plan = Plan { goal: "Ziel: \u{e9}\n'x'".to_owned(), steps: vec![PlannedStep::new(tool, input)] };
    let task = id("t");
    let mut store = backend.connect();
    store.commit(&creation(&task, plan.clone(), "r", 0.125)).unwrap();

    let mut other = backend.connect();
    let row = other.task(&task).unwrap().unwrap();
    assert_eq!((row.goal, row.created_at), (plan.goal.clone(), at(0.125)));
    let step = other.steps(&task, 0, 1).unwrap().remove(0);
    assert_eq!(PlannedStep::new(step.tool, step.input), plan.steps[0]);
}

/// A plan with something to do at its end.
#[derive(Debug)]
struct WithCompletion(Plan, Map<String, Value>);

impl PlanSource for WithCompletion {
    fn goal(&self) -> &str {
        &self.0.goal
    }

    fn count(&self) -> u32 {
        PlanSource::count(&self.0)
    }

    fn steps(&self) -> Box<dyn Iterator<Item = Cow<'_, PlannedStep>> + '_> {
        PlanSource::steps(&self.0)
    }

    fn completion(&self) -> Option<&Map<String, Value>> {
        Some(&self.1)
    }
}

pub(crate) fn a_completion_is_kept_and_a_plan_without_one_has_none(backend: &dyn Backend) {
    let mut store = backend.connect();
    let (with, without) = (id("with"), create(&mut *store, "without", 1));
    let completion = object(json!({ "report": "日本.json", "nested": [1, null] }));
    let plan = WithCompletion(plan(1), completion.clone());
    store.commit(&creation(&with, plan, "r", 1.0)).unwrap();
    let clock = Ticking::from(0.0);
    for _ in 0..2 {
        assert_eq!(store.completion(&with).unwrap(), Some(completion.clone()));
        assert_eq!(store.completion(&without).unwrap(), None);
        assert_eq!(store.completion(&id("unknown")).unwrap(), None);
        if store.task(&with).unwrap().unwrap().status == TaskStatus::Pending {
            run_to_end(&mut session(&mut *store, &clock, &with, "r"));
        }
    }
}

/// A plan that gives fewer steps than it has said.
#[derive(Debug)]
struct Short(Plan);

impl PlanSource for Short {
    fn goal(&self) -> &str {
        &self.0.goal
    }

    fn count(&self) -> u32 {
        PlanSource::count(&self.0) + 1
    }

    fn steps(&self) -> Box<dyn Iterator<Item = Cow<'_, PlannedStep>> + '_> {
        PlanSource::steps(&self.0)
    }
}

pub(crate) fn a_plan_that_changes_while_it_is_stored_is_not_stored(backend: &dyn Backend) {
    let mut store = backend.connect();
    let before = everything(&mut *store);
    assert_eq!(store.commit(&creation(&id("t"), Short(plan(2)), "r", 1.0)).unwrap_err().kind(), ErrorKind::Conflict);
    assert_eq!(everything(&mut *store), before);
}

pub(crate) fn a_home_is_kept_and_a_rebinding_replaces_what_it_names(backend: &dyn Backend) {
    let mut store = backend.connect();
    let (task, clock) = (id("t"), Ticking::from(0.0));
    let home = || Some("../work".to_owned());
    store::create(&mut *store, &clock, &task, Arc::new(WithCompletion(plan(1), object(json!({"a": 1})))), home())
        .unwrap();
    assert_eq!(store.task(&task).unwrap().unwrap().home, home());
    let mut session = session(&mut *store, &clock, &task, "r");
    session.apply(&Command::Rebind { home: None, completion: Some(r#"{"b":2}"#.to_owned()) }).unwrap();
    let terms = Terms { artifacts: Some("out".to_owned()), ..Terms::limit(3) };
    session.apply(&Command::Begin(terms)).unwrap();
    drop(session);
    let row = store.task(&task).unwrap().unwrap();
    assert_eq!((row.home, row.artifacts), (home(), Some("out".to_owned())));
    assert_eq!(store.completion(&task).unwrap(), Some(object(json!({"b": 2}))));
    assert_eq!(store::audit::audit(&mut *store, None).unwrap(), []);
}

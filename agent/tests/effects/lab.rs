//! Tasks whose tools do as they are told, run by the agent's own commands within this process.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use agent::{Config, Exit, Failure, Parts, Says, cancel_with, run_with, speak_with};
use fixtures::Sandbox;
use serde_json::{Map, Value, json};
use store::machine::{Budget, Command};
use store::model::{Digest, Effect, Intent, Plan, PlannedStep, RunId, TaskId, Terms};
use store::sqlite::{SqliteReader, SqliteStore};
use store::{Crash, Reader as _, Store, SystemClock, TaskSession};
use tools::{Due, Example, Input, Pause, Probe, Registry, Spec, Tool, ToolContext, ToolError};

/// What the tool does at its next call, or says at its next probe.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    Done,
    Step,
    Transient(Option<Duration>),
    Permanent,
    /// The effect happens and the reply is lost.
    Lost,
    /// The request is lost.
    NeverSent,
    /// Keeps a checkpoint, then fails.
    Checkpoint(Value),
    Happened,
    Absent,
    Unknown,
}

/// What was seen from outside.
#[derive(Default)]
pub(crate) struct Seen {
    pub(crate) effects: u32,
    pub(crate) probes: u32,
    /// What each call was told of its attempt.
    pub(crate) attempts: Vec<Value>,
}

/// One tool with an effect of a class, whose acts are a script; `approval` and `sleep` wait before it.
struct Scripted {
    spec: Spec,
    waits: Option<Pause>,
    script: Arc<Mutex<VecDeque<Act>>>,
    seen: Arc<Mutex<Seen>>,
}

impl Tool for Scripted {
    fn spec(&self) -> &Spec {
        &self.spec
    }

    fn wait(&self, _input: Input<'_>) -> Result<Option<Pause>, ToolError> {
        Ok(self.waits.clone())
    }

    fn call(&self, ctx: &ToolContext<'_>, _input: Input<'_>) -> Result<Map<String, Value>, ToolError> {
        let act = self.script.lock().unwrap().pop_front().unwrap_or(Act::Done);
        let attempt = &ctx.attempt;
        self.seen.lock().unwrap().attempts.push(json!({
            "number": attempt.number, "effect": attempt.effect.as_str(), "repeated": attempt.repeated,
            "checkpoint": attempt.checkpoint, "answer": attempt.answer,
        }));
        let happens = || self.seen.lock().unwrap().effects += 1;
        match act {
            Act::Step => Err(ToolError::step("no")),
            Act::Transient(after) => Err(ToolError::Transient { why: "busy".to_owned(), after }),
            Act::Permanent => Err(ToolError::permanent("it exists already")),
            Act::Lost => {
                happens();
                Err(ToolError::unknown("the reply was lost"))
            }
            Act::NeverSent => Err(ToolError::unknown("no answer")),
            Act::Checkpoint(value) => {
                attempt.keep.unwrap()(&value)?;
                Err(ToolError::step("stopped on the way"))
            }
            _ => {
                happens();
                Ok(attempt.answer.cloned().unwrap_or_default())
            }
        }
    }

    fn probe(&self, _ctx: &ToolContext<'_>, _input: Input<'_>) -> Result<Probe, ToolError> {
        self.seen.lock().unwrap().probes += 1;
        match self.script.lock().unwrap().pop_front() {
            Some(Act::Happened) => Ok(Probe::Happened(Map::from_iter([("found".to_owned(), json!(true))]))),
            Some(Act::Absent) => Ok(Probe::Absent),
            Some(Act::Step) => Err(ToolError::step("the server is down")),
            _ => Ok(Probe::Unknown("the server keeps no record".to_owned())),
        }
    }
}

fn scripted(name: &str, effect: Effect, waits: Option<Pause>, lab: &Lab) -> Arc<dyn Tool> {
    let spec = Spec {
        name: name.to_owned(),
        about: "Does as it is told.".to_owned(),
        effect,
        input: vec![],
        output: vec![],
        open: true,
        crash_points: vec![],
        retry: None,
        example: Example { plan: String::new(), files: vec![], needs: None },
    };
    Arc::new(Scripted { spec, waits, script: lab.script.clone(), seen: lab.seen.clone() })
}

pub(crate) struct Lab {
    sandbox: Sandbox,
    script: Arc<Mutex<VecDeque<Act>>>,
    pub(crate) seen: Arc<Mutex<Seen>>,
}

pub(crate) const TASK: &str = "t";

impl Lab {
    /// A task with these steps, each a tool and its settings, whose tools act in this order.
    pub(crate) fn new(steps: &[(&str, Value)], script: impl IntoIterator<Item = Act>) -> Self {
        let lab = Self { sandbox: Sandbox::new(), script: Arc::default(), seen: Arc::default() };
        lab.script.lock().unwrap().extend(script);
        let planned = steps.iter().map(|(tool, settings)| PlannedStep {
            settings: settings.as_object().filter(|settings| !settings.is_empty()).cloned(),
            ..PlannedStep::new(*tool, Map::new())
        });
        let plan = Plan { goal: "try".to_owned(), steps: planned.collect() };
        let home = Some(lab.sandbox.path().display().to_string());
        let mut store = SqliteStore::open_or_create(&lab.db(), Crash::off()).unwrap();
        store::create(&mut store, &SystemClock, &TaskId::new(TASK).unwrap(), Arc::new(plan), home).unwrap();
        lab
    }

    /// A task of one step.
    pub(crate) fn of(tool: &str, script: impl IntoIterator<Item = Act>) -> Self {
        Self::new(&[(tool, json!({}))], script)
    }

    pub(crate) fn db(&self) -> std::path::PathBuf {
        self.sandbox.file("state.db")
    }

    pub(crate) fn tools(&self) -> Registry {
        let mut tools = Registry::builtin();
        for effect in Effect::ALL {
            tools.add(scripted(effect.as_str(), *effect, None, self));
        }
        let approval = Pause::Approval { show: json!("Delete all?"), expires: None, schema: None };
        tools.add(scripted("approval", Effect::Pure, Some(approval), self));
        let gone = Some(Due::After(Duration::ZERO));
        let expired = Pause::Approval { show: json!("Quick!"), expires: gone, schema: None };
        tools.add(scripted("expired", Effect::Pure, Some(expired), self));
        let nap = Pause::Until(Due::After(Duration::from_millis(80)));
        tools.add(scripted("nap", Effect::Pure, Some(nap), self));
        let long = Pause::Until(Due::After(Duration::from_secs(3600)));
        tools.add(scripted("sleep", Effect::Pure, Some(long), self));
        tools
    }

    /// Calls `work` with settings and parts; `store` is put around the store.
    pub(crate) fn with<T>(
        &self,
        no_wait: bool,
        store: &dyn Fn(SqliteStore) -> Box<dyn Store>,
        work: impl FnOnce(&Config, &Parts<'_>) -> T,
    ) -> T {
        let mut config = Config::from_env().unwrap();
        config.settings.no_wait = no_wait;
        let tools = self.tools();
        let parts = Parts {
            store: &|opened, _| store(opened),
            tools: &tools,
            log: &|file| Box::new(file),
            replace: &tools::replace,
        };
        work(&config, &parts)
    }

    fn call<T>(&self, work: impl FnOnce(&Config, &Parts<'_>) -> T) -> T {
        self.with(true, &|store| Box::new(store), work)
    }

    /// `agent run --no-wait`
    pub(crate) fn run(&self) -> Exit {
        self.call(|config, parts| run_with(&self.db(), TASK, config, parts)).unwrap()
    }

    /// `agent run`
    pub(crate) fn run_and_wait(&self) -> Exit {
        let run = |config: &Config, parts: &Parts<'_>| run_with(&self.db(), TASK, config, parts);
        self.with(false, &|store| Box::new(store), run).unwrap()
    }

    pub(crate) fn say(&self, step: &str, says: Says<'_>) -> Result<Exit, Failure> {
        self.call(|config, parts| speak_with(&self.db(), TASK, step, says, Some("seen"), config, parts))
    }

    pub(crate) fn cancel(&self) -> Result<Exit, Failure> {
        self.call(|config, parts| cancel_with(&self.db(), TASK, None, config, parts))
    }

    /// Leaves the first step as a process does that is killed in its attempt.
    pub(crate) fn die_in_attempt(&self, effect: Effect) {
        let mut store = SqliteStore::open(&self.db(), Crash::off()).unwrap();
        let task = TaskId::new(TASK).unwrap();
        let mut run = TaskSession::open(&mut store, &SystemClock, &task, &RunId::from_stored("killed")).unwrap();
        let intent = (effect != Effect::Pure).then(|| Intent { digest: Digest::of(&Map::new()), effect });
        run.apply(&Command::Begin(Terms::limit(3))).unwrap();
        let tool = effect.as_str().to_owned();
        run.apply(&Command::Start { step: 0, tool, budget: Budget::of(3), intent }).unwrap();
    }

    pub(crate) fn reader(&self) -> SqliteReader {
        SqliteReader::open(&self.db()).unwrap()
    }

    /// The kinds of the events, without the creation.
    pub(crate) fn kinds(&self) -> Vec<String> {
        self.events().into_iter().map(|(kind, _)| kind).collect()
    }

    /// Kinds and data of the events, without the creation.
    pub(crate) fn events(&self) -> Vec<(String, Value)> {
        let entries = self.reader().journal(None, 0, 1000).unwrap().into_iter().skip(1);
        entries.map(|entry| (entry.kind, Value::Object(entry.data))).collect()
    }

    /// The data of the last event of a kind.
    pub(crate) fn last(&self, kind: &str) -> Value {
        self.events().into_iter().rfind(|(of, _)| of == kind).unwrap().1
    }

    pub(crate) fn output(&self, step: u32) -> Value {
        self.reader().output(&TaskId::new(TASK).unwrap(), step).unwrap().map_or(Value::Null, Value::Object)
    }

    pub(crate) fn effects(&self) -> u32 {
        self.seen.lock().unwrap().effects
    }

    /// Journal and tables agree.
    pub(crate) fn is_sound(&self) {
        assert_eq!(store::audit::audit(&mut self.reader(), None).unwrap(), []);
    }
}

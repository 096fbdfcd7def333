//! What the tests of this crate share.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use serde_json::{Map, Value, json};
use store::model::{IdempotencyKey, TaskId};
use store::{Crash, CrashSite};
use tempfile::TempDir;
use tools::{
    Attempt, Effect, Engine, Input, Outputs, Programs, PublishSites, Registry, Secrets, Stop, ToolContext, ToolError,
    World,
};

/// A folder in memory where there is one, so that syncing costs nothing.
pub(crate) fn folder() -> TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

/// Sites of no tool, for calls of `publish` itself.
pub(crate) const SITES: PublishSites = PublishSites {
    written: CrashSite("test.written"),
    linked: CrashSite("test.linked"),
    deduplicated: CrashSite("test.deduplicated"),
    published: CrashSite("test.published"),
};

/// A crash handle that remembers the names of the sites that were passed.
pub(crate) fn recording() -> (Crash, Arc<Mutex<Vec<String>>>) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&seen);
    (Crash::watching(move |point| log.lock().unwrap().push(point.site.clone())), seen)
}

/// A world whose artifacts lie in `folder/artifacts`.
pub(crate) fn world(folder: &Path) -> World {
    World {
        home: PathBuf::new(),
        moved: None,
        artifacts: folder.join("artifacts"),
        unsafe_effects: false,
        engine: Engine::Stub,
        secrets: Secrets::default(),
        programs: Programs {
            keeper: vec![env!("CARGO_BIN_EXE_tools-keeper").into()],
            folder: folder.join("attempts"),
            environment: vec![("PATH".into(), "/usr/bin:/bin".into())],
        },
        database: folder.join("state.db"),
    }
}

/// The key of step 2 of task `t1`.
pub(crate) fn key() -> IdempotencyKey {
    IdempotencyKey::new(TaskId::new("t1").unwrap(), 2)
}

/// The outputs of an earlier step 0.
pub(crate) fn outputs(of_step_0: Value) -> Outputs {
    Outputs::from([(0, object(of_step_0))])
}

/// One call of `tool` as step 2 of task `t1`.
pub(crate) fn call(
    tool: &str,
    world: &World,
    outputs: &Outputs,
    input: Value,
    crash: &Crash,
) -> Result<Map<String, Value>, ToolError> {
    let (key, input) = (key(), object(input));
    let ctx = ToolContext {
        key: &key,
        world,
        outputs,
        crash: crash.scope(Some(2)),
        stop: &Stop::default(),
        attempt: Attempt::first(Effect::Keyed),
    };
    let tools = Registry::builtin();
    let tool = tools.find(tool).unwrap();
    let output = tool.call(&ctx, Input(&input))?;
    assert_eq!(tools::check_output(tool.spec(), &output), Ok(()));
    Ok(output)
}

/// `{"from": 0}`, which most tools take.
pub(crate) fn from_0() -> Value {
    json!({ "from": 0 })
}

pub(crate) fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        other => panic!("{other} is not an object"),
    }
}

/// The names in a folder, sorted; none where it does not exist.
pub(crate) fn names(folder: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Every file below `folder` with its content.
pub(crate) fn tree(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(tree(&path));
        } else {
            found.insert(path.clone(), fs::read(&path).unwrap());
        }
    }
    found
}

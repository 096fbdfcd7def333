//! Listing files and writing them.

use std::fs;
use std::path::Path;

use rstest::rstest;
use serde_json::{Map, Value, json};
use store::Crash;
use tools::{
    Attempt, Audit, Due, Effect, Form, Input, Outputs, Pause, Registry, Stop, ToolContext, ToolError, World,
    check_input,
};

use crate::support::{call, folder, key, names, object, tree, world};

fn at_home(folder: &Path) -> World {
    World { home: folder.to_owned(), ..world(folder) }
}

fn run(tool: &str, world: &World, input: Value) -> Result<Map<String, Value>, ToolError> {
    call(tool, world, &Outputs::new(), input, &Crash::off())
}

fn refused(tool: &str, input: Value) -> String {
    check_input(Registry::builtin().find(tool).unwrap().as_ref(), &object(input), Form::Literal)
        .unwrap_err()
        .to_string()
}

#[test]
fn files_are_listed_in_order_and_no_others() {
    let folder = folder();
    for name in ["in/b.txt", "in/a.txt", "in/.hidden.txt", "in/c.md", "in/deep/d.txt", "in/deep/er/e.txt"] {
        fs::create_dir_all(folder.path().join(name).parent().unwrap()).unwrap();
        fs::write(folder.path().join(name), name).unwrap();
    }
    std::os::unix::fs::symlink("..", folder.path().join("in/deep/circle")).unwrap();
    std::os::unix::fs::symlink("nowhere", folder.path().join("in/lost.txt")).unwrap();
    std::os::unix::fs::symlink("c.md", folder.path().join("in/link.txt")).unwrap();
    let paths = |glob: Option<&str>| -> Vec<String> {
        let mut input = object(json!({ "folder": "in" }));
        glob.map(|glob| input.insert("glob".to_owned(), glob.into()));
        let output = run("list_files", &at_home(folder.path()), Value::Object(input)).unwrap();
        output["files"].as_array().unwrap().iter().map(|file| file["path"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(paths(None), ["in/a.txt", "in/b.txt", "in/c.md", "in/link.txt"]);
    assert_eq!(paths(Some("*.txt")), ["in/a.txt", "in/b.txt", "in/link.txt"]);
    let deep = ["in/a.txt", "in/b.txt", "in/deep/d.txt", "in/deep/er/e.txt", "in/link.txt"];
    assert_eq!(paths(Some("**/*.txt")), deep);
    assert_eq!(paths(Some("deep/*.txt")), ["in/deep/d.txt"]);
    assert_eq!(paths(Some("none")), [""; 0]);
    let output = run("list_files", &at_home(folder.path()), json!({ "folder": "in", "glob": "a*" })).unwrap();
    assert_eq!(output["files"], json!([{ "path": "in/a.txt", "name": "a.txt", "size": 8 }]));
    let error = run("list_files", &at_home(folder.path()), json!({ "folder": "none" })).unwrap_err();
    assert!(matches!(&error, ToolError::Step(why) if why.contains("none")), "{error:?}");
    assert!(refused("list_files", json!({ "folder": "in", "glob": "***" })).contains("`glob`: is not a pattern"));
}

#[test]
fn a_text_is_written_once_and_another_one_is_not_replaced_unless_that_is_meant() {
    let folder = folder();
    let world = at_home(folder.path());
    let write = |text: &str, exists: Option<&str>| {
        let mut input = object(json!({ "path": "out/deep/a.txt", "text": text }));
        exists.map(|exists| input.insert("exists".to_owned(), exists.into()));
        run("write_file", &world, Value::Object(input))
    };
    let first = write("one", None).unwrap();
    assert_eq!((&first["path"], &first["deduplicated"]), (&json!("out/deep/a.txt"), &json!(false)));
    assert_eq!(write("one", Some("error")).unwrap()["deduplicated"], true);
    let error = write("two", None).unwrap_err().to_string();
    assert!(error.contains("out/deep/a.txt is not the file that would be published"), "{error}");
    assert_eq!(write("two", Some("replace")).unwrap()["deduplicated"], false);
    assert_eq!(write("two", Some("replace")).unwrap()["deduplicated"], true);
    assert_eq!(fs::read_to_string(folder.path().join("out/deep/a.txt")).unwrap(), "two");
    assert_eq!(names(&folder.path().join("out/deep")), ["a.txt"]);
    for path in ["", "a/", "a\u{0}b"] {
        assert!(
            refused("write_file", json!({ "path": path, "text": "" })).contains("`path`: is not the name of a file")
        );
    }
    assert!(refused("write_file", json!({ "path": "a", "text": "", "exists": "append" })).contains("error, replace"));
}

/// A plan that wrote its notes to `state.db` had a task that was gone.
#[test]
fn the_database_is_not_written_to() {
    let folder = folder();
    let world = at_home(folder.path());
    fs::create_dir(folder.path().join("sub")).unwrap();
    for name in ["state.db", "state.db-wal", "./state.db.t.lock", "sub/../state.db", "state.db.attempts/x"] {
        for exists in ["error", "replace"] {
            let error = run("write_file", &world, json!({ "path": name, "text": "x", "exists": exists })).unwrap_err();
            assert!(matches!(&error, ToolError::Permanent(why) if why.contains("database")), "{name}: {error:?}");
        }
    }
    assert_eq!(tree(folder.path()), Default::default());
    run("write_file", &world, json!({ "path": "sub/state.db", "text": "another folder's" })).unwrap();
}

#[test]
fn an_audit_sees_a_file_that_is_gone_or_another_one() {
    let folder = folder();
    let world = at_home(folder.path());
    let audit = |exists: &str, text: Option<&str>| {
        let input = object(json!({ "path": "a.txt", "text": "one", "exists": exists }));
        let output = run("write_file", &world, Value::Object(input.clone())).unwrap();
        let path = folder.path().join("a.txt");
        match text {
            Some(text) => fs::write(&path, text).unwrap(),
            None => fs::remove_file(&path).unwrap(),
        }
        let (key, outputs, crash, stop) = (key(), Outputs::new(), Crash::off(), Stop::default());
        let attempt = Attempt::first(Effect::Keyed);
        let ctx =
            ToolContext { key: &key, world: &world, outputs: &outputs, crash: crash.scope(None), stop: &stop, attempt };
        let found = Registry::builtin().find("write_file").unwrap().audit(&ctx, Input(&input), &output);
        let _gone = fs::remove_file(path);
        found
    };
    assert_eq!(audit("error", Some("one")), Audit::Sound);
    assert!(matches!(audit("error", Some("two")), Audit::Differs(why) if why.contains("other content")));
    assert!(matches!(audit("error", None), Audit::Differs(_)));
    assert_eq!(audit("replace", Some("two")), Audit::NotLookedAt);
    assert!(matches!(audit("replace", None), Audit::Differs(_)));
}

#[test]
fn a_step_that_fails_says_why_and_fails_for_good() {
    let error = run("fail", &world(Path::new(".")), json!({ "message": "no members" }));
    assert_eq!(error, Err(ToolError::permanent("no members")));
}

#[rstest]
#[case("sleep", json!({}), "either this or `until`")]
#[case("sleep", json!({ "for": "1s", "until": "2026-12-24T18:00:00Z" }), "either this or `until`")]
#[case("sleep", json!({ "for": "soon" }), "`for`: must be a length of time")]
#[case("sleep", json!({ "until": "tomorrow" }), "`until`: must be a time such as")]
#[case("approval", json!({}), "`show`: missing")]
#[case("approval", json!({ "show": 1, "expires": "soon" }), "`expires`: must be a length of time")]
fn a_wait_for_nothing_is_refused(#[case] tool: &str, #[case] input: Value, #[case] says: &str) {
    let why = refused(tool, input);
    assert!(why.contains(says), "{why}");
}

#[test]
fn a_wait_says_what_it_is_for() {
    let tools = Registry::builtin();
    let wait = |tool: &str, input: Value| tools.find(tool).unwrap().wait(Input(&object(input))).unwrap().unwrap();
    let minute = Due::After(std::time::Duration::from_secs(60));
    let then = Due::At(store::model::Timestamp::from_micros(1_000_000));
    assert_eq!(wait("sleep", json!({ "for": "1m" })), Pause::Until(minute));
    assert_eq!(wait("sleep", json!({ "until": "1970-01-01T00:00:01Z" })), Pause::Until(then));
    let asks = |expires| Pause::Approval { show: json!({ "to": "all" }), expires, schema: None };
    assert_eq!(wait("approval", json!({ "show": { "to": "all" } })), asks(None));
    assert_eq!(wait("approval", json!({ "show": { "to": "all" }, "expires": "1m" })), asks(Some(minute)));
    for tool in tools.iter().filter(|tool| !["sleep", "approval"].contains(&tool.spec().name.as_str())) {
        assert_eq!(tool.wait(Input(&Map::new())), Ok(None), "{}", tool.spec().name);
    }
}

/// An answer that nobody had given was taken for a yes.
#[test]
fn without_an_answer_nothing_is_approved() {
    let input = json!({ "show": "all of it" });
    assert!(matches!(run("approval", &world(Path::new(".")), input), Err(ToolError::Permanent(_))));
}
